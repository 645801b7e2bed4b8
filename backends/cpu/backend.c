/* The CPU backend: one device, whose memory the host reads and writes; launch runs the steps in the
 * caller's thread and returns when they are done. */
#include "backends/cpu/cpu.h"

#include "core/alloc.h"
#include "core/cpuinfo.h"

#include <string.h>

extern const struct iso_backend iso_backend_cpu;

void iso_cpu_enlist(iso_device *device, iso_cpu_object *object, const char *kind, const char *tag)
{
    *object = (iso_cpu_object){device, kind, tag, device->objects, &device->objects};
    if (device->objects != NULL)
        device->objects->link = &object->next;
    device->objects = object;
}

void iso_cpu_delist(iso_cpu_object *object)
{
    *object->link = object->next;
    if (object->next != NULL)
        object->next->link = object->link;
}

void iso_cpu_leaks(const iso_device *device, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (const iso_cpu_object *o = device->objects; o != NULL && used < bytes; o = o->next)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s%s%s", used == 0 ? "" : ", ",
                                 o->kind, o->tag[0] == '\0' ? "" : " ", o->tag);
}

static void fill_info(uint32_t thread_count, const char *probe_text, iso_device_info *info)
{
    *info = (iso_device_info){.name = "cpu", .memory_bytes = iso_os_memory_bytes(),
                              .probe_passed = probe_text[0] == '\0'};
    snprintf(info->text, sizeof info->text, "%u of %u processors", thread_count,
             iso_os_cpu_count());
    snprintf(info->probe_text, sizeof info->probe_text, "%s", probe_text);
}

static uint32_t threads_of(const iso_backend_options *options)
{
    const uint32_t wanted = options == NULL ? 0 : options->thread_count;

    return wanted != 0 ? wanted : iso_threads_available();
}

static iso_status list(const iso_backend_options *options, iso_device_info *infos,
                       uint32_t *count, iso_error *error)
{
    (void)error;
    if (*count != 0)
        fill_info(threads_of(options), iso_cpu_probe(), infos);
    *count = *count != 0 ? 1 : 0;
    return ISO_OK;
}

static void release_device(iso_device *device)
{
    iso_team_destroy(&device->team);
    iso_os_monitor_destroy(device->monitor);
    iso_release(device, sizeof *device);
}

static iso_status open_device(const iso_backend_options *options, uint32_t index,
                              iso_device **device, iso_error *error)
{
    enum { THREADS_MAX = 4096 };
    uint32_t isa_mask;
    iso_device *made;

    if (index != 0)
        return iso_fail(error, ISO_NO_DEVICE, "cpu:%u: there is one, cpu:0", index);
    ISO_TRY(iso_isa_mask(options == NULL ? NULL : options->isa, &isa_mask, error));
    if (threads_of(options) > THREADS_MAX)
        return iso_fail(error, ISO_LIMIT, "cpu: %u threads, at most %d", threads_of(options),
                        THREADS_MAX);
    if (options != NULL)
        ISO_TRY(iso_pages_check(&options->pages, error));
    made = iso_alloc_zero(1, sizeof *made, "cpu device");
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory");
    made->monitor = iso_os_monitor_create();
    made->team = iso_team_create(threads_of(options));
    if (made->monitor == NULL || made->team == NULL) {
        release_device(made);
        return iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory");
    }
    made->self = made;
    made->isa_mask = isa_mask;
    made->thread_count = threads_of(options);
    made->is_reference_only = options != NULL && options->reference_only;
    if (options != NULL)
        made->pages = options->pages;
    made->probe_text = iso_cpu_probe();
    *device = made;
    return ISO_OK;
}

static void close_device(iso_device **device)
{
    iso_device *d = device == NULL ? NULL : *device;
    char leaks[512];

    if (d == NULL)
        return;
    iso_cpu_leaks(d, leaks, sizeof leaks);
    ISO_ASSERT_SAYS(d->objects == NULL, leaks);
    release_device(d);
    *device = NULL;
}

static iso_status health(iso_device *device, iso_error *error)
{
    (void)device;
    (void)error;
    return ISO_OK;
}

static void get_info(iso_device *device, iso_device_info *info)
{
    fill_info(device->thread_count, device->probe_text, info);
}

const struct iso_backend iso_backend_cpu = {
    .abi = ISO_BACKEND_ABI,
    .struct_bytes = sizeof(iso_backend),
    .name = "cpu",
    .list = list,
    .open = open_device,
    .close = close_device,
    .health = health,
    .info = get_info,
    .memory = iso_cpu_memory,
    .buffer_create = iso_cpu_buffer_create,
    .buffer_import = iso_cpu_buffer_import,
    .buffer_map = iso_cpu_buffer_map,
    .buffer_destroy = iso_cpu_buffer_destroy,
    .query = iso_cpu_query,
    .query_fused = iso_cpu_query_fused,
    .record = iso_cpu_record,
    .launch = iso_cpu_launch,
    .program_destroy = iso_cpu_program_destroy,
    .stream_create = iso_cpu_stream_create,
    .stream_destroy = iso_cpu_stream_destroy,
    .event_create = iso_cpu_event_create,
    .event_destroy = iso_cpu_event_destroy,
    .event_wait = iso_cpu_event_wait,
    .event_signal = iso_cpu_event_signal,
};
