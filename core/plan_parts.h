/* plan_parts: the inside of a plan; for plan*.c, explain*.c, run.c and trace.c only. */
#ifndef ISO_CORE_PLAN_PARTS_H
#define ISO_CORE_PLAN_PARTS_H

#include "core/fuse.h"
#include "core/place.h"
#include "core/plan.h"

typedef enum iso_area {
    ISO_AREA_NONE, ISO_AREA_BLOCK, ISO_AREA_WORKSPACE, ISO_AREA_OUTPUT, ISO_AREA_WEIGHT,
    ISO_AREA_STATE
} iso_area;

/* Where a value lies. WEIGHT and STATE: `offset` is not used, the binding says where. */
typedef struct iso_place_of {
    iso_area area;
    uint64_t offset, bytes;
} iso_place_of;

struct iso_plan {
    const iso_graph *graph;
    iso_plan_options options;
    iso_plan_device device;              /* the one all nodes are placed on */
    iso_placement *placements;           /* [node_count] */
    iso_fuse_steps steps;
    iso_place_of *values;                /* [value_count + 1]; values[0] is not used; area NONE:
                                            lives inside a step whose kernel keeps it to itself */
    iso_place_of *scratch;               /* [node_count] */
    iso_place_of *outputs;               /* [output_count]: where the host reads */
    uint32_t node_count, value_count, output_count;
    bool copies_outputs;                 /* the device cannot write host-readable memory in place */
    iso_plan_needs needs;

    /* recorded */
    iso_program **programs;              /* [program_capacity], the first program_count are made */
    uint32_t program_count, program_capacity;
    iso_program *poison;                 /* fills workspace and outputs */
    iso_buffer *output_buffer;
    const unsigned char *output_host;
    const unsigned char *workspace_host; /* step_by_step: what the trace reads; NULL without one */
    iso_stream *stream;
    iso_event *event;
    uint64_t epoch;
    unsigned char *block;
};

/* Descriptor bytes; 0 when absent. */
uint64_t iso_plan_value_bytes(const iso_plan *plan, iso_value value);
/* Bytes that the node reads and writes, upper bounds. */
void iso_plan_node_bytes(const iso_plan *plan, uint32_t node, uint64_t *read, uint64_t *written);

/* The same for a step: what goes in and out of it. */
void iso_plan_step_bytes(const iso_plan *plan, const iso_fuse_step *step, uint64_t *read,
                         uint64_t *written);

/* plan_record.c: gives back what record took; fine on a plan that is not recorded. */
void iso_plan_unrecord(iso_plan *plan);

/* plan_check.c: the race check of core/race.h over the whole plan. */
iso_status iso_plan_check(const iso_plan *plan, iso_error *error);

#endif
