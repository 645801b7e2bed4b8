#include "apps/bench/bench.h"

#include "core/backends.h"
#include "core/rows32.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS_MAX = 256, COPIES_MAX = 64 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *times, uint32_t count)
{
    qsort(times, count, sizeof *times, by_time);
    return times[count / 2];
}

/* ---- bandwidth ---- */

typedef struct read_args {
    iso_live rows;
} read_args;

/* Sums 1 MiB per unit; the sum is stored so that the loads stay. */
static void read_unit(const void *args, const iso_tensors *tensors, iso_range units)
{
    const uint64_t *data = tensors->at[0];
    uint64_t *sums = tensors->at[1];

    (void)args;
    for (uint64_t u = units.begin; u < units.end; u++) {
        const uint64_t *from = data + u * (1 << 17);
        uint64_t sum = 0;

        for (size_t i = 0; i < 1 << 17; i++)
            sum += from[i];
        sums[u] = sum;
    }
}

double bench_read_bandwidth(const bench_options *options)
{
    const uint64_t units = options->cycle_bytes >> 20;
    const uint32_t threads =
        options->thread_count != 0 ? options->thread_count : iso_threads_available();
    const read_args args = {{(uint32_t)units, 0, 0}};
    uint64_t *data = malloc(units << 20), *sums = malloc(units * sizeof *sums);
    void *at[2] = {data, sums};
    const iso_tensors tensors = {at, NULL, NULL};
    double times[15];

    if (data == NULL || sums == NULL) {
        free(data);
        free(sums);
        return 0.0;
    }
    memset(data, 1, units << 20);
    for (size_t run = 0; run < 15; run++) {
        const double start = now();

        iso_threads_run(threads, units, 1, read_unit, &args, &tensors);
        times[run] = now() - start;
    }
    free(data);
    free(sums);
    return (double)(units << 20) / median(times, 15);
}

/* ---- one operator ---- */

typedef struct rig {
    const iso_backend *backend;
    iso_device *device;
    iso_stream *stream;
    iso_event *event;
    iso_buffer *buffer[ISO_STEP_TENSORS_MAX * COPIES_MAX];
    uint32_t buffer_count;
    iso_program *program[COPIES_MAX];
    uint32_t copies;
    iso_op_call call;                    /* the case's, its weights in the layout that is timed */
    void *input[ISO_OP_INPUTS_MAX];      /* host addresses of the first copy */
} rig;

/* Plausible contents: small codes, scales near 1, ids counting up. */
static void fill(const bench_case *test, uint32_t input, void *data, uint64_t bytes)
{
    const iso_dtype dtype = test->call.in[input].dtype;
    unsigned char *to = data;
    uint32_t state = 12345 + input;

    for (uint64_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (unsigned char)(dtype == ISO_DTYPE_UE8M0  ? 120 + (state >> 24) % 8
                                : dtype == ISO_DTYPE_E4M3 ? (state >> 24) % 120
                                                          : state >> 24);
    }
    if (dtype == ISO_DTYPE_BF16)
        for (uint64_t i = 1; i < bytes; i += 2)
            to[i] = (unsigned char)(to[i] % 2 ? 0x3f : 0xbf);
    if (dtype == ISO_DTYPE_F32)
        for (uint64_t i = 3; i < bytes; i += 4)
            to[i] = (unsigned char)(to[i] % 2 ? 0x3d : 0xbd);
    if (test->index_inputs & 1u << input)
        for (uint64_t i = 0; i < bytes / 4; i++)
            ((int32_t *)data)[i] = (int32_t)i;
}

/* Fills one input, and packs it where its layout says so. */
static iso_status fill_input(const rig *r, const bench_case *test, uint32_t input, void *host,
                             iso_error *error)
{
    const iso_tensor_desc *plain = &test->call.in[input], *desc = &r->call.in[input];
    void *values = host;

    if (desc->layout != ISO_LAYOUT_PLAIN) {
        values = malloc(iso_desc_bytes(plain));
        if (values == NULL)
            return iso_fail(error, ISO_NO_MEMORY, "bench: out of memory packing %s", test->name);
    }
    if (test->source != NULL)
        iso_case_fill_input(test->source, input, values);
    else
        fill(test, input, values, iso_desc_bytes(plain));
    if (values != host) {
        iso_rows32_pack(desc, 0, iso_rows32_tiles(desc), values, host);
        free(values);
    }
    return ISO_OK;
}

