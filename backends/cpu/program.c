/* Programs: steps with every address resolved, run one after the other by launch. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/fused.h"
#include "backends/cpu/kernels.h"

#include "core/alloc.h"

#include <string.h>

/* References have no measured grain: so many pieces balance any number of cores a machine has.
 *
 * Work is estimated as bytes of the operands times live rows: right for a matmul, too much for the
 * rest. Below STEP_WORK_MIN (about 0.3 ms of one core) a step runs in one thread, and a launch
 * whose other steps have less than TEAM_WORK_MIN together runs without helpers: they would gain
 * little, and waiting for them costs milliseconds when other programs use the cores (a tiny model
 * decoded 20 times slower on two such cores). */
enum { REFERENCE_PIECES = 64, STEP_WORK_MIN = 1 << 19, TEAM_WORK_MIN = 1 << 22 };

typedef struct cpu_op {
    const char *name;
    const iso_op *op;
    iso_kernel_fn *kernel;
    void *at[ISO_STEP_TENSORS_MAX];
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX];
} cpu_op;

typedef struct cpu_step {
    iso_step_kind kind;
    const char *name;
    cpu_op *ops;                         /* one, or the parts of a fusion */
    uint32_t op_count;
    const iso_cpu_form *form;            /* of a fusion */
    uint64_t grain;                      /* 0: by the number of units */
    uint64_t bytes;
    void *at[2];                         /* COPY, FILL */
    uint32_t value;
    iso_event *event;
    uint64_t event_value;
} cpu_step;

struct iso_program {
    iso_cpu_object object;
    cpu_step *steps;
    uint32_t step_count;
    cpu_op *ops;
    uint32_t op_count, op_capacity;
    iso_cpu_block *block;                /* the launch's copy */
};

static iso_cpu_block *take_block(iso_device *device, uint64_t bytes)
{
    iso_cpu_block *block;

    for (block = device->blocks; block != NULL && block->bytes != bytes; block = block->next)
        ;
    if (block == NULL) {
        block = iso_alloc_zero(1, sizeof *block, "cpu argument block");
        if (block != NULL && bytes != 0 && bytes <= SIZE_MAX / 2)
            block->data = iso_alloc((size_t)bytes, ISO_CPU_ALIGN, "cpu argument block");
        if (block == NULL || (block->data == NULL && bytes != 0)) {
            iso_release(block, sizeof *block);
            return NULL;
        }
        block->bytes = bytes;
        block->next = device->blocks;
        device->blocks = block;
    }
    block->program_count++;
    return block;
}

static void leave_block(iso_device *device, iso_cpu_block *block)
{
    iso_cpu_block **link = &device->blocks;

    if (block == NULL || --block->program_count != 0)
        return;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    iso_release(block->data, (size_t)block->bytes);
    iso_release(block, sizeof *block);
}

/* Address of a slice; `bytes` of it must be there. */
static iso_status resolve(const iso_program *program, const iso_step *step, uint32_t index,
                          uint64_t bytes, void **at, iso_error *error)
{
    const iso_slice *slice = &step->tensor[index];
    const uint64_t whole = slice->buffer == NULL ? program->block->bytes : slice->buffer->bytes;

    if (slice->buffer != NULL && slice->buffer->object.device != program->object.device)
        return iso_fail(error, ISO_BAD_DEVICE, "step %s: operand %u is of another device",
                        step->name, index);
    if (slice->offset > whole || bytes > whole - slice->offset)
        return iso_fail(error, ISO_BAD_ARGUMENT,
                        "step %s: operand %u is [%llu, +%llu) of %llu bytes", step->name, index,
                        (unsigned long long)slice->offset, (unsigned long long)bytes,
                        (unsigned long long)whole);
    *at = (slice->buffer == NULL ? program->block->data : slice->buffer->data) + slice->offset;
    return ISO_OK;
}

static iso_status check_written(const iso_step *step, uint32_t index, iso_error *error)
{
    const iso_buffer *buffer = step->tensor[index].buffer;

    if (buffer == NULL || buffer->is_import)
        return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: operand %u is %s, it cannot be written",
                        step->name, index, buffer == NULL ? "in the argument block" : "an import");
    return ISO_OK;
}

