/* plan: how a sealed graph runs on devices. Making a plan is a pure function of graph, devices and
 * options: it takes no device memory and says how much it will need. Recording it binds memory and
 * makes the programs.
 *
 * Passes, one function each: place -> fuse -> lay out -> memory plan -> race check. Host-written
 * inputs and scalars live in the argument block at offsets the plan fixes; outputs live in a
 * host-readable output buffer; everything else in one workspace. */
#ifndef ISO_CORE_PLAN_H
#define ISO_CORE_PLAN_H

#include "core/backend.h"
#include "core/graph.h"

typedef struct iso_plan iso_plan;

typedef enum iso_place_policy { ISO_PLACE_STRICT, ISO_PLACE_AUTO } iso_place_policy;

typedef struct iso_plan_device {
    const iso_backend *backend;
    iso_device *device;
} iso_plan_device;

typedef struct iso_plan_options {
    iso_place_policy policy;
    iso_num_class num_class;             /* the least class accepted */
    bool step_by_step;                   /* one program per node: needed for tracing. No fusions,
                                            so that every node's outputs are there to hash */
    const iso_fusion *fusions;           /* rows in the order of choice; lent, outlive the plan */
    uint32_t fusion_count;               /* 0: no fusions */
} iso_plan_options;

/* devices[0] is the default device. Errors name node, op, shapes and every refused row's reason. */
iso_status iso_plan_make(const iso_graph *graph, const iso_plan_device *devices,
                         uint32_t device_count, const iso_plan_options *options, iso_plan **plan,
                         iso_error *error);
void iso_plan_destroy(iso_plan **plan);  /* the graph must outlive the plan */

typedef struct iso_plan_needs {
    uint64_t workspace_bytes, output_bytes, block_bytes;
    uint64_t weight_bytes_read, state_bytes_touched;   /* per run, upper bounds */
    uint32_t step_count;
} iso_plan_needs;
void iso_plan_get_needs(const iso_plan *plan, iso_plan_needs *needs);

/* Where weights and states are. The functions are called during record only. */
typedef struct iso_binding {
    iso_slice (*weight)(void *context, uint32_t id);
    iso_slice (*state)(void *context, uint32_t id);
    void *context;
    iso_buffer *workspace;               /* at least workspace_bytes; may be shared by plans that
                                            never run at the same time */
} iso_binding;

/* Makes the programs, the output buffer, stream and event. Once per plan. */
iso_status iso_plan_record(iso_plan *plan, const iso_binding *binding, iso_error *error);

/* The argument block of a recorded plan: host memory to write scalars and inputs into before a
 * run; block_bytes long, kept between runs. */
void *iso_plan_block(iso_plan *plan);
uint64_t iso_plan_scalar_offset(const iso_plan *plan, uint32_t scalar);      /* bytes */
uint64_t iso_plan_input_offset(const iso_plan *plan, iso_value input);      /* bytes */
/* Host pointer of output `index` of the graph; readable after iso_run until the next one. */
const void *iso_plan_output(const iso_plan *plan, uint32_t index);

/* One line per step (node, op, kernel, device, shapes, bytes read and written, rule, refusals),
 * then the memory ledger. *text from malloc, freed with iso_free. */
iso_status iso_plan_explain(const iso_plan *plan, bool json, char **text, iso_error *error);

#endif
