/* What a plan does, in words: one line per step, then the memory ledger. A bug report starts with
 * it. The text holds no address and no time: equal plans explain equally. */
#include "core/plan_parts.h"

#include "core/text.h"

#include <string.h>

/* Bytes of all states of the graph, each once. */
static uint64_t state_bytes(const iso_plan *plan)
{
    uint64_t bytes = 0;

    for (iso_value v = 1; v <= plan->value_count; v++) {
        iso_value_info info;

        iso_graph_value(plan->graph, v, &info);
        if (info.kind == ISO_VALUE_STATE)
            bytes += plan->values[v].bytes;
    }
    return bytes;
}

static void shapes_text(iso_text *text, const iso_tensor_desc *desc, uint32_t count)
{
    char one[ISO_DESC_TEXT];

    for (uint32_t i = 0; i < count; i++)
        iso_text_printf(text, "%s%s", i == 0 ? "" : " ",
                        iso_desc_present(&desc[i]) ? iso_desc_text(&desc[i], one) : "-");
}

/* What follows the number of a line: of a step, or of a part of one. */
static void node_text(const iso_plan *plan, uint32_t n, iso_text *text)
{
    const iso_placement *placement = &plan->placements[n];
    uint64_t read, written;
    iso_node_info node;

    iso_graph_node(plan->graph, n, &node);
    iso_plan_node_bytes(plan, n, &read, &written);
    iso_text_printf(text, "  %s  %s  %s  %s  ", node.name, node.call->op->name,
                    placement->support.kernel, plan->device.backend->name);
    shapes_text(text, node.call->in, node.call->op->input_count);
    iso_text_printf(text, " -> ");
    shapes_text(text, node.call->out, node.call->op->output_count);
    iso_text_printf(text, "  read %llu  written %llu  %s", (unsigned long long)read,
                    (unsigned long long)written, placement->rule);
    if (plan->scratch[n].bytes != 0)
        iso_text_printf(text, "  scratch %llu", (unsigned long long)plan->scratch[n].bytes);
    if (placement->support.text[0] != '\0')
        iso_text_printf(text, "  refused: %s", placement->support.text);
    iso_text_printf(text, "\n");
}

static void step_text(const iso_plan *plan, uint32_t s, iso_text *text)
{
    const iso_fuse_step *step = &plan->steps.steps[s];
    const uint32_t *nodes = plan->steps.order + step->first;
    uint64_t read, written;
    iso_node_info node;

    iso_text_printf(text, "%5u", s);
    if (step->fused == NULL) {
        node_text(plan, nodes[0], text);
        return;
    }
    iso_graph_node(plan->graph, nodes[0], &node);
    iso_plan_step_bytes(plan, step, &read, &written);
    iso_text_printf(text, "  %s  %s  %s  %s  %u parts  read %llu  written %llu\n", node.name,
                    step->fused->fusion->name, step->fused->support.kernel,
                    plan->device.backend->name, step->count, (unsigned long long)read,
                    (unsigned long long)written);
    for (uint32_t k = 0; k < step->count; k++) {
        iso_text_printf(text, "    +");
        node_text(plan, nodes[k], text);
    }
}

static void copy_text(const iso_plan *plan, uint32_t index, iso_text *text)
{
    const char *name;
    iso_value value;

    iso_graph_output_at(plan->graph, index, &name, &value);
    iso_text_printf(text, "%5u  %s  copy  %s  workspace -> outputs  %llu bytes\n",
                    plan->steps.step_count + index, name, plan->device.backend->name,
                    (unsigned long long)plan->outputs[index].bytes);
}

/* Steps and nodes of the whole plan, and of the block with the most nodes: nodes whose names begin
 * alike up to a number ("layers.3.") are one block. */
typedef struct totals {
    uint32_t steps, nodes, fused;
    uint32_t block_steps, block_nodes;
} totals;

/* Characters of "layers.3." in front of a name; 0 when it does not begin so. */
static size_t block_of(const char *name)
{
    size_t i = strcspn(name, ".");
    size_t digits = name[i] == '.' ? strspn(name + i + 1, "0123456789") : 0;

    return digits != 0 && name[i + 1 + digits] == '.' ? i + digits + 2 : 0;
}

