/* Making a plan: place -> fuse -> areas -> lifetimes -> memory plan -> needs -> race check. */
#include "core/plan_parts.h"

#include "core/alloc.h"
#include "core/memplan.h"

#include <string.h>

static iso_status no_memory(iso_error *error)
{
    return iso_fail(error, ISO_NO_MEMORY, "plan: out of memory");
}

uint64_t iso_plan_value_bytes(const iso_plan *plan, iso_value value)
{
    return value == 0 ? 0 : plan->values[value].bytes;
}

void iso_plan_node_bytes(const iso_plan *plan, uint32_t node, uint64_t *read, uint64_t *written)
{
    iso_node_info info;

    iso_graph_node(plan->graph, node, &info);
    *read = *written = 0;
    for (uint32_t i = 0; i < info.call->op->input_count; i++)
        if (i != 0 || !(info.call->op->flags & ISO_OP_UPDATE))
            *read += iso_plan_value_bytes(plan, info.inputs[i]);
    for (uint32_t i = 0; i < info.call->op->output_count; i++)
        *written += iso_plan_value_bytes(plan, info.outputs[i]);
}

/* Whether a node of the step makes the value. */
static bool is_made_in(const iso_plan *plan, const iso_fuse_step *step, iso_value value)
{
    iso_value_info info;

    if (value == 0)
        return false;
    iso_graph_value(plan->graph, value, &info);
    for (uint32_t k = 0; info.kind == ISO_VALUE_RESULT && k < step->count; k++)
        if (plan->steps.order[step->first + k] == info.node)
            return true;
    return false;
}

void iso_plan_step_bytes(const iso_plan *plan, const iso_fuse_step *step, uint64_t *read,
                         uint64_t *written)
{
    *read = *written = 0;
    for (uint32_t k = 0; k < step->count; k++) {
        iso_node_info info;

        iso_graph_node(plan->graph, plan->steps.order[step->first + k], &info);
        for (uint32_t i = 0; i < info.call->op->input_count; i++)
            if ((i != 0 || !(info.call->op->flags & ISO_OP_UPDATE))
                && !is_made_in(plan, step, info.inputs[i]))
                *read += iso_plan_value_bytes(plan, info.inputs[i]);
        for (uint32_t i = 0; i < info.call->op->output_count; i++)
            if (step->fused == NULL || (step->fused->stored[k] & 1u << i) != 0)
                *written += iso_plan_value_bytes(plan, info.outputs[i]);
    }
}

static iso_status allocate(iso_plan *plan, iso_error *error)
{
    plan->placements = iso_alloc_zero((size_t)plan->node_count + 1, sizeof *plan->placements,
                                      "plan placements");
    plan->values = iso_alloc_zero((size_t)plan->value_count + 1, sizeof *plan->values,
                                  "plan values");
    plan->scratch = iso_alloc_zero((size_t)plan->node_count + 1, sizeof *plan->scratch,
                                   "plan scratch");
    plan->outputs = iso_alloc_zero((size_t)plan->output_count + 1, sizeof *plan->outputs,
                                   "plan outputs");
    if (plan->placements == NULL || plan->values == NULL || plan->scratch == NULL
        || plan->outputs == NULL)
        return no_memory(error);
    return ISO_OK;
}

/* The host reads outputs: on a device whose memory the host can read they are written in place,
 * on another one they are copied to pinned memory at the end of the run. */
static iso_status choose_outputs(iso_plan *plan, iso_error *error)
{
    iso_memory_info info;

    ISO_TRY(plan->device.backend->memory(plan->device.device, ISO_MEMORY_SHARED, &info, error));
    plan->copies_outputs = !info.present;
    return ISO_OK;
}