static iso_status take(rig *r, const bench_case *test, const iso_tensor_desc *desc, int32_t input,
                       iso_slice *slice, iso_error *error)
{
    const iso_buffer_spec spec = {ISO_MEMORY_SHARED, iso_desc_bytes(desc), 64, "bench"};
    iso_buffer *buffer = NULL;
    void *host = NULL;

    ISO_TRY(r->backend->buffer_create(r->device, &spec, &buffer, error));
    r->buffer[r->buffer_count++] = buffer;
    ISO_TRY(r->backend->buffer_map(buffer, &host, error));
    if (input >= 0) {
        ISO_TRY(fill_input(r, test, (uint32_t)input, host, error));
        r->input[input] = host;
    }
    *slice = (iso_slice){buffer, 0};
    return ISO_OK;
}

static iso_status take_tensors(rig *r, const bench_case *test, iso_step *step, iso_error *error)
{
    const iso_op *op = r->call.op;
    uint32_t at = 0;

    for (uint32_t i = 0; i < op->input_count; i++, at++) {
        step->present[at] = iso_desc_present(&r->call.in[i]);
        if (step->present[at])
            ISO_TRY(take(r, test, &r->call.in[i], (int32_t)i, &step->tensor[at], error));
    }
    for (uint32_t i = 0; i < op->output_count; i++, at++) {
        step->present[at] = true;
        ISO_TRY(take(r, test, &r->call.out[i], -1, &step->tensor[at], error));
    }
    if (op->flags & ISO_OP_SCRATCH) {
        const iso_tensor_desc scratch = op->scratch(&r->call);

        step->present[at] = true;
        ISO_TRY(take(r, test, &scratch, -1, &step->tensor[at++], error));
    }
    if (test->source != NULL && test->source->make != NULL)
        test->source->make(test->source, r->input);
    step->tensor_count = at;
    return ISO_OK;
}

/* One program per copy of the weight; the other operands are shared. */
static iso_status record(rig *r, const bench_case *test, iso_step *step, iso_error *error)
{
    iso_step steps[2] = {*step, {.kind = ISO_STEP_SIGNAL, .event = r->event, .event_value = 1}};
    const int32_t cycled[2] = {test->weight, test->weight_scale};

    for (uint32_t copy = 0; copy < r->copies; copy++) {
        for (int i = 0; copy > 0 && i < 2; i++)
            if (cycled[i] >= 0)
                ISO_TRY(take(r, test, &r->call.in[cycled[i]], cycled[i],
                             &steps[0].tensor[cycled[i]], error));
        ISO_TRY(r->backend->record(r->device, steps, 2, 64, &r->program[copy], error));
    }
    return ISO_OK;
}

static iso_status measure(rig *r, const bench_options *options, bench_result *result,
                          iso_error *error)
{
    static const uint32_t block[16];
    double times[RUNS_MAX], spent = 0.0;
    uint32_t runs = 0;

    while (runs < options->runs && runs < RUNS_MAX && (runs < 3 || spent < options->seconds_max)) {
        const iso_launch launch = {runs, block, sizeof block};
        const double start = now();

        ISO_TRY(r->backend->launch(r->program[runs % r->copies], r->stream, &launch, error));
        ISO_TRY(r->backend->event_wait(r->event, runs + 1, UINT64_MAX, error));
        times[runs] = now() - start;
        spent += times[runs++];
    }
    result->seconds = median(times, runs);
    result->runs = runs;
    return ISO_OK;
}

/* The weight and its scales, or all inputs of an operator without weights. */
static uint64_t read_bytes(const bench_case *test, const iso_op_call *call)
{
    uint64_t bytes = 0;

    for (int32_t i = 0; i < ISO_OP_INPUTS_MAX; i++)
        if (test->weight < 0 || i == test->weight || i == test->weight_scale)
            bytes += iso_desc_bytes(&call->in[i]);
    return bytes;
}

/* What a plan puts into a step: the backend decides by it whether threads pay. */
static uint64_t operand_bytes(const iso_op_call *call)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < ISO_OP_INPUTS_MAX; i++)
        bytes += iso_desc_bytes(&call->in[i]);
    for (uint32_t i = 0; i < ISO_OP_OUTPUTS_MAX; i++)
        bytes += iso_desc_bytes(&call->out[i]);
    return bytes;
}

