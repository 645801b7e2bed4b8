/* bench_rig: one case on a device. Weights have copies that lie one behind the other; a program has
 * a step for each of several copies, and the programs together have all of them. */
#include "apps/bench/bench.h"

#include "core/backends.h"
#include "core/rows32.h"

#include <stdlib.h>
#include <string.h>

/* A program of so many bytes takes a few milliseconds: launching it costs some microseconds. */
enum { PROGRAM_BYTES = 64 << 20, COPY_ALIGN = 4096, SCALES = 1, CYCLED = 2 };
/* Steps of an operator without weights. */
enum { SMALL_STEPS = 16, LONG_OPERATIONS = 1000 * 1000 * 1000 };

/* Copies of the weight or of its scales. */
typedef struct cycled {
    int32_t input;                       /* -1: none */
    iso_buffer *buffer;
    unsigned char *host;
    uint64_t bytes, stride;              /* of one copy */
} cycled;

struct bench_rig {
    const bench_case *test;
    const iso_backend *backend;
    iso_device *device;
    iso_stream *stream;
    iso_event *event;
    iso_buffer *buffer[ISO_STEP_TENSORS_MAX];
    uint32_t buffer_count;
    cycled cycle[CYCLED];
    iso_program **program;
    iso_step *steps;                     /* of one program, and its signal */
    uint32_t program_count, step_count;
    uint64_t copies;                     /* of the weights */
    bool is_cycled;                      /* false: all steps read the same copy */
    uint32_t next;                       /* program */
    uint64_t launches;
    iso_op_call call;                    /* the case's, its weights in the layout that is timed */
    iso_support support;
    uint64_t bytes;                      /* that a step reads */
    uint32_t threads;
    void *input[ISO_OP_INPUTS_MAX];      /* host addresses of the first copy */
};

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
            ((int32_t *)data)[i] = (int32_t)(i % test->index_count);
}