/* Offsets of all values but those of the workspace: block words first, then the inputs. */
static iso_status lay_out(iso_plan *plan, iso_error *error)
{
    uint64_t block = iso_align_up((uint64_t)iso_graph_scalar_count(plan->graph) * 4, 64);
    uint64_t output = 0;

    for (iso_value v = 1; v <= plan->value_count; v++) {
        iso_place_of *place = &plan->values[v];
        iso_value_info info, storage;

        iso_graph_value(plan->graph, v, &info);
        iso_graph_value(plan->graph, info.storage, &storage);
        place->bytes = iso_desc_bytes(&info.desc);
        place->area = storage.kind == ISO_VALUE_INPUT    ? ISO_AREA_BLOCK
                    : storage.kind == ISO_VALUE_WEIGHT   ? ISO_AREA_WEIGHT
                    : storage.kind == ISO_VALUE_STATE    ? ISO_AREA_STATE
                                                         : ISO_AREA_WORKSPACE;
        if (place->bytes > INT64_MAX / 2 || block > INT64_MAX / 4 || output > INT64_MAX / 4)
            return iso_fail(error, ISO_LIMIT, "plan: %s does not fit the address space",
                            info.name);
        if (place->area == ISO_AREA_BLOCK) {
            place->offset = block;
            block += iso_align_up(place->bytes, 64);
        }
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const char *name;
        iso_value value;

        iso_graph_output_at(plan->graph, i, &name, &value);
        plan->outputs[i] = (iso_place_of){ISO_AREA_OUTPUT, output, plan->values[value].bytes};
        output += iso_align_up(plan->values[value].bytes, 64);
        if (!plan->copies_outputs)
            plan->values[value] = plan->outputs[i];
    }
    /* Never empty, so that buffers always exist. */
    plan->needs.block_bytes = block != 0 ? block : 64;
    plan->needs.output_bytes = output != 0 ? output : 64;
    return ISO_OK;
}

/* Values inside a step whose kernel keeps them to itself have no place. */
static void drop_inner(iso_plan *plan)
{
    for (uint32_t f = 0; f < plan->steps.fused_count; f++) {
        const iso_fused *fused = &plan->steps.fused[f];

        for (uint32_t k = 0; k < fused->fusion->part_count && !fused->support.stores_inner; k++) {
            iso_node_info node;

            iso_graph_node(plan->graph, fused->node[k], &node);
            for (uint32_t i = 0; i < node.call->op->output_count; i++)
                if ((fused->stored[k] & 1u << i) == 0)
                    plan->values[node.outputs[i]].area = ISO_AREA_NONE;
        }
    }
}

/* One item per workspace value (item v) and per scratch tensor (item value_count + 1 + node). A
 * result lives from its producer to its last reader. */
static void find_node_lifetimes(iso_plan *plan, uint32_t n, uint32_t step,
                                iso_memplan_item *items)
{
    iso_node_info node;

    iso_graph_node(plan->graph, n, &node);
    for (uint32_t i = 0; i < node.call->op->output_count; i++)
        if (plan->values[node.outputs[i]].area == ISO_AREA_WORKSPACE)
            items[node.outputs[i]] =
                (iso_memplan_item){plan->values[node.outputs[i]].bytes, step, step, 0};
    for (uint32_t i = 0; i < node.call->op->input_count; i++)
        if (plan->values[node.inputs[i]].area == ISO_AREA_WORKSPACE)
            items[node.inputs[i]].last = step;
    if (node.call->op->flags & ISO_OP_SCRATCH) {
        const iso_tensor_desc desc = node.call->op->scratch(node.call);

        plan->scratch[n] = (iso_place_of){ISO_AREA_WORKSPACE, 0, iso_desc_bytes(&desc)};
        items[plan->value_count + 1 + n] =
            (iso_memplan_item){plan->scratch[n].bytes, step, step, 0};
    }
}

static void find_lifetimes(iso_plan *plan, iso_memplan_item *items)
{
    for (uint32_t s = 0; s < plan->steps.step_count; s++) {
        const iso_fuse_step *step = &plan->steps.steps[s];

        for (uint32_t k = 0; k < step->count; k++)
            find_node_lifetimes(plan, plan->steps.order[step->first + k], s, items);
    }
    for (uint32_t i = 0; plan->copies_outputs && i < plan->output_count; i++) {
        const char *name;
        iso_value value;

        iso_graph_output_at(plan->graph, i, &name, &value);
        items[value].last = plan->steps.step_count;
    }
}

