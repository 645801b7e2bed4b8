/* Streams and events. A stream runs its steps while launch runs; what is left of it is the first
 * failure since its last SIGNAL. */
#include "backends/cpu/cpu.h"

#include "core/alloc.h"

iso_status iso_cpu_stream_create(iso_device *device, iso_stream_kind kind, iso_stream **stream,
                                 iso_error *error)
{
    static const char *const name[] = {"compute", "upload", "download"};
    iso_stream *made;

    if ((unsigned)kind >= ISO_COUNT_OF(name))
        return iso_fail(error, ISO_BAD_ARGUMENT, "cpu: stream of kind %d", (int)kind);
    made = iso_alloc_zero(1, sizeof *made, "cpu stream");
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory for a stream");
    iso_cpu_enlist(device, &made->object, "stream", name[kind]);
    *stream = made;
    return ISO_OK;
}

void iso_cpu_stream_destroy(iso_stream **stream)
{
    iso_stream *s = stream == NULL ? NULL : *stream;

    if (s == NULL)
        return;
    iso_cpu_delist(&s->object);
    iso_release(s, sizeof *s);
    *stream = NULL;
}

iso_status iso_cpu_event_create(iso_device *device, iso_event **event, iso_error *error)
{
    iso_event *made = iso_alloc_zero(1, sizeof *made, "cpu event");

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory for an event");
    iso_cpu_enlist(device, &made->object, "event", "");
    *event = made;
    return ISO_OK;
}

void iso_cpu_event_destroy(iso_event **event)
{
    iso_event *e = event == NULL ? NULL : *event;

    if (e == NULL)
        return;
    iso_cpu_delist(&e->object);
    iso_release(e, sizeof *e);
    *event = NULL;
}

static iso_status report(const iso_cpu_failure *failure, iso_error *error)
{
    if (failure->status == ISO_OK)
        return ISO_OK;
    return iso_fail(error, failure->status, "step %s (%s): %s", failure->step, failure->op,
                    iso_status_sentence(failure->status));
}

iso_status iso_cpu_event_wait(iso_event *event, uint64_t value, uint64_t timeout_ns,
                              iso_error *error)
{
    iso_os_monitor *monitor = event->object.device->monitor;
    const uint64_t begin = iso_os_clock_ns();
    iso_cpu_failure failure;
    uint64_t found;

    iso_os_monitor_lock(monitor);
    while (event->value < value) {
        const uint64_t waited = iso_os_clock_ns() - begin;

        if (timeout_ns == UINT64_MAX)
            (void)iso_os_monitor_wait(monitor, UINT64_MAX);
        else if (waited >= timeout_ns || !iso_os_monitor_wait(monitor, timeout_ns - waited))
            break;
    }
    found = event->value;
    failure = event->failure;
    if (found >= value)
        event->failure = (iso_cpu_failure){0};
    iso_os_monitor_unlock(monitor);
    if (found < value)
        return iso_fail(error, ISO_TIMEOUT, "cpu: event is at %llu, %llu was waited for",
                        (unsigned long long)found, (unsigned long long)value);
    return report(&failure, error);
}

void iso_cpu_event_reach(iso_event *event, uint64_t value)
{
    iso_os_monitor *monitor = event->object.device->monitor;

    iso_os_monitor_lock(monitor);
    while (event->value < value)
        (void)iso_os_monitor_wait(monitor, UINT64_MAX);
    iso_os_monitor_unlock(monitor);
}

iso_status iso_cpu_event_advance(iso_event *event, uint64_t value, iso_stream *stream,
                                 iso_error *error)
{
    iso_os_monitor *monitor = event->object.device->monitor;
    uint64_t found;

    iso_os_monitor_lock(monitor);
    found = event->value;
    if (value > found) {
        event->value = value;
        if (stream != NULL && event->failure.status == ISO_OK)
            event->failure = stream->failure;
        iso_os_monitor_wake_all(monitor);
    }
    iso_os_monitor_unlock(monitor);
    if (value <= found)
        return iso_fail(error, ISO_BAD_ARGUMENT, "cpu: event is at %llu, it cannot be set to %llu",
                        (unsigned long long)found, (unsigned long long)value);
    if (stream != NULL)
        stream->failure = (iso_cpu_failure){0};
    return ISO_OK;
}

iso_status iso_cpu_event_signal(iso_event *event, uint64_t value, iso_error *error)
{
    return iso_cpu_event_advance(event, value, NULL, error);
}
