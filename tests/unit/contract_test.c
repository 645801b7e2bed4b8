/* contract: the CPU backend against every rule of core/backend.h, before any kernel is trusted. */
#include "tests/unit/unit.h"

#include "backends/cpu/cpu.h"
#include "core/alloc.h"
#include "core/backends.h"
#include "core/fpmode.h"
#include "tests/unit/toy_ops.h"

#include <pthread.h>

static iso_error error;
static const iso_backend *backend;
static iso_device *device, *other;

static int open_devices(void **state)
{
    const iso_backend_options options = {.thread_count = 3};

    (void)state;
    if (iso_backend_open_device("cpu:0", &options, &backend, &device, &error) != ISO_OK)
        return -1;
    return backend->open(NULL, 0, &other, &error) == ISO_OK ? 0 : -1;
}

static int close_devices(void **state)
{
    (void)state;
    backend->close(&device);
    backend->close(&other);
    backend->close(&other);                                  /* NULL is fine */
    return device == NULL && other == NULL ? 0 : -1;
}

static iso_buffer *create(iso_device *on, iso_memory_kind kind, uint64_t bytes, uint64_t alignment)
{
    const iso_buffer_spec spec = {kind, bytes, alignment, "test"};
    iso_buffer *buffer = NULL;

    assert_ok(backend->buffer_create(on, &spec, &buffer, &error), error);
    return buffer;
}

static void *map(iso_buffer *buffer)
{
    void *host = NULL;

    assert_ok(backend->buffer_map(buffer, &host, &error), error);
    return host;
}

static iso_status try_create(iso_memory_kind kind, uint64_t bytes, uint64_t alignment)
{
    const iso_buffer_spec spec = {kind, bytes, alignment, "test"};
    iso_buffer *buffer = NULL;
    const iso_status status = backend->buffer_create(device, &spec, &buffer, &error);

    assert_true(status != ISO_OK && buffer == NULL);
    return status;
}

static void devices_are_listed_and_opened(void **state)
{
    const iso_backend *found = NULL;
    iso_device *none = NULL;
    iso_device_info info[2];
    uint32_t count = 2;

    (void)state;
    assert_ok(backend->list(NULL, info, &count, &error), error);
    assert_int_equal(count, 1);
    assert_string_equal(info[0].name, "cpu");
    assert_true(info[0].probe_passed);
    count = 0;
    assert_ok(backend->list(NULL, info, &count, &error), error);
    assert_int_equal(count, 0);
    backend->info(device, &info[1]);
    assert_non_null(strstr(info[1].text, "3 of "));
    assert_ok(backend->health(device, &error), error);
    assert_fails(iso_backend_open_device("cpu:1", NULL, &found, &none, &error), ISO_NO_DEVICE,
                 error, "1 devices found");
    assert_fails(iso_backend_open_device("abacus", NULL, &found, &none, &error), ISO_NO_DEVICE,
                 error, "this build has cpu");
    assert_fails(iso_backend_open_device("cpu:", NULL, &found, &none, &error), ISO_NO_DEVICE,
                 error, "name:index");
    assert_fails(iso_backend_open_device("cpu:x", NULL, &found, &none, &error), ISO_NO_DEVICE,
                 error, "name:index");
    assert_null(none);
    assert_int_equal(iso_backend_count(), 1);
}

static void buffers_of_every_kind(void **state)
{
    (void)state;
    for (int kind = 0; kind < ISO_MEMORY_KIND_COUNT; kind++) {
        iso_memory_info info;
        iso_buffer *buffer;

        assert_ok(backend->memory(device, (iso_memory_kind)kind, &info, &error), error);
        if (!info.present) {
            assert_true(info.text[0] != '\0');
            assert_fails((try_create((iso_memory_kind)kind, 64, 0)), ISO_UNSUPPORTED, error,
                         iso_memory_kind_name((iso_memory_kind)kind));
            continue;
        }
        assert_true(info.bytes_budget > 0 && info.buffer_max > 0 && info.alignment == 64);
        buffer = create(device, (iso_memory_kind)kind, 100, 0);
        if (kind == ISO_MEMORY_PINNED || kind == ISO_MEMORY_SHARED)
            memset(map(buffer), 1, 100);
        else
            assert_int_equal(backend->buffer_map(buffer, &(void *){NULL}, &error),
                             ISO_UNSUPPORTED);
        backend->buffer_destroy(&buffer);
        assert_null(buffer);
        backend->buffer_destroy(&buffer);
    }
    for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
        iso_buffer *buffer = create(device, ISO_MEMORY_SHARED, 10, alignment);

        assert_int_equal((uintptr_t)map(buffer) % (alignment < 64 ? 64 : alignment), 0);
        backend->buffer_destroy(&buffer);
    }
    assert_fails(try_create(ISO_MEMORY_SHARED, 0, 0), ISO_BAD_ARGUMENT, error, "0 bytes");
    assert_fails(try_create(ISO_MEMORY_SHARED, 8, 3), ISO_BAD_ARGUMENT, error, "aligned to 3");
    assert_fails(try_create(ISO_MEMORY_SHARED, UINT64_MAX, 0), ISO_NO_MEMORY, error, "test");
}