/* The next operator of the program. */
static iso_status record_op(iso_program *program, const iso_step *step, iso_error *error)
{
    const iso_op *op = step->op;
    const uint32_t count = iso_cpu_kernel_count();
    const uint32_t operands = op->input_count + op->output_count
                            + ((op->flags & ISO_OP_SCRATCH) != 0);
    cpu_op *made = &program->ops[program->op_count++];

    ISO_ASSERT(program->op_count <= program->op_capacity);
    if (step->tensor_count != operands || step->kernel_index > count
        || (step->kernel_index < count
            && strcmp(iso_cpu_kernel_rows()[step->kernel_index].op, op->name) != 0))
        return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: kernel %u and %u operands for %s",
                        step->name, step->kernel_index, step->tensor_count, op->name);
    made->name = step->name;
    made->op = op;
    made->kernel = step->kernel_index < count ? iso_cpu_kernel_function(step->kernel_index)
                                              : op->reference;
    memcpy(made->args, step->args, op->args_bytes);
    for (uint32_t i = 0; i < operands; i++) {
        if (!step->present[i])
            continue;
        ISO_TRY(resolve(program, step, i, 0, &made->at[i], error));
        if (i >= op->input_count)
            ISO_TRY(check_written(step, i, error));
    }
    return ISO_OK;
}

static uint64_t grain_of(const iso_step *step)
{
    return step->kernel_index < iso_cpu_kernel_count() ? iso_cpu_kernel_grain(step->kernel_index)
                                                       : 0;
}

static iso_status record_fused(iso_program *program, const iso_step *step, cpu_step *made,
                               iso_error *error)
{
    const iso_fusion *fusion = step->fusion;

    if (fusion == NULL || step->parts == NULL || fusion->part_count > ISO_FUSION_PARTS_MAX
        || step->kernel_index >= iso_cpu_fused_count()
        || strcmp(iso_cpu_fused_name(step->kernel_index), fusion->name) != 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: fused kernel %u for %s", step->name,
                        step->kernel_index, fusion == NULL ? "no fusion" : fusion->name);
    made->form = iso_cpu_fused_form(step->kernel_index);
    made->grain = iso_cpu_fused_grain(step->kernel_index);
    made->op_count = fusion->part_count;
    for (uint32_t k = 0; k < fusion->part_count; k++) {
        if (step->parts[k].kind != ISO_STEP_OP
            || strcmp(step->parts[k].op->name, fusion->part[k]) != 0)
            return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: part %u of %s is not %s",
                            step->name, k, fusion->name, fusion->part[k]);
        ISO_TRY(record_op(program, &step->parts[k], error));
    }
    return ISO_OK;
}

static iso_status record_bytes(const iso_program *program, const iso_step *step, cpu_step *made,
                               iso_error *error)
{
    const uint32_t operands = step->kind == ISO_STEP_COPY ? 2 : 1;

    if (step->tensor_count != operands || (operands == 1 && step->bytes % 4 != 0))
        return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: %u operands, %llu bytes", step->name,
                        step->tensor_count, (unsigned long long)step->bytes);
    for (uint32_t i = 0; i < operands; i++)
        ISO_TRY(resolve(program, step, i, step->bytes, &made->at[i], error));
    return check_written(step, operands - 1, error);
}

static iso_status record_step(iso_program *program, const iso_step *step, cpu_step *made,
                              iso_error *error)
{
    *made = (cpu_step){.kind = step->kind, .name = step->name, .bytes = step->bytes,
                       .value = step->value, .event = step->event,
                       .event_value = step->event_value,
                       .ops = program->ops + program->op_count};
    switch (step->kind) {
    case ISO_STEP_OP:
        made->op_count = 1;
        made->grain = grain_of(step);
        return record_op(program, step, error);
    case ISO_STEP_FUSED:
        return record_fused(program, step, made, error);
    case ISO_STEP_COPY:
    case ISO_STEP_FILL:
        return record_bytes(program, step, made, error);
    case ISO_STEP_WAIT:
    case ISO_STEP_SIGNAL:
        if (step->event == NULL)
            return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: no event", step->name);
        if (step->event->object.device != program->object.device)
            return iso_fail(error, ISO_BAD_DEVICE, "step %s: event of another device",
                            step->name);
        return ISO_OK;
    default:
        return iso_fail(error, ISO_BAD_ARGUMENT, "step %s: unknown kind %d", step->name,
                        (int)step->kind);
    }
}

