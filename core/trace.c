#include "core/trace.h"

#include "core/hash.h"
#include "core/plan_parts.h"

/* Bytes of the leading rows that exist in this run. */
static uint64_t live_bytes(const iso_plan *plan, const iso_tensor_desc *desc)
{
    const uint64_t bytes = iso_desc_bytes(desc);

    if (desc->live_scalar == 0 || desc->extent[0] == 0)
        return bytes;
    return bytes / (uint64_t)desc->extent[0]
         * iso_live_resolve(iso_live_of(desc), (const uint32_t *)(const void *)plan->block);
}

void iso_trace_node(const iso_plan *plan, uint32_t node, uint64_t hash[2])
{
    iso_hasher hasher;
    iso_node_info info;

    ISO_ASSERT(plan->workspace_host != NULL);
    iso_graph_node(plan->graph, node, &info);
    iso_hasher_init(&hasher);
    for (uint32_t i = 0; i < info.call->op->output_count; i++) {
        const iso_place_of *place = &plan->values[info.outputs[i]];
        const unsigned char *base =
            place->area == ISO_AREA_OUTPUT ? plan->output_host : plan->workspace_host;

        if (place->area != ISO_AREA_STATE)
            iso_hasher_add(&hasher, base + place->offset,
                           (size_t)live_bytes(plan, &info.call->out[i]));
    }
    iso_hasher_end(&hasher, hash);
}