static void imports_are_checked_and_never_written(void **state)
{
    static const _Alignas(64) float file[16] = {1, 2, 3, 4};
    iso_import_spec spec = {file, sizeof file, 16, "file"};
    iso_step step = {.kind = ISO_STEP_FILL, .name = "fill", .tensor_count = 1, .present = {true},
                     .bytes = 4};
    iso_buffer *buffer = NULL;
    iso_program *program = NULL;
    void *host = NULL;

    (void)state;
    assert_ok(backend->buffer_import(device, &spec, &buffer, &error), error);
    assert_fails(backend->buffer_map(buffer, &host, &error), ISO_UNSUPPORTED, error, "mapped");
    step.tensor[0].buffer = buffer;
    assert_fails(backend->record(device, &step, 1, 64, &program, &error), ISO_BAD_ARGUMENT, error,
                 "step fill: operand 0 is an import, it cannot be written");
    assert_null(program);
    backend->buffer_destroy(&buffer);
    spec.host = (const char *)(const void *)file + 4;
    assert_fails(backend->buffer_import(device, &spec, &buffer, &error), ISO_UNSUPPORTED, error,
                 "no multiple of 16");
    spec.alignment = 4;
    assert_ok(backend->buffer_import(device, &spec, &buffer, &error), error);
    backend->buffer_destroy(&buffer);
    spec.bytes = 0;
    assert_fails(backend->buffer_import(device, &spec, &buffer, &error), ISO_BAD_ARGUMENT, error,
                 "0 bytes");
}

/* A program of one stream: y = k x, x in the argument block behind one scalar that counts rows. */
enum { ROWS = 4, DIM = 8, BLOCK = 64 + ROWS * DIM * 4 };

typedef struct block_layout {
    uint32_t rows, unused[15];
    float x[ROWS * DIM];
} block_layout;

static iso_op_call affine_call(float k)
{
    iso_op_call call = {.op = &toy_affine};

    memcpy(call.params, &k, sizeof k);
    call.in[0] = iso_desc2(ISO_DTYPE_F32, ROWS, DIM);
    call.in[0].live_scalar = 1;
    call.in[0].live_mult = 1;
    assert_ok(toy_affine.infer(&call, &error), error);
    return call;
}

static iso_step affine_step(iso_device *on, float k, iso_buffer *out)
{
    iso_op_call call = affine_call(k);
    iso_step step = {.kind = ISO_STEP_OP, .name = "affine", .op = &toy_affine, .tensor_count = 3,
                     .present = {true, false, true}, .tensor = {{NULL, 64}, {0}, {out, 0}},
                     .bytes = 1 << 30};              /* a hint: worth several threads */
    iso_support support;

    backend->query(on, &call, ISO_CLASS_EXACT, &support);
    assert_true(support.ok && support.num_class == ISO_CLASS_EXACT);
    step.kernel_index = support.kernel_index;
    toy_affine.fill(&call, step.args);
    return step;
}

static iso_step event_step(iso_step_kind kind, iso_event *event, uint64_t value)
{
    return (iso_step){.kind = kind, .name = "event", .event = event, .event_value = value};
}

typedef struct objects {
    iso_stream *stream;
    iso_event *event;
    iso_buffer *out;
    iso_program *program;
} objects;

static objects make_objects(iso_device *on)
{
    objects o = {.out = create(on, ISO_MEMORY_SHARED, ROWS * DIM * 4, 0)};

    assert_ok(backend->stream_create(on, ISO_STREAM_COMPUTE, &o.stream, &error), error);
    assert_ok(backend->event_create(on, &o.event, &error), error);
    return o;
}

static void destroy_objects(objects *o)
{
    backend->program_destroy(&o->program);
    backend->stream_destroy(&o->stream);
    backend->event_destroy(&o->event);
    backend->buffer_destroy(&o->out);
    backend->program_destroy(&o->program);
    backend->stream_destroy(&o->stream);
    backend->event_destroy(&o->event);
}

