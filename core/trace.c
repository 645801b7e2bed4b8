#include "core/trace.h"

#include "core/hash.h"
#include "core/plan_parts.h"

bool iso_trace_output(const iso_plan *plan, uint32_t node, uint32_t output, iso_tensor_desc *live,
                      const void **data)
{
    const iso_place_of *place;
    iso_node_info info;

    ISO_ASSERT(plan->workspace_host != NULL);
    iso_graph_node(plan->graph, node, &info);
    place = &plan->values[info.outputs[output]];
    if (place->area == ISO_AREA_STATE)
        return false;
    *live = info.call->out[output];
    if (live->live_scalar != 0)
        live->extent[0] =
            iso_live_resolve(iso_live_of(live), (const uint32_t *)(const void *)plan->block);
    *data = (place->area == ISO_AREA_OUTPUT ? plan->output_host : plan->workspace_host)
          + place->offset;
    return true;
}

void iso_trace_node(const iso_plan *plan, uint32_t node, uint64_t hash[2])
{
    iso_hasher hasher;
    iso_node_info info;

    iso_graph_node(plan->graph, node, &info);
    iso_hasher_init(&hasher);
    for (uint32_t i = 0; i < info.call->op->output_count; i++) {
        iso_tensor_desc live;
        const void *data;

        if (iso_trace_output(plan, node, i, &live, &data))
            iso_hasher_add(&hasher, data, (size_t)iso_desc_bytes(&live));
    }
    iso_hasher_end(&hasher, hash);
}