/* The same call with packed weights; false: the operator has none. */
static bool packed_call(const iso_op_call *plain, iso_op_call *packed)
{
    bool has_weights = false;

    *packed = *plain;
    for (uint32_t i = 0; i < plain->op->input_count; i++)
        if (iso_op_is_weight(plain->op, i) && iso_desc_present(&plain->in[i])) {
            packed->in[i].layout = ISO_LAYOUT_ROWS32;
            has_weights = true;
        }
    return has_weights;
}

/* The call in the layout asked for, and its kernel; "auto" takes the better row, as an engine does.
 * An operator without weights is plain whatever was asked for. */
static iso_status choose(rig *r, const bench_options *options, const bench_case *test,
                         iso_support *support, iso_error *error)
{
    const bool is_forced = strcmp(options->layout, "rows32") == 0;
    iso_op_call packed;
    iso_support other;

    r->call = test->call;
    r->backend->query(r->device, &test->call, ISO_CLASS_EXACT, support);
    if (strcmp(options->layout, "plain") != 0 && packed_call(&test->call, &packed)) {
        r->backend->query(r->device, &packed, ISO_CLASS_EXACT, &other);
        if (is_forced || (other.ok && other.kernel_index < support->kernel_index)) {
            r->call = packed;
            *support = other;
        }
    }
    if (!support->ok)
        return iso_fail(error, ISO_UNSUPPORTED, "no kernel in layout %s: %.120s", options->layout,
                        support->text[0] != '\0' ? support->text
                                                 : iso_reason_text(support->reason));
    return r->call.op->infer(&r->call, error);
}

static const char *layout_of(const iso_op_call *call)
{
    for (uint32_t i = 0; i < call->op->input_count; i++)
        if (iso_op_is_weight(call->op, i) && iso_desc_present(&call->in[i]))
            return iso_layout_name(call->in[i].layout);
    return "-";
}

static iso_status run(rig *r, const bench_options *options, const bench_case *test,
                      bench_result *result, iso_error *error)
{
    const iso_backend_options backend = {options->thread_count, options->reference_only,
                                         options->isa};
    iso_support support;
    iso_step step = {.kind = ISO_STEP_OP, .name = test->name, .op = test->call.op};
    uint64_t bytes;

    ISO_TRY(iso_backend_open_device("cpu", &backend, &r->backend, &r->device, error));
    ISO_TRY(choose(r, options, test, &support, error));
    bytes = read_bytes(test, &r->call);
    r->copies = test->weight < 0 ? 1 : (uint32_t)(options->cycle_bytes / bytes) + 1;
    r->copies = r->copies > COPIES_MAX ? COPIES_MAX : r->copies;
    ISO_TRY(r->backend->stream_create(r->device, ISO_STREAM_COMPUTE, &r->stream, error));
    ISO_TRY(r->backend->event_create(r->device, &r->event, error));
    step.kernel_index = support.kernel_index;
    step.bytes = operand_bytes(&r->call);
    r->call.op->fill(&r->call, step.args);
    ISO_TRY(take_tensors(r, test, &step, error));
    ISO_TRY(record(r, test, &step, error));
    ISO_TRY(measure(r, options, result, error));
    result->name = test->name;
    result->kernel = support.kernel;
    result->layout = layout_of(&r->call);
    result->bytes = bytes;
    result->gigabytes = (double)bytes / result->seconds * 1e-9;
    result->gigaflops = test->operations / result->seconds * 1e-9;
    return ISO_OK;
}

iso_status bench_run(const bench_options *options, const bench_case *test, bench_result *result,
                     iso_error *error)
{
    rig r = {0};
    const iso_status status = run(&r, options, test, result, error);

    for (uint32_t i = 0; i < r.copies && i < COPIES_MAX; i++)
        if (r.program[i] != NULL)
            r.backend->program_destroy(&r.program[i]);
    for (uint32_t i = 0; i < r.buffer_count; i++)
        r.backend->buffer_destroy(&r.buffer[i]);
    if (r.event != NULL)
        r.backend->event_destroy(&r.event);
    if (r.stream != NULL)
        r.backend->stream_destroy(&r.stream);
    if (r.device != NULL)
        r.backend->close(&r.device);
    return status;
}