static iso_status launch(objects *o, uint64_t epoch, const block_layout *block)
{
    const iso_launch args = {epoch, block, sizeof *block};

    return backend->launch(o->program, o->stream, &args, &error);
}

static void programs_run_again_with_growing_epochs(void **state)
{
    objects o = make_objects(device);
    const float *out = map(o.out);
    block_layout block = {0};
    iso_step steps[2];

    (void)state;
    memset(map(o.out), 0, ROWS * DIM * 4);
    steps[0] = affine_step(device, 2.0f, o.out);
    steps[1] = event_step(ISO_STEP_SIGNAL, o.event, 1);
    assert_ok(backend->record(device, steps, 2, sizeof block, &o.program, &error), error);
    memset(steps, 0xee, sizeof steps);                       /* record has copied them */
    for (uint32_t run = 0; run < 20; run++) {
        block.rows = run % (ROWS + 2);                       /* 5: clamped to the capacity */
        for (uint32_t i = 0; i < ROWS * DIM; i++)
            block.x[i] = (float)(run + i);
        iso_alloc_seal();
        assert_ok(launch(&o, run * 3, &block), error);
        iso_alloc_unseal();
        block.rows = 99;                                     /* the launch has its own copy */
        memset(block.x, 0xff, sizeof block.x);
        assert_ok(backend->event_wait(o.event, run * 3 + 1, UINT64_MAX, &error), error);
        for (uint32_t i = 0; i < run % (ROWS + 2) * DIM && i < ROWS * DIM; i++)
            assert_true(out[i] == 2.0f * (float)(run + i));
    }
    assert_fails(launch(&o, 57, &block), ISO_BAD_ARGUMENT, error, "event is at 58");
    destroy_objects(&o);
}

static void copies_and_fills_move_bytes(void **state)
{
    objects o = make_objects(device);
    iso_buffer *pinned = create(device, ISO_MEMORY_PINNED, 128, 0);
    iso_buffer *vram = create(device, ISO_MEMORY_DEVICE, 128, 0);
    block_layout block = {.x = {3.5f}};
    const uint32_t *host = map(pinned);
    iso_step steps[3] = {
        {.kind = ISO_STEP_FILL, .name = "fill", .tensor_count = 1, .present = {true},
         .tensor = {{vram, 0}}, .bytes = 128, .value = 0x01020304},
        {.kind = ISO_STEP_COPY, .name = "in", .tensor_count = 2, .present = {true, true},
         .tensor = {{NULL, 64}, {vram, 8}}, .bytes = 4},
        {.kind = ISO_STEP_COPY, .name = "out", .tensor_count = 2, .present = {true, true},
         .tensor = {{vram, 0}, {pinned, 0}}, .bytes = 128},
    };

    (void)state;
    assert_ok(backend->record(device, steps, 3, sizeof block, &o.program, &error), error);
    assert_ok(launch(&o, 0, &block), error);
    assert_int_equal(host[0], 0x01020304);
    assert_int_equal(host[2], 0x40600000);
    assert_int_equal(host[31], 0x01020304);
    backend->program_destroy(&o.program);
    steps[2].bytes = 129;
    assert_fails(backend->record(device, steps, 3, sizeof block, &o.program, &error),
                 ISO_BAD_ARGUMENT, error, "step out: operand 0 is [0, +129) of 128 bytes");
    steps[0].bytes = 126;
    assert_fails(backend->record(device, steps, 3, sizeof block, &o.program, &error),
                 ISO_BAD_ARGUMENT, error, "step fill");
    steps[0].bytes = 4;
    steps[0].tensor[0].buffer = NULL;
    assert_fails(backend->record(device, steps, 3, sizeof block, &o.program, &error),
                 ISO_BAD_ARGUMENT, error, "in the argument block");
    backend->buffer_destroy(&pinned);
    backend->buffer_destroy(&vram);
    destroy_objects(&o);
}

