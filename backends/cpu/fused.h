/* fused: steps of several operators. A form says how the units of the parts are grouped into units
 * of the step, so that no thread needs what another one makes in the same step. */
#ifndef ISO_BACKENDS_CPU_FUSED_H
#define ISO_BACKENDS_CPU_FUSED_H

#include "core/backend.h"

/* One operator of a step, ready to run in this launch. */
typedef struct iso_cpu_part {
    iso_kernel_fn *kernel;
    iso_tensors tensors;
    uint64_t units;
    uint32_t live;                       /* leading rows that exist */
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX];     /* resolved */
} iso_cpu_part;

typedef struct iso_cpu_fused {
    uint32_t part_count;
    iso_cpu_part part[ISO_FUSION_PARTS_MAX];
} iso_cpu_fused;

typedef struct iso_cpu_form {
    const char *name;                    /* "fused/cpu/rows" */
    /* NULL, or why the match cannot run in this form. */
    const char *(*refuse)(const iso_fused_call *call);
    uint64_t (*units)(const iso_cpu_fused *fused);
    /* args: an iso_cpu_fused; tensors: NULL, every part has its own. */
    iso_kernel_fn *run;
} iso_cpu_form;

/* fused_rows.c: every part works row by row on what the part before it made. A unit is a unit of
 * the part that has the fewest; the other parts have a whole number of units for it. */
extern const iso_cpu_form iso_cpu_form_rows;
/* fused_heads.c: a matmul whose features are heads, then parts whose units are heads of rows. A
 * unit is a head, for all rows. */
extern const iso_cpu_form iso_cpu_form_heads;
/* fused_pair.c: two operators that do not depend on each other. Units of the first, then of the
 * second. */
extern const iso_cpu_form iso_cpu_form_pair;
/* fused_gate.c: two matmuls, swiglu of their results, quant_fp8. A unit is a slice of the features,
 * for all rows; a group of the quantiser is never cut. */
extern const iso_cpu_form iso_cpu_form_gate;
/* fused_sum.c: matmul_experts, moe_sum. A unit is a slice of the features, for all rows. */
extern const iso_cpu_form iso_cpu_form_sum;

/* Whether part k's only link is input `input` <- output 0 of part `from`. */
bool iso_cpu_is_link(const iso_fused_call *call, uint32_t k, uint32_t input, uint32_t from);
bool iso_cpu_has_link(const iso_fused_call *call, uint32_t k);
/* Units of a part at its capacity. */
uint64_t iso_cpu_part_units(const iso_op_call *call);
/* Calls a part's kernel on units [begin, end). */
void iso_cpu_part_run(const iso_cpu_part *part, uint64_t begin, uint64_t end);

/* Rows of fused.def. The index is what support.kernel_index says. */
uint32_t iso_cpu_fused_count(void);
const char *iso_cpu_fused_name(uint32_t index);
const iso_cpu_form *iso_cpu_fused_form(uint32_t index);
uint64_t iso_cpu_fused_grain(uint32_t index);

#endif
