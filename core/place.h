/* place: node -> device and kernel. All nodes of a plan run on one device: STRICT takes the default
 * device or fails, AUTO takes the first device that accepts every node. No bit depends on it. */
#ifndef ISO_CORE_PLACE_H
#define ISO_CORE_PLACE_H

#include "core/plan.h"

typedef struct iso_placement {
    const char *rule;            /* why it is there; literal */
    iso_support support;
} iso_placement;

typedef struct iso_place_task {
    const iso_graph *graph;
    const iso_plan_device *devices;
    uint32_t device_count;
    const iso_plan_options *options;
} iso_place_task;

/* Fills one placement per node and says which device (index) they are on. ISO_UNSUPPORTED names,
 * per device tried, the first refused node, its op and shapes, and every refused row's reason. */
iso_status iso_place_nodes(const iso_place_task *task, iso_placement *placements,
                           uint32_t *device, iso_error *error);

#endif
