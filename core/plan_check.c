/* A plan as the race check sees it: one stream, one event, the host. */
#include "core/plan_parts.h"

#include "core/alloc.h"
#include "core/race.h"

enum { STREAM_COMPUTE = 1, EVENT_END = 0 };

/* Buffers of the check: one per area, weights aside (nobody writes them). States are told apart by
 * the value of their storage, each in a buffer of its own. */
enum { BUFFER_WORKSPACE, BUFFER_OUTPUT, BUFFER_STATES };

typedef struct lister {
    const iso_plan *plan;
    iso_race_step *steps;
    uint32_t count;
} lister;

static void add_place(lister *l, const char *name, const iso_place_of *place, uint32_t value,
                      bool is_write)
{
    iso_race_step step = {.kind = ISO_RACE_ACCESS, .stream = STREAM_COMPUTE, .name = name,
                          .value = value, .begin = place->offset,
                          .end = place->offset + place->bytes, .is_write = is_write};

    switch (place->area) {
    case ISO_AREA_WORKSPACE:
        step.buffer = BUFFER_WORKSPACE;
        break;
    case ISO_AREA_OUTPUT:
        step.buffer = BUFFER_OUTPUT;
        break;
    case ISO_AREA_STATE:
        step.buffer = BUFFER_STATES + value;
        step.begin = 0;
        step.end = place->bytes;
        step.is_kept = true;
        break;
    default:
        return;                          /* block and weights: the device only reads them */
    }
    l->steps[l->count++] = step;
}

static void add_value(lister *l, const char *name, iso_value value, bool is_write)
{
    iso_value_info info;

    if (value == 0)
        return;
    iso_graph_value(l->plan->graph, value, &info);
    add_place(l, name, &l->plan->values[value], info.storage, is_write);
}

static void add_part(lister *l, uint32_t n)
{
    iso_node_info node;

    iso_graph_node(l->plan->graph, n, &node);
    for (uint32_t i = 0; i < node.call->op->input_count; i++)
        add_value(l, node.name, node.inputs[i], false);
    if (node.call->op->flags & ISO_OP_SCRATCH)
        add_place(l, node.name, &l->plan->scratch[n], l->plan->value_count + 1 + n, true);
    for (uint32_t i = 0; i < node.call->op->output_count; i++)
        add_value(l, node.name, node.outputs[i], true);
}

/* Read again after all writes of the step: an output that overlaps an input or another output
 * shows. */
static void add_part_again(lister *l, uint32_t n)
{
    iso_node_info node;

    iso_graph_node(l->plan->graph, n, &node);
    for (uint32_t i = 0; i < node.call->op->input_count; i++)
        if (i != 0 || !(node.call->op->flags & ISO_OP_UPDATE))
            add_value(l, node.name, node.inputs[i], false);
    for (uint32_t i = 0; i < node.call->op->output_count; i++)
        add_value(l, node.name, node.outputs[i], false);
    if (node.call->op->flags & ISO_OP_SCRATCH)
        add_place(l, node.name, &l->plan->scratch[n], l->plan->value_count + 1 + n, false);
}

static void add_step(lister *l, const iso_fuse_step *step)
{
    const uint32_t *nodes = l->plan->steps.order + step->first;

    for (uint32_t k = 0; k < step->count; k++)
        add_part(l, nodes[k]);
    for (uint32_t k = 0; k < step->count; k++)
        add_part_again(l, nodes[k]);
}

static void add_outputs(lister *l)
{
    for (uint32_t i = 0; i < l->plan->output_count; i++) {
        const char *name;
        iso_value value;

        iso_graph_output_at(l->plan->graph, i, &name, &value);
        if (l->plan->copies_outputs) {
            add_value(l, name, value, false);
            add_place(l, name, &l->plan->outputs[i], value, true);
        }
    }
    l->steps[l->count++] = (iso_race_step){.kind = ISO_RACE_SIGNAL, .stream = STREAM_COMPUTE,
                                           .name = "end", .event = EVENT_END, .event_value = 1};
    l->steps[l->count++] = (iso_race_step){.kind = ISO_RACE_WAIT, .stream = ISO_RACE_HOST,
                                           .name = "host", .event = EVENT_END, .event_value = 1};
    for (uint32_t i = 0; i < l->plan->output_count; i++) {
        const char *name;
        iso_value value;

        iso_graph_output_at(l->plan->graph, i, &name, &value);
        add_place(l, name, &l->plan->outputs[i], value, false);
        l->steps[l->count - 1].stream = ISO_RACE_HOST;
    }
}

iso_status iso_plan_check(const iso_plan *plan, iso_error *error)
{
    const uint32_t per_node = 2 * (ISO_OP_INPUTS_MAX + ISO_OP_OUTPUTS_MAX + 1);
    const size_t capacity = (size_t)plan->node_count * per_node + plan->output_count * 3u + 2;
    lister l = {.plan = plan,
                .steps = iso_alloc_zero(capacity, sizeof(iso_race_step), "race check")};
    iso_status status;

    if (l.steps == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "plan: out of memory for the race check");
    for (uint32_t i = 0; i < plan->steps.step_count; i++)
        add_step(&l, &plan->steps.steps[i]);
    add_outputs(&l);
    ISO_ASSERT(l.count <= capacity);
    status = iso_race_check(l.steps, l.count, 1, error);
    iso_release(l.steps, capacity * sizeof *l.steps);
    return status;
}
