/* Binding memory and making the programs of a plan. */
#include "core/plan_parts.h"

#include "core/alloc.h"

#include <string.h>

typedef struct recorder {
    iso_plan *plan;
    const iso_binding *binding;
    iso_step *steps;             /* [node_count + output_count + 1] */
    uint32_t step_count;
    iso_step *parts;             /* [node_count], of fused steps */
    uint32_t part_count;
} recorder;

static iso_status no_memory(iso_error *error)
{
    return iso_fail(error, ISO_NO_MEMORY, "plan: out of memory while recording");
}

static iso_status bind_outside(const recorder *r, const iso_value_info *info, iso_slice *slice,
                               iso_error *error)
{
    const bool is_weight = info->kind == ISO_VALUE_WEIGHT;
    iso_slice (*find)(void *, uint32_t) = is_weight ? r->binding->weight : r->binding->state;

    *slice = find == NULL ? (iso_slice){0} : find(r->binding->context, info->id);
    if (slice->buffer == NULL)
        return iso_fail(error, ISO_BAD_TENSOR, "plan: %s %s (id %u) is not bound",
                        is_weight ? "weight" : "state", info->name, info->id);
    return ISO_OK;
}

static iso_slice slice_of(const recorder *r, const iso_place_of *place)
{
    switch (place->area) {
    case ISO_AREA_WORKSPACE:
        return (iso_slice){r->binding->workspace, place->offset};
    case ISO_AREA_OUTPUT:
        return (iso_slice){r->plan->output_buffer, place->offset};
    default:
        ISO_ASSERT(place->area == ISO_AREA_BLOCK);
        return (iso_slice){NULL, place->offset};
    }
}

static iso_status bind_value(const recorder *r, iso_value value, iso_step *step, uint32_t at,
                             iso_error *error)
{
    iso_value_info info;

    if (value == 0 || r->plan->values[value].area == ISO_AREA_NONE)
        return ISO_OK;
    step->present[at] = true;
    iso_graph_value(r->plan->graph, value, &info);
    iso_graph_value(r->plan->graph, info.storage, &info);
    if (info.kind == ISO_VALUE_WEIGHT || info.kind == ISO_VALUE_STATE)
        return bind_outside(r, &info, &step->tensor[at], error);
    step->tensor[at] = slice_of(r, &r->plan->values[value]);
    return ISO_OK;
}

static iso_status make_op(const recorder *r, uint32_t node, iso_step *step, iso_error *error)
{
    uint64_t read, written;
    uint32_t at = 0;
    iso_node_info info;
    const iso_op *op;

    iso_graph_node(r->plan->graph, node, &info);
    iso_plan_node_bytes(r->plan, node, &read, &written);
    op = info.call->op;
    *step = (iso_step){.kind = ISO_STEP_OP, .name = info.name, .op = op, .bytes = read + written,
                       .kernel_index = r->plan->placements[node].support.kernel_index};
    for (uint32_t i = 0; i < op->input_count; i++, at++)
        ISO_TRY(bind_value(r, info.inputs[i], step, at, error));
    for (uint32_t i = 0; i < op->output_count; i++, at++)
        ISO_TRY(bind_value(r, info.outputs[i], step, at, error));
    if (op->flags & ISO_OP_SCRATCH) {
        step->present[at] = true;
        step->tensor[at++] = slice_of(r, &r->plan->scratch[node]);
    }
    step->tensor_count = at;
    op->fill(info.call, step->args);
    return ISO_OK;
}

static iso_status add_step(recorder *r, const iso_fuse_step *from, iso_error *error)
{
    const uint32_t *nodes = r->plan->steps.order + from->first;
    iso_step *step = &r->steps[r->step_count];
    iso_step *parts = r->parts + r->part_count;
    uint64_t read, written;

    if (from->fused == NULL) {
        ISO_TRY(make_op(r, nodes[0], step, error));
    } else {
        iso_plan_step_bytes(r->plan, from, &read, &written);
        *step = (iso_step){.kind = ISO_STEP_FUSED, .fusion = from->fused->fusion, .parts = parts,
                           .bytes = read + written,
                           .kernel_index = from->fused->support.kernel_index};
        for (uint32_t k = 0; k < from->count; k++)
            ISO_TRY(make_op(r, nodes[k], &parts[k], error));
        step->name = parts[0].name;
        r->part_count += from->count;
    }
    r->step_count++;
    return ISO_OK;
}

static void add_output_copies(recorder *r)
{
    for (uint32_t i = 0; r->plan->copies_outputs && i < r->plan->output_count; i++) {
        iso_step *step = &r->steps[r->step_count];
        const char *name;
        iso_value value;

        iso_graph_output_at(r->plan->graph, i, &name, &value);
        if (r->plan->outputs[i].bytes == 0)
            continue;
        *step = (iso_step){.kind = ISO_STEP_COPY, .name = name, .tensor_count = 2,
                           .present = {true, true}, .bytes = r->plan->outputs[i].bytes};
        step->tensor[0] = slice_of(r, &r->plan->values[value]);
        step->tensor[1] = slice_of(r, &r->plan->outputs[i]);
        r->step_count++;
    }
}

/* Ends the steps gathered so far with SIGNAL 1 and makes a program of them. Each program's epoch is
 * one more than that of the program before it. */
