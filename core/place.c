#include "core/place.h"

#include <string.h>

enum { REFUSALS_BYTES = 448 };

static bool accepts(const iso_plan_device *device, const iso_op_call *call,
                    iso_num_class num_class, iso_support *support)
{
    memset(support, 0, sizeof *support);
    device->backend->query(device->device, call, num_class, support);
    for (uint32_t i = 0; support->ok && i < call->op->input_count; i++) {
        if (!iso_desc_present(&call->in[i]) || support->layout_in[i] == call->in[i].layout)
            continue;
        /* Layouts are chosen when weights are loaded: a plan does not pack on the way. */
        support->ok = false;
        support->reason = ISO_REASON_LAYOUT;
        snprintf(support->text, sizeof support->text, "input %u is %s, the kernel wants %s", i,
                 iso_layout_name(call->in[i].layout), iso_layout_name(support->layout_in[i]));
    }
    return support->ok;
}

static void append(char *text, size_t bytes, const char *part)
{
    const size_t used = strlen(text);

    snprintf(text + used, bytes - used, "%s", part);
}

/* "node (op of shapes): backend: reason, rows" behind what is there. */
static void append_refusal(char text[REFUSALS_BYTES], const iso_plan_device *device,
                           const iso_node_info *node, const iso_support *support)
{
    const iso_op *op = node->call->op;
    char one[ISO_DESC_TEXT];
    bool is_first = true;

    append(text, REFUSALS_BYTES, text[0] == '\0' ? "" : "; ");
    append(text, REFUSALS_BYTES, node->name);
    append(text, REFUSALS_BYTES, " (");
    append(text, REFUSALS_BYTES, op->name);
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!iso_desc_present(&node->call->in[i]))
            continue;
        append(text, REFUSALS_BYTES, is_first ? " of " : ", ");
        append(text, REFUSALS_BYTES, iso_desc_text(&node->call->in[i], one));
        is_first = false;
    }
    append(text, REFUSALS_BYTES, "): ");
    append(text, REFUSALS_BYTES, device->backend->name);
    append(text, REFUSALS_BYTES, ": ");
    append(text, REFUSALS_BYTES, iso_reason_text(support->reason));
    append(text, REFUSALS_BYTES, support->text[0] == '\0' ? "" : ", ");
    append(text, REFUSALS_BYTES, support->text);
}

iso_status iso_place_nodes(const iso_place_task *task, iso_placement *placements,
                           uint32_t *device, iso_error *error)
{
    const bool is_strict = task->options->policy == ISO_PLACE_STRICT;
    const uint32_t tries = is_strict ? 1 : task->device_count;
    const uint32_t node_count = iso_graph_node_count(task->graph);
    char refusals[REFUSALS_BYTES] = "";

    for (uint32_t d = 0; d < tries; d++) {
        iso_node_info node;
        uint32_t n;

        for (n = 0; n < node_count; n++) {
            iso_graph_node(task->graph, n, &node);
            if (!accepts(&task->devices[d], node.call, task->options->num_class,
                         &placements[n].support))
                break;
            placements[n].rule = d == 0 ? "default device" : "refused by the devices before";
        }
        if (n == node_count) {
            *device = d;
            return ISO_OK;
        }
        append_refusal(refusals, &task->devices[d], &node, &placements[n].support);
    }
    return iso_fail(error, ISO_UNSUPPORTED, "%s", refusals);
}
