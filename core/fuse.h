/* fuse: nodes -> steps. Walks the placed nodes in order and takes, for each, the first row of
 * plan.options.fusions that matches there, may run as one step, and has a kernel on the device. The
 * rest are steps of one node.
 *
 * A match may run as one step when one of its nodes has a place in the order at which every value
 * that comes from outside is there already and nobody outside has missed one of its results; the
 * order of accesses to a state stays that of the nodes. */
#ifndef ISO_CORE_FUSE_H
#define ISO_CORE_FUSE_H

#include "core/plan.h"

/* A step of several nodes. */
typedef struct iso_fused {
    const iso_fusion *fusion;
    iso_support support;
    uint32_t stored[ISO_FUSION_PARTS_MAX];   /* as in iso_fused_call */
    uint32_t node[ISO_FUSION_PARTS_MAX];
} iso_fused;

typedef struct iso_fuse_step {
    uint32_t first, count;               /* nodes order[first] .. order[first + count - 1] */
    const iso_fused *fused;              /* NULL: one node by itself */
} iso_fuse_step;

typedef struct iso_fuse_steps {
    iso_fuse_step *steps;                /* in the order of execution */
    uint32_t *order;                     /* [node_count] nodes, by step; parts in their order */
    iso_fused *fused;
    uint32_t step_count, node_count, fused_count, fused_capacity;
} iso_fuse_steps;

/* Fills *steps; iso_fuse_release gives it back, also after a failure. ISO_NO_MEMORY. */
iso_status iso_fuse_nodes(const iso_graph *graph, const iso_plan_device *device,
                          const iso_plan_options *options, iso_fuse_steps *steps,
                          iso_error *error);
void iso_fuse_release(iso_fuse_steps *steps);

#endif