static iso_status plan_memory(iso_plan *plan, iso_error *error)
{
    const uint32_t count = plan->value_count + 1 + plan->node_count;
    iso_memplan_item *items = iso_alloc_zero(count, sizeof *items, "memory plan");
    uint64_t total = 0;
    iso_status status;

    if (items == NULL)
        return no_memory(error);
    find_lifetimes(plan, items);
    status = iso_memplan_assign(items, count, &total, error);
    for (iso_value v = 1; v <= plan->value_count && status == ISO_OK; v++)
        if (plan->values[v].area == ISO_AREA_WORKSPACE)
            plan->values[v].offset = items[v].offset;
    for (uint32_t n = 0; n < plan->node_count && status == ISO_OK; n++)
        plan->scratch[n].offset = items[plan->value_count + 1 + n].offset;
    iso_release(items, count * sizeof *items);
    plan->needs.workspace_bytes = total != 0 ? total : ISO_MEMPLAN_ALIGN;
    return status;
}

static void count_needs(iso_plan *plan)
{
    for (uint32_t n = 0; n < plan->node_count; n++) {
        iso_node_info node;

        iso_graph_node(plan->graph, n, &node);
        for (uint32_t i = 0; i < node.call->op->input_count; i++) {
            const iso_place_of *place = &plan->values[node.inputs[i]];

            if (node.inputs[i] != 0 && place->area == ISO_AREA_WEIGHT)
                plan->needs.weight_bytes_read += place->bytes;
            if (node.inputs[i] != 0 && place->area == ISO_AREA_STATE)
                plan->needs.state_bytes_touched += place->bytes;
        }
    }
    plan->needs.step_count =
        plan->steps.step_count + (plan->copies_outputs ? plan->output_count : 0);
}

static iso_status make(iso_plan *plan, const iso_plan_device *devices, uint32_t device_count,
                       iso_error *error)
{
    const iso_place_task task = {plan->graph, devices, device_count, &plan->options};
    uint32_t device = 0;

    ISO_TRY(allocate(plan, error));
    ISO_TRY(iso_place_nodes(&task, plan->placements, &device, error));
    plan->device = devices[device];
    ISO_TRY(iso_fuse_nodes(plan->graph, &plan->device, &plan->options, &plan->steps, error));
    ISO_TRY(choose_outputs(plan, error));
    ISO_TRY(lay_out(plan, error));
    drop_inner(plan);
    ISO_TRY(plan_memory(plan, error));
    count_needs(plan);
#ifndef NDEBUG
    ISO_TRY(iso_plan_check(plan, error));
#endif
    return ISO_OK;
}

iso_status iso_plan_make(const iso_graph *graph, const iso_plan_device *devices,
                         uint32_t device_count, const iso_plan_options *options, iso_plan **plan,
                         iso_error *error)
{
    iso_plan *made;
    iso_status status;

    if (!iso_graph_is_sealed(graph) || device_count == 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "plan: a sealed graph and a device are needed");
    made = iso_alloc_zero(1, sizeof *made, "plan");
    if (made == NULL)
        return no_memory(error);
    made->graph = graph;
    made->options = *options;
    made->node_count = iso_graph_node_count(graph);
    made->value_count = iso_graph_value_count(graph);
    made->output_count = iso_graph_output_count(graph);
    status = make(made, devices, device_count, error);
    if (status == ISO_OK)
        *plan = made;
    else
        iso_plan_destroy(&made);
    return status;
}

void iso_plan_destroy(iso_plan **plan)
{
    iso_plan *p = plan == NULL ? NULL : *plan;

    if (p == NULL)
        return;
    iso_plan_unrecord(p);
    iso_fuse_release(&p->steps);
    iso_release(p->placements, ((size_t)p->node_count + 1) * sizeof *p->placements);
    iso_release(p->values, ((size_t)p->value_count + 1) * sizeof *p->values);
    iso_release(p->scratch, ((size_t)p->node_count + 1) * sizeof *p->scratch);
    iso_release(p->outputs, ((size_t)p->output_count + 1) * sizeof *p->outputs);
    iso_release(p, sizeof *p);
    *plan = NULL;
}

void iso_plan_get_needs(const iso_plan *plan, iso_plan_needs *needs) { *needs = plan->needs; }

uint64_t iso_plan_scalar_offset(const iso_plan *plan, uint32_t scalar)
{
    ISO_ASSERT(scalar < iso_graph_scalar_count(plan->graph));
    return (uint64_t)scalar * 4;
}

uint64_t iso_plan_input_offset(const iso_plan *plan, iso_value input)
{
    ISO_ASSERT(input >= 1 && input <= plan->value_count
               && plan->values[input].area == ISO_AREA_BLOCK);
    return plan->values[input].offset;
}