static void release_program(iso_program *program)
{
    iso_release(program->steps, program->step_count * sizeof *program->steps);
    iso_release(program->ops, program->op_capacity * sizeof *program->ops);
    leave_block(program->object.device, program->block);
    iso_release(program, sizeof *program);
}

static uint32_t count_ops(const iso_step *steps, uint32_t count)
{
    uint32_t ops = 0;

    for (uint32_t i = 0; i < count; i++)
        ops += steps[i].kind == ISO_STEP_OP ? 1
             : steps[i].kind == ISO_STEP_FUSED && steps[i].fusion != NULL
                 ? steps[i].fusion->part_count : 0;
    return ops;
}

iso_status iso_cpu_record(iso_device *device, const iso_step *steps, uint32_t count,
                          uint64_t block_bytes, iso_program **program, iso_error *error)
{
    iso_program *made = iso_alloc_zero(1, sizeof *made, "cpu program");
    iso_status status = ISO_OK;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory for a program");
    made->object.device = device;
    made->step_count = count;
    made->steps = iso_alloc_zero(count, sizeof *made->steps, "cpu steps");
    made->op_capacity = count_ops(steps, count);
    made->ops = iso_alloc_zero((size_t)made->op_capacity, sizeof *made->ops, "cpu steps");
    made->block = take_block(device, block_bytes);
    if ((made->steps == NULL && count != 0) || (made->ops == NULL && made->op_capacity != 0)
        || made->block == NULL)
        status = iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory for a program");
    for (uint32_t i = 0; i < count && status == ISO_OK; i++)
        status = record_step(made, &steps[i], &made->steps[i], error);
    if (status != ISO_OK) {
        release_program(made);
        return status;
    }
    iso_cpu_enlist(device, &made->object, "program", count != 0 ? made->steps[0].name : "");
    *program = made;
    return ISO_OK;
}

void iso_cpu_program_destroy(iso_program **program)
{
    iso_program *p = program == NULL ? NULL : *program;

    if (p == NULL)
        return;
    iso_cpu_delist(&p->object);
    release_program(p);
    *program = NULL;
}

/* Args of an operator for this launch: live.count is the number of rows that exist. */
static iso_live resolve_args(const iso_program *program, const cpu_op *op,
                             unsigned char args[ISO_OP_ARGS_MAX])
{
    iso_live live;

    memcpy(args, op->args, ISO_OP_ARGS_MAX);
    memcpy(&live, args, sizeof live);
    live.count = iso_live_resolve(live, (const uint32_t *)(const void *)program->block->data);
    memcpy(args, &live, sizeof live);
    return live;
}

static uint64_t work_of(const cpu_step *step, iso_live live)
{
    uint64_t work;

    return iso_mul_u64(step->bytes, live.count, &work) ? work : UINT64_MAX;
}

static uint64_t grain_for(const cpu_step *step, iso_live live, uint64_t units)
{
    const uint64_t grain = step->grain != 0 ? step->grain : units / REFERENCE_PIECES + 1;

    return work_of(step, live) < STEP_WORK_MIN && grain < units ? units : grain;
}

static void keep_failure(iso_stream *stream, const cpu_op *op, uint32_t flags)
{
    if (flags == 0 || stream->failure.status != ISO_OK)
        return;
    stream->failure.status = (flags & ISO_FLAG_INDEX) != 0 ? ISO_BAD_INDEX : ISO_RANGE_ERROR;
    stream->failure.step = op->name;
    stream->failure.op = op->op->name;
}

static void run_op(const iso_program *program, const cpu_step *step, iso_stream *stream)
{
    const cpu_op *op = step->ops;
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX];
    const iso_live live = resolve_args(program, op, args);
    uint32_t flags = 0;
    const iso_tensors tensors = {op->at, (const uint32_t *)(const void *)program->block->data,
                                 &flags};
    const uint64_t units = op->op->units(args);

    iso_team_run(program->object.device->team, units, grain_for(step, live, units), op->kernel,
                 args, &tensors);
    keep_failure(stream, op, flags);
}