static iso_status end_program(recorder *r, iso_error *error)
{
    iso_plan *plan = r->plan;

    ISO_ASSERT(plan->program_count < plan->program_capacity);
    r->steps[r->step_count++] = (iso_step){.kind = ISO_STEP_SIGNAL, .name = "end",
                                           .event = plan->event, .event_value = 1};
    ISO_TRY(plan->device.backend->record(plan->device.device, r->steps, r->step_count,
                                         plan->needs.block_bytes,
                                         &plan->programs[plan->program_count], error));
    plan->program_count++;
    r->step_count = r->part_count = 0;
    return ISO_OK;
}

static iso_status record_poison(recorder *r, iso_error *error)
{
    iso_plan *plan = r->plan;
    const iso_step fills[2] = {
        {.kind = ISO_STEP_FILL, .name = "poison workspace", .tensor_count = 1, .present = {true},
         .tensor = {{r->binding->workspace, 0}}, .bytes = plan->needs.workspace_bytes,
         .value = UINT32_MAX},
        {.kind = ISO_STEP_FILL, .name = "poison outputs", .tensor_count = 1, .present = {true},
         .tensor = {{plan->output_buffer, 0}}, .bytes = plan->needs.output_bytes,
         .value = UINT32_MAX},
    };

    return plan->device.backend->record(plan->device.device, fills, 2, plan->needs.block_bytes,
                                        &plan->poison, error);
}

static iso_status record_programs(recorder *r, iso_error *error)
{
    iso_plan *plan = r->plan;

    for (uint32_t i = 0; i < plan->steps.step_count; i++) {
        ISO_TRY(add_step(r, &plan->steps.steps[i], error));
        if (plan->options.step_by_step)
            ISO_TRY(end_program(r, error));
    }
    add_output_copies(r);
    if (r->step_count != 0 || plan->program_count == 0)
        ISO_TRY(end_program(r, error));
    return record_poison(r, error);
}

/* Everything but the programs. */
static iso_status take_resources(recorder *r, iso_error *error)
{
    iso_plan *plan = r->plan;
    const iso_backend *backend = plan->device.backend;
    const iso_buffer_spec spec = {
        .kind = plan->copies_outputs ? ISO_MEMORY_PINNED : ISO_MEMORY_SHARED,
        .bytes = plan->needs.output_bytes, .alignment = 64, .tag = "plan outputs",
    };
    void *host;

    plan->program_capacity = plan->options.step_by_step ? plan->node_count + 1 : 1;
    plan->programs = iso_alloc_zero(plan->program_capacity, sizeof *plan->programs,
                                    "plan programs");
    plan->block = iso_alloc_zero(1, (size_t)plan->needs.block_bytes, "argument block");
    r->steps = iso_alloc_zero((size_t)plan->node_count + plan->output_count + 1,
                              sizeof *r->steps, "plan steps");
    r->parts = iso_alloc_zero((size_t)plan->node_count + 1, sizeof *r->parts, "plan steps");
    if (plan->programs == NULL || plan->block == NULL || r->steps == NULL || r->parts == NULL)
        return no_memory(error);
    ISO_TRY(backend->buffer_create(plan->device.device, &spec, &plan->output_buffer, error));
    ISO_TRY(backend->buffer_map(plan->output_buffer, &host, error));
    plan->output_host = host;
    if (plan->options.step_by_step && !plan->copies_outputs) {
        ISO_TRY(backend->buffer_map(r->binding->workspace, &host, error));
        plan->workspace_host = host;
    }
    ISO_TRY(backend->event_create(plan->device.device, &plan->event, error));
    return backend->stream_create(plan->device.device, ISO_STREAM_COMPUTE, &plan->stream, error);
}

iso_status iso_plan_record(iso_plan *plan, const iso_binding *binding, iso_error *error)
{
    recorder r = {.plan = plan, .binding = binding};
    iso_status status;

    if (plan->block != NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "plan: recorded already");
    if (binding->workspace == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "plan: a workspace of %llu bytes is needed",
                        (unsigned long long)plan->needs.workspace_bytes);
    status = take_resources(&r, error);
    if (status == ISO_OK)
        status = record_programs(&r, error);
    iso_release(r.parts, ((size_t)plan->node_count + 1) * sizeof *r.parts);
    iso_release(r.steps, ((size_t)plan->node_count + plan->output_count + 1) * sizeof *r.steps);
    if (status != ISO_OK)
        iso_plan_unrecord(plan);
    return status;
}

void iso_plan_unrecord(iso_plan *plan)
{
    const iso_backend *backend = plan->device.backend;

    if (backend == NULL)
        return;
    for (uint32_t i = 0; i < plan->program_count; i++)
        backend->program_destroy(&plan->programs[i]);
    backend->program_destroy(&plan->poison);
    backend->stream_destroy(&plan->stream);
    backend->event_destroy(&plan->event);
    backend->buffer_destroy(&plan->output_buffer);
    iso_release(plan->programs, plan->program_capacity * sizeof *plan->programs);
    iso_release(plan->block, (size_t)plan->needs.block_bytes);
    plan->programs = NULL;
    plan->block = NULL;
    plan->program_count = plan->program_capacity = 0;
    plan->output_host = plan->workspace_host = NULL;
    plan->epoch = 0;
}

void *iso_plan_block(iso_plan *plan)
{
    ISO_ASSERT(plan->block != NULL);
    return plan->block;
}

const void *iso_plan_output(const iso_plan *plan, uint32_t index)
{
    ISO_ASSERT(plan->output_host != NULL && index < plan->output_count);
    return plan->output_host + plan->outputs[index].offset;
}