static void foreign_objects_are_refused(void **state)
{
    objects mine = make_objects(device), theirs = make_objects(other);
    const block_layout block = {.rows = 1};
    const iso_launch args = {0, &block, sizeof block};
    iso_step step = event_step(ISO_STEP_WAIT, theirs.event, 1);

    (void)state;
    assert_fails(backend->record(device, &step, 1, sizeof block, &mine.program, &error),
                 ISO_BAD_DEVICE, error, "event of another device");
    step = event_step(ISO_STEP_SIGNAL, theirs.event, 1);
    assert_fails(backend->record(device, &step, 1, sizeof block, &mine.program, &error),
                 ISO_BAD_DEVICE, error, "event of another device");
    step = event_step(ISO_STEP_SIGNAL, NULL, 1);
    assert_fails(backend->record(device, &step, 1, sizeof block, &mine.program, &error),
                 ISO_BAD_ARGUMENT, error, "no event");
    step = affine_step(device, 1.0f, theirs.out);
    assert_fails(backend->record(device, &step, 1, sizeof block, &mine.program, &error),
                 ISO_BAD_DEVICE, error, "operand 2 is of another device");
    step = affine_step(device, 1.0f, mine.out);
    assert_ok(backend->record(device, &step, 1, sizeof block, &mine.program, &error), error);
    assert_fails(backend->launch(mine.program, theirs.stream, &args, &error), ISO_BAD_DEVICE,
                 error, "stream of another device");
    step.kernel_index += 1;
    assert_fails(backend->record(device, &step, 1, sizeof block, &theirs.program, &error),
                 ISO_BAD_ARGUMENT, error, "step affine: kernel");
    destroy_objects(&mine);
    destroy_objects(&theirs);
}

static void launch_checks_the_block(void **state)
{
    objects o = make_objects(device);
    const block_layout block = {.rows = 1};
    const iso_launch args = {0, &block, 64};
    iso_step step = affine_step(device, 1.0f, o.out);

    (void)state;
    assert_fails(backend->record(device, &step, 1, 63, &o.program, &error), ISO_BAD_ARGUMENT,
                 error, "operand 0");
    assert_ok(backend->record(device, &step, 1, sizeof block, &o.program, &error), error);
    assert_fails(backend->launch(o.program, o.stream, &args, &error), ISO_BAD_ARGUMENT, error,
                 "64 bytes");
    destroy_objects(&o);
}

static void *signal_later(void *event)
{
    iso_error why;

    if (backend->event_wait(event, 100, 20000000, &why) != ISO_TIMEOUT)
        return NULL;
    return backend->event_signal(event, 7, &why) == ISO_OK ? event : NULL;
}

/* The launch on this thread waits for the signal of another one. */
static void streams_wait_for_events(void **state)
{
    objects a = make_objects(device), b = make_objects(device);
    block_layout block = {.rows = ROWS, .x = {5.0f}};
    iso_step steps[3];
    pthread_t thread;
    void *result = NULL;

    (void)state;
    steps[0] = affine_step(device, 3.0f, a.out);
    steps[1] = event_step(ISO_STEP_SIGNAL, a.event, 1);
    assert_ok(backend->record(device, steps, 2, sizeof block, &a.program, &error), error);
    steps[0] = event_step(ISO_STEP_WAIT, a.event, 1);        /* of the other stream */
    steps[1] = event_step(ISO_STEP_WAIT, b.event, 7);        /* of the host */
    steps[2] = affine_step(device, 1.0f, b.out);
    steps[2].tensor[0] = (iso_slice){a.out, 0};
    assert_ok(backend->record(device, steps, 3, sizeof block, &b.program, &error), error);
    assert_ok(launch(&a, 0, &block), error);
    assert_int_equal(pthread_create(&thread, NULL, signal_later, b.event), 0);
    assert_ok(launch(&b, 0, &block), error);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, b.event);
    assert_true(((float *)map(b.out))[0] == 15.0f);
    destroy_objects(&a);
    destroy_objects(&b);
}

static void events_only_grow(void **state)
{
    iso_event *event = NULL;

    (void)state;
    assert_ok(backend->event_create(device, &event, &error), error);
    assert_fails(backend->event_wait(event, 1, 0, &error), ISO_TIMEOUT, error, "event is at 0");
    assert_fails(backend->event_wait(event, 1, 1000000, &error), ISO_TIMEOUT, error, "1 was");
    assert_ok(backend->event_signal(event, 5, &error), error);
    assert_ok(backend->event_wait(event, 5, 0, &error), error);
    assert_ok(backend->event_wait(event, 3, UINT64_MAX, &error), error);
    assert_fails(backend->event_signal(event, 5, &error), ISO_BAD_ARGUMENT, error,
                 "cannot be set to 5");
    backend->event_destroy(&event);
}

/* The flag of a step is reported once, by the wait on the event that its run signalled, even if
 * the signal is in a later program of the stream. */