/* The first part that raises a flag is reported, as when the parts run one by one. */
static void run_fused(const iso_program *program, const cpu_step *step, iso_stream *stream)
{
    uint32_t flags[ISO_FUSION_PARTS_MAX] = {0};
    iso_cpu_fused fused;
    iso_live live = {0};
    uint64_t units;

    fused.part_count = step->op_count;
    for (uint32_t k = 0; k < step->op_count; k++) {
        const cpu_op *op = &step->ops[k];
        iso_cpu_part *part = &fused.part[k];

        live = resolve_args(program, op, part->args);
        part->kernel = op->kernel;
        part->tensors = (iso_tensors){
            op->at, (const uint32_t *)(const void *)program->block->data, &flags[k]};
        part->units = op->op->units(part->args);
        part->live = live.count;
    }
    units = step->form->units(&fused);
    iso_team_run(program->object.device->team, units, grain_for(step, live, units),
                 step->form->run, &fused, NULL);
    for (uint32_t k = 0; k < step->op_count; k++)
        keep_failure(stream, &step->ops[k], flags[k]);
}

/* Whether helpers are worth it in this launch. */
static bool needs_team(const iso_program *program)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < program->step_count && total < TEAM_WORK_MIN; i++) {
        const cpu_step *step = &program->steps[i];
        _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX];
        uint64_t work;

        if (step->op_count == 0)
            continue;
        work = work_of(step, resolve_args(program, step->ops, args));
        if (work >= STEP_WORK_MIN && !iso_add_u64(total, work, &total))
            return true;
    }
    return total >= TEAM_WORK_MIN;
}

static void fill(const cpu_step *step)
{
    unsigned char *out = step->at[0];

    for (uint64_t i = 0; i < step->bytes; i += 4)
        memcpy(out + i, &step->value, 4);
}

static iso_status run_step(const iso_program *program, const cpu_step *step, iso_stream *stream,
                           uint64_t epoch, iso_error *error)
{
    switch (step->kind) {
    case ISO_STEP_OP:
        run_op(program, step, stream);
        return ISO_OK;
    case ISO_STEP_FUSED:
        run_fused(program, step, stream);
        return ISO_OK;
    case ISO_STEP_COPY:
        memmove(step->at[1], step->at[0], (size_t)step->bytes);
        return ISO_OK;
    case ISO_STEP_FILL:
        fill(step);
        return ISO_OK;
    case ISO_STEP_WAIT:
        iso_cpu_event_reach(step->event, epoch + step->event_value);
        return ISO_OK;
    default:
        return iso_cpu_event_advance(step->event, epoch + step->event_value, stream, error);
    }
}

typedef struct launch_work {
    const iso_program *program;
    iso_stream *stream;
    uint64_t epoch;
    iso_status status;
    iso_error *error;
} launch_work;

static void run_steps(void *context)
{
    launch_work *work = context;
    const iso_program *program = work->program;

    for (uint32_t i = 0; i < program->step_count && work->status == ISO_OK; i++)
        work->status = run_step(program, &program->steps[i], work->stream, work->epoch,
                                work->error);
}

iso_status iso_cpu_launch(iso_program *program, iso_stream *stream, const iso_launch *launch,
                          iso_error *error)
{
    launch_work work = {program, stream, launch->epoch, ISO_OK, error};

    if (stream->object.device != program->object.device)
        return iso_fail(error, ISO_BAD_DEVICE, "cpu: stream of another device");
    if (launch->block_bytes != program->block->bytes)
        return iso_fail(error, ISO_BAD_ARGUMENT, "cpu: argument block of %llu bytes, %llu expected",
                        (unsigned long long)launch->block_bytes,
                        (unsigned long long)program->block->bytes);
    if (program->block->bytes != 0)
        memcpy(program->block->data, launch->block, (size_t)program->block->bytes);
    iso_team_enter(program->object.device->team, needs_team(program), run_steps, &work);
    return work.status;
}