static totals count_totals(const iso_plan *plan)
{
    totals t = {.steps = plan->steps.step_count, .nodes = plan->node_count,
                .fused = plan->steps.fused_count};
    uint32_t steps = 0, nodes = 0;
    const char *block = NULL;
    size_t block_bytes = 0;

    for (uint32_t s = 0; s < plan->steps.step_count; s++) {
        const iso_fuse_step *step = &plan->steps.steps[s];
        iso_node_info node;
        size_t bytes;

        iso_graph_node(plan->graph, plan->steps.order[step->first], &node);
        bytes = block_of(node.name);
        if (bytes == 0 || bytes != block_bytes || strncmp(block, node.name, bytes) != 0)
            steps = nodes = 0;
        block = node.name;
        block_bytes = bytes;
        if (bytes == 0)
            continue;
        steps++;
        nodes += step->count;
        if (nodes > t.block_nodes) {
            t.block_nodes = nodes;
            t.block_steps = steps;
        }
    }
    return t;
}

/* The ledger is a list so that text and JSON cannot differ. */
typedef struct ledger_row {
    const char *name;
    uint64_t bytes;
} ledger_row;

enum { LEDGER_ROWS = 6 };

static void ledger(const iso_plan *plan, ledger_row rows[LEDGER_ROWS])
{
    rows[0] = (ledger_row){"weights_read_per_run", plan->needs.weight_bytes_read};
    rows[1] = (ledger_row){"state", state_bytes(plan)};
    rows[2] = (ledger_row){"state_touched_per_run", plan->needs.state_bytes_touched};
    rows[3] = (ledger_row){"workspace", plan->needs.workspace_bytes};
    rows[4] = (ledger_row){"outputs", plan->needs.output_bytes};
    rows[5] = (ledger_row){"argument_block", plan->needs.block_bytes};
}

static void explain_text(const iso_plan *plan, iso_text *text)
{
    const totals t = count_totals(plan);
    ledger_row rows[LEDGER_ROWS];
    uint64_t hash[2];

    iso_graph_hash(plan->graph, hash);
    iso_text_printf(text, "graph %016llx%016llx: %u steps, %s, %s\n", (unsigned long long)hash[1],
                    (unsigned long long)hash[0], plan->needs.step_count,
                    plan->options.policy == ISO_PLACE_STRICT ? "strict" : "auto",
                    plan->options.step_by_step ? "one program per step" : "one program");
    for (uint32_t s = 0; s < plan->steps.step_count; s++)
        step_text(plan, s, text);
    for (uint32_t i = 0; plan->copies_outputs && i < plan->output_count; i++)
        copy_text(plan, i, text);
    iso_text_printf(text, "%u steps of %u operators, %u of them fused; largest block: %u steps of "
                    "%u operators\n", t.steps, t.nodes, t.fused, t.block_steps, t.block_nodes);
    ledger(plan, rows);
    for (uint32_t i = 0; i < LEDGER_ROWS; i++)
        iso_text_printf(text, "%-22s %20llu bytes\n", rows[i].name,
                        (unsigned long long)rows[i].bytes);
}

static void shapes_json(iso_text *text, const char *key, const iso_tensor_desc *desc,
                        uint32_t count)
{
    char one[ISO_DESC_TEXT];

    iso_text_printf(text, ",\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        iso_text_printf(text, i == 0 ? "" : ",");
        iso_text_json(text, iso_desc_present(&desc[i]) ? iso_desc_text(&desc[i], one) : "none");
    }
    iso_text_printf(text, "]");
}

static void member_json(iso_text *text, const char *key, const char *value)
{
    iso_text_printf(text, ",\"%s\":", key);
    iso_text_json(text, value);
}