static void failures_reach_the_event(void **state)
{
    objects o = make_objects(device);
    iso_step step = affine_step(device, 1.0f, o.out);
    iso_step end = event_step(ISO_STEP_SIGNAL, o.event, 1);
    block_layout block = {.rows = ROWS};
    iso_program *second = NULL;
    const iso_launch args = {0, &block, sizeof block};

    (void)state;
    step.name = "layers.3.attn.q";
    step.op = &toy_positive;
    step.tensor_count = 2;
    step.present[1] = true;
    step.tensor[1] = (iso_slice){o.out, 0};
    assert_ok(backend->record(device, &step, 1, sizeof block, &o.program, &error), error);
    assert_ok(backend->record(device, &end, 1, sizeof block, &second, &error), error);
    block.x[ROWS * DIM - 1] = -1.0f;
    assert_ok(launch(&o, 0, &block), error);
    assert_ok(backend->launch(second, o.stream, &args, &error), error);
    assert_fails(backend->event_wait(o.event, 1, UINT64_MAX, &error), ISO_RANGE_ERROR, error,
                 "step layers.3.attn.q (toy_positive): value outside the numeric domain");
    assert_ok(backend->event_wait(o.event, 1, UINT64_MAX, &error), error);
    backend->program_destroy(&second);
    destroy_objects(&o);
}

static void leaks_have_names(void **state)
{
    objects o = make_objects(device);
    char text[512];

    (void)state;
    iso_cpu_leaks(device, text, sizeof text);
    assert_string_equal(text, "event, stream compute, buffer test");
    destroy_objects(&o);
    iso_cpu_leaks(device, text, sizeof text);
    assert_string_equal(text, "");
}

static void query_is_pure_and_refuses_the_unknown(void **state)
{
    iso_op unknown = toy_affine;
    iso_op_call call = affine_call(1.0f), odd;
    iso_support first, second;

    (void)state;
    backend->query(device, &call, ISO_CLASS_EXACT, &first);
    backend->query(device, &call, ISO_CLASS_EXACT, &second);
    assert_memory_equal(&first, &second, sizeof first);
    assert_string_equal(first.kernel, "reference");
    unknown.reference = NULL;
    odd = call;
    odd.op = &unknown;
    backend->query(device, &odd, ISO_CLASS_EXACT, &first);
    assert_false(first.ok);
    assert_int_equal(first.reason, ISO_REASON_NO_KERNEL);
    for (int reason = 0; reason < ISO_REASON_COUNT; reason++)
        assert_true(iso_reason_text((iso_reason)reason)[0] != '\0');
}

static void probe_passes_in_a_foreign_mode(void **state)
{
    (void)state;
    assert_string_equal(iso_cpu_probe(), "");
    assert_int_equal(iso_fpmode_now(), iso_fpmode_wanted());
}

static void objects_survive_no_memory(void **state)
{
    iso_alloc_stats before, after;
    objects o = make_objects(device);
    iso_step step = affine_step(device, 1.0f, o.out);
    iso_status status;
    uint64_t n = 0;

    (void)state;
    iso_alloc_get_stats(&before);
    do {
        iso_device *opened = NULL;
        iso_buffer *buffer = NULL;
        const iso_buffer_spec spec = {ISO_MEMORY_SHARED, 64, 0, "test"};

        iso_alloc_fail_at(++n);
        status = backend->open(NULL, 0, &opened, &error);
        if (status == ISO_OK)
            status = backend->buffer_create(device, &spec, &buffer, &error);
        if (status == ISO_OK)
            status = backend->record(device, &step, 1, BLOCK, &o.program, &error);
        iso_alloc_fail_at(0);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
        backend->program_destroy(&o.program);
        backend->buffer_destroy(&buffer);
        backend->close(&opened);
        iso_alloc_get_stats(&after);
        assert_int_equal(after.bytes_now, before.bytes_now);
    } while (status != ISO_OK);
    assert_true(n > 6);
    destroy_objects(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_listed_and_opened),
        cmocka_unit_test(buffers_of_every_kind),
        cmocka_unit_test(imports_are_checked_and_never_written),
        cmocka_unit_test(programs_run_again_with_growing_epochs),
        cmocka_unit_test(copies_and_fills_move_bytes),
        cmocka_unit_test(foreign_objects_are_refused),
        cmocka_unit_test(launch_checks_the_block),
        cmocka_unit_test(streams_wait_for_events),
        cmocka_unit_test(events_only_grow),
        cmocka_unit_test(failures_reach_the_event),
        cmocka_unit_test(leaks_have_names),
        cmocka_unit_test(query_is_pure_and_refuses_the_unknown),
        cmocka_unit_test(probe_passes_in_a_foreign_mode),
        cmocka_unit_test(objects_survive_no_memory),
    };

    return cmocka_run_group_tests_name("contract", tests, open_devices, close_devices);
}
