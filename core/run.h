/* run: executes a recorded plan. Allocates nothing and asserts so. */
#ifndef ISO_CORE_RUN_H
#define ISO_CORE_RUN_H

#include "core/plan.h"

typedef void iso_tap_fn(void *context, const char *node, uint32_t output,
                        const iso_tensor_desc *live, const void *data);

typedef struct iso_run_options {
    bool poison;                         /* fill workspace and outputs with 0xff.. bytes first */
    iso_trace_fn *trace;                 /* needs a step_by_step plan; NULL: off */
    void *trace_context;
    iso_tap_fn *tap;                     /* the same condition; lends each output as it is made */
    void *tap_context;
} iso_run_options;

/* Runs the plan on its argument block and waits. ISO_RANGE_ERROR or ISO_BAD_INDEX name the first
 * step that raised the flag; outputs and touched state rows are then undefined. */
iso_status iso_run(iso_plan *plan, const iso_run_options *options, iso_error *error);

#endif