/* Members of a step's object, or of a part's. */
static void node_json(const iso_plan *plan, uint32_t n, iso_text *text)
{
    const iso_placement *placement = &plan->placements[n];
    uint64_t read, written;
    iso_node_info node;

    iso_graph_node(plan->graph, n, &node);
    iso_plan_node_bytes(plan, n, &read, &written);
    iso_text_printf(text, "\"node\":");
    iso_text_json(text, node.name);
    member_json(text, "op", node.call->op->name);
    member_json(text, "kernel", placement->support.kernel);
    member_json(text, "device", plan->device.backend->name);
    shapes_json(text, "inputs", node.call->in, node.call->op->input_count);
    shapes_json(text, "outputs", node.call->out, node.call->op->output_count);
    iso_text_printf(text, ",\"read\":%llu,\"written\":%llu,\"scratch\":%llu",
                    (unsigned long long)read, (unsigned long long)written,
                    (unsigned long long)plan->scratch[n].bytes);
    member_json(text, "rule", placement->rule);
    member_json(text, "refused", placement->support.text);
}

static void step_json(const iso_plan *plan, uint32_t s, iso_text *text)
{
    const iso_fuse_step *step = &plan->steps.steps[s];
    const uint32_t *nodes = plan->steps.order + step->first;
    uint64_t read, written;

    iso_text_printf(text, "{\"index\":%u,", s);
    if (step->fused == NULL) {
        node_json(plan, nodes[0], text);
        iso_text_printf(text, "}");
        return;
    }
    iso_plan_step_bytes(plan, step, &read, &written);
    iso_text_printf(text, "\"fusion\":");
    iso_text_json(text, step->fused->fusion->name);
    member_json(text, "kernel", step->fused->support.kernel);
    iso_text_printf(text, ",\"read\":%llu,\"written\":%llu,\"parts\":[",
                    (unsigned long long)read, (unsigned long long)written);
    for (uint32_t k = 0; k < step->count; k++) {
        iso_text_printf(text, k == 0 ? "{" : "},\n {");
        node_json(plan, nodes[k], text);
    }
    iso_text_printf(text, "}]}");
}

static void copy_json(const iso_plan *plan, uint32_t index, iso_text *text)
{
    const char *name;
    iso_value value;

    iso_graph_output_at(plan->graph, index, &name, &value);
    iso_text_printf(text, "{\"index\":%u", plan->steps.step_count + index);
    member_json(text, "copy", name);
    member_json(text, "device", plan->device.backend->name);
    iso_text_printf(text, ",\"bytes\":%llu}", (unsigned long long)plan->outputs[index].bytes);
}

static void explain_json(const iso_plan *plan, iso_text *text)
{
    const totals t = count_totals(plan);
    ledger_row rows[LEDGER_ROWS];
    uint64_t hash[2];

    iso_graph_hash(plan->graph, hash);
    iso_text_printf(text, "{\"graph\":\"%016llx%016llx\"", (unsigned long long)hash[1],
                    (unsigned long long)hash[0]);
    member_json(text, "policy", plan->options.policy == ISO_PLACE_STRICT ? "strict" : "auto");
    iso_text_printf(text, ",\"step_by_step\":%s,\"steps\":[",
                    plan->options.step_by_step ? "true" : "false");
    for (uint32_t s = 0; s < plan->steps.step_count; s++) {
        iso_text_printf(text, s == 0 ? "\n" : ",\n");
        step_json(plan, s, text);
    }
    for (uint32_t i = 0; plan->copies_outputs && i < plan->output_count; i++) {
        iso_text_printf(text, plan->steps.step_count + i == 0 ? "\n" : ",\n");
        copy_json(plan, i, text);
    }
    iso_text_printf(text, "],\n\"totals\":{\"steps\":%u,\"operators\":%u,\"fused\":%u,"
                    "\"block_steps\":%u,\"block_operators\":%u}", t.steps, t.nodes, t.fused,
                    t.block_steps, t.block_nodes);
    iso_text_printf(text, ",\n\"ledger\":{");
    ledger(plan, rows);
    for (uint32_t i = 0; i < LEDGER_ROWS; i++)
        iso_text_printf(text, "%s\"%s\":%llu", i == 0 ? "" : ",", rows[i].name,
                        (unsigned long long)rows[i].bytes);
    iso_text_printf(text, "}}\n");
}

iso_status iso_plan_explain(const iso_plan *plan, bool json, char **text, iso_error *error)
{
    iso_text out = {0};

    if (json)
        explain_json(plan, &out);
    else
        explain_text(plan, &out);
    return iso_text_take(&out, text, error);
}