/* Fills one input, and packs it where its layout says so. */
static iso_status fill_input(const bench_rig *r, const bench_case *test, uint32_t input, void *host,
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
static iso_status choose(bench_rig *r, const bench_options *options, const bench_case *test,
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

static iso_status take_buffer(bench_rig *r, uint64_t bytes, iso_buffer **buffer, void **host,
                              iso_error *error)
{
    const iso_buffer_spec spec = {ISO_MEMORY_SHARED, bytes, COPY_ALIGN, "bench"};

    ISO_TRY(r->backend->buffer_create(r->device, &spec, buffer, error));
    r->buffer[r->buffer_count++] = *buffer;
    return r->backend->buffer_map(*buffer, host, error);
}

/* An operand that all steps share, or (input -1) an output. */
static iso_status take(bench_rig *r, const iso_tensor_desc *desc, int32_t input, iso_slice *slice,
                       iso_error *error)
{
    void *host = NULL;

    *slice = (iso_slice){NULL, 0};
    ISO_TRY(take_buffer(r, iso_desc_bytes(desc), &slice->buffer, &host, error));
    if (input < 0)
        return ISO_OK;
    r->input[input] = host;
    return fill_input(r, r->test, (uint32_t)input, host, error);
}

static iso_status take_cycled(bench_rig *r, cycled *c, iso_slice *slice, iso_error *error)
{
    const uint64_t copies = r->copies;
    void *host = NULL;

    c->bytes = iso_desc_bytes(&r->call.in[c->input]);
    c->stride = (c->bytes + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN;
    ISO_TRY(take_buffer(r, copies * c->stride, &c->buffer, &host, error));
    c->host = host;
    r->input[c->input] = host;
    ISO_TRY(fill_input(r, r->test, (uint32_t)c->input, host, error));
    for (uint64_t copy = 1; copy < copies; copy++)
        memcpy(c->host + copy * c->stride, host, c->bytes);
    *slice = (iso_slice){c->buffer, 0};
    return ISO_OK;
}

static iso_status take_input(bench_rig *r, uint32_t input, iso_slice *slice, iso_error *error)
{
    for (uint32_t i = 0; i < CYCLED; i++)
        if (r->cycle[i].input == (int32_t)input)
            return take_cycled(r, &r->cycle[i], slice, error);
    return take(r, &r->call.in[input], (int32_t)input, slice, error);
}

static iso_status take_tensors(bench_rig *r, iso_step *step, iso_error *error)
{
    const iso_op *op = r->call.op;
    const iso_case *source = r->test->source;
    uint32_t at = 0;

    for (uint32_t i = 0; i < op->input_count; i++, at++) {
        step->present[at] = iso_desc_present(&r->call.in[i]);
        if (step->present[at])
            ISO_TRY(take_input(r, i, &step->tensor[at], error));
    }
    for (uint32_t i = 0; i < op->output_count; i++, at++) {
        step->present[at] = true;
        ISO_TRY(take(r, &r->call.out[i], -1, &step->tensor[at], error));
    }
    if (op->flags & ISO_OP_SCRATCH) {
        const iso_tensor_desc scratch = op->scratch(&r->call);

        step->present[at] = true;
        ISO_TRY(take(r, &scratch, -1, &step->tensor[at++], error));
    }
    if (source != NULL && source->make != NULL)
        source->make(source, r->input);
    step->tensor_count = at;
    return ISO_OK;
}

/* As many steps as PROGRAM_BYTES of weights, as many programs as cycle_bytes. A step that takes
 * milliseconds by itself is a program. What is not cycled stays in the caches. */
static void count_steps(bench_rig *r, uint64_t cycle_bytes)
{
    const uint64_t program_bytes = cycle_bytes < PROGRAM_BYTES ? cycle_bytes : PROGRAM_BYTES;

    r->is_cycled = r->test->weight >= 0 && cycle_bytes != 0;
    r->step_count = r->is_cycled ? (uint32_t)(program_bytes / r->bytes) + 1 : SMALL_STEPS;
    if (r->test->operations > LONG_OPERATIONS)
        r->step_count = 1;
    r->program_count = 1;
    r->copies = 1;
    if (!r->is_cycled)
        return;
    r->program_count = (uint32_t)(cycle_bytes / (r->step_count * r->bytes)) + 1;
    r->copies = (uint64_t)r->program_count * r->step_count;
}

static iso_status record(bench_rig *r, const iso_step *step, iso_error *error)
{
    for (uint32_t p = 0; p < r->program_count; p++) {
        for (uint32_t s = 0; s < r->step_count; s++) {
            const uint64_t copy = ((uint64_t)p * r->step_count + s) % r->copies;

            r->steps[s] = *step;
            for (uint32_t i = 0; i < CYCLED; i++)
                if (r->cycle[i].input >= 0)
                    r->steps[s].tensor[r->cycle[i].input].offset = copy * r->cycle[i].stride;
        }
        r->steps[r->step_count] =
            (iso_step){.kind = ISO_STEP_SIGNAL, .event = r->event, .event_value = 1};
        ISO_TRY(r->backend->record(r->device, r->steps, r->step_count + 1, 64, &r->program[p],
                                   error));
    }
    return ISO_OK;
}

static iso_status build(bench_rig *r, const bench_options *options, iso_error *error)
{
    const iso_backend_options backend = {options->thread_count, options->reference_only,
                                         options->isa, {.is_huge = false}};
    iso_step step = {.kind = ISO_STEP_OP, .name = r->test->name, .op = r->test->call.op};

    ISO_TRY(iso_backend_open_device("cpu", &backend, &r->backend, &r->device, error));
    ISO_TRY(choose(r, options, r->test, &r->support, error));
    ISO_TRY(r->backend->stream_create(r->device, ISO_STREAM_COMPUTE, &r->stream, error));
    ISO_TRY(r->backend->event_create(r->device, &r->event, error));
    r->bytes = read_bytes(r->test, &r->call);
    r->threads = bench_threads(options);
    count_steps(r, options->cycle_bytes);
    r->program = calloc(r->program_count, sizeof(iso_program *));
    r->steps = calloc(r->step_count + 1, sizeof *r->steps);
    if (r->program == NULL || r->steps == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "bench: out of memory for %s", r->test->name);
    step.kernel_index = r->support.kernel_index;
    step.bytes = operand_bytes(&r->call);
    r->call.op->fill(&r->call, step.args);
    ISO_TRY(take_tensors(r, &step, error));
    return record(r, &step, error);
}

iso_status bench_rig_open(const bench_options *options, const bench_case *test, bench_rig **rig,
                          iso_error *error)
{
    bench_rig *r = calloc(1, sizeof *r);
    iso_status status;

    if (r == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "bench: out of memory for %s", test->name);
    r->test = test;
    r->cycle[0].input = test->weight;
    r->cycle[SCALES].input = test->weight_scale;
    status = build(r, options, error);
    if (status != ISO_OK)
        bench_rig_close(&r);
    *rig = r;
    return status;
}

void bench_rig_close(bench_rig **rig)
{
    bench_rig *r = *rig;

    for (uint32_t i = 0; r != NULL && r->program != NULL && i < r->program_count; i++)
        if (r->program[i] != NULL)
            r->backend->program_destroy(&r->program[i]);
    for (uint32_t i = 0; r != NULL && i < r->buffer_count; i++)
        r->backend->buffer_destroy(&r->buffer[i]);
    if (r != NULL && r->event != NULL)
        r->backend->event_destroy(&r->event);
    if (r != NULL && r->stream != NULL)
        r->backend->stream_destroy(&r->stream);
    if (r != NULL && r->device != NULL)
        r->backend->close(&r->device);
    if (r != NULL) {
        free(r->program);
        free(r->steps);
    }
    free(r);
    *rig = NULL;
}

iso_status bench_rig_run(bench_rig *r, double *seconds, iso_error *error)
{
    static const uint32_t block[16];
    const iso_launch launch = {r->launches, block, sizeof block};
    const double start = bench_now();

    ISO_TRY(r->backend->launch(r->program[r->next], r->stream, &launch, error));
    ISO_TRY(r->backend->event_wait(r->event, ++r->launches, UINT64_MAX, error));
    *seconds = (bench_now() - start) / r->step_count;
    r->next = (r->next + 1) % r->program_count;
    return ISO_OK;
}

bench_copies bench_rig_copies(const bench_rig *r, uint32_t program)
{
    const cycled *c = &r->cycle[0];
    const uint64_t from = (uint64_t)(program % r->program_count) * r->step_count * c->stride;

    if (!r->is_cycled)
        return (bench_copies){c->host, 0, r->step_count, 1};
    return (bench_copies){c->host + from, c->stride, r->step_count, r->program_count};
}

const void *bench_rig_input(const bench_rig *r, uint32_t input) { return r->input[input]; }

/* Half of all programs away: neither the last runs nor the last readings were there. */
double bench_rig_read(bench_rig *r, bench_read_fn *read)
{
    const uint32_t program = (r->next + r->program_count / 2) % r->program_count;
    const uint64_t bytes = r->cycle[0].stride * r->step_count / BENCH_READ_PIECE * BENCH_READ_PIECE;
    const unsigned char *from;

    if (r->cycle[0].input < 0 || bytes == 0 || !r->is_cycled)
        return 0.0;
    from = r->cycle[0].host + program * r->step_count * r->cycle[0].stride;
    return (double)bytes / bench_read_seconds(r->threads, read, from, bytes);
}

void bench_rig_describe(const bench_rig *r, bench_result *result)
{
    *result = (bench_result){.name = r->test->name, .kernel = r->support.kernel,
                             .layout = layout_of(&r->call), .bytes = r->bytes,
                             .operations = r->test->operations};
}
