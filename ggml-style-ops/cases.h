/* cases: what an operator's test cases are made of. An operator file adds its cases to a sink; the
 * test program, the golden table and the self-test of a device all walk the same list.
 *
 * A case is a call (input descriptors and parameters) and, per input, how its values are made. The
 * values come from Philox seeded by hash(operator name, case name, input): the same on every
 * machine. A case may name a `make` function that overwrites inputs whose values depend on each
 * other (row tables, page tables, sorted lists). */
#ifndef ISO_OPS_CASES_H
#define ISO_OPS_CASES_H

#include "ggml-style-ops/lane/lane.h"
#include "ggml-style-ops/ops.h"

typedef enum iso_fill {
    ISO_FILL_ZERO,       /* all bytes 0 */
    ISO_FILL_MILD,       /* f32, bf16: magnitude 2^-7 .. 2^2, one in 16 zero */
    ISO_FILL_TINY,       /* near 2^-50: magnitude 2^-50 .. 2^-38 */
    ISO_FILL_WIDE,       /* log-uniform 2^-50 .. 2^20 */
    ISO_FILL_HUGE,       /* 2^40 .. 2^49 */
    ISO_FILL_TIES,       /* a few distinct values, so that equal scores are everywhere */
    ISO_FILL_CANCEL,     /* pairs x, -x with a small rest */
    ISO_FILL_ONEHOT,     /* one nonzero value per row */
    ISO_FILL_CONSTANT,   /* 1.0 everywhere */
    ISO_FILL_SORTED,     /* ascending along a row */
    ISO_FILL_RAW,        /* any bits, NaN, Inf and subnormals included: expects a range flag */
    ISO_FILL_CODES,      /* e4m3, e2m1: any code that is not NaN; e4m3 as scale: see RANGE */
    ISO_FILL_RANGE       /* integers and bytes: uniform in lo .. hi */
} iso_fill;

typedef struct iso_case_input {
    iso_fill fill;
    int64_t lo, hi;              /* RANGE */
} iso_case_input;

typedef struct iso_case iso_case;

/* Overwrites inputs; `inputs` are host pointers with the case's descriptors. */
typedef void iso_case_make_fn(const iso_case *test, void *const *inputs);

struct iso_case {
    char name[48];               /* unique within the operator; [a-z0-9_] */
    iso_op_call call;            /* op, in, params; out is inferred by the harness */
    iso_case_input input[ISO_OP_INPUTS_MAX];
    uint32_t live;               /* argument-block word 0, for descriptors with live_scalar 1 */
    uint32_t flags_expected;     /* iso_flags; nonzero: outputs are not compared */
    iso_case_make_fn *make;      /* or NULL */
};

typedef struct iso_case_sink {
    void (*add)(void *context, const iso_case *test);
    void *context;
} iso_case_sink;

/* A zeroed case of operator `id` with a formatted name. */
iso_case iso_case_start(iso_op_id id, const char *format, ...) ISO_PRINTF(2, 3);
/* Sets input `index`. */
void iso_case_in(iso_case *test, uint32_t index, iso_tensor_desc desc, iso_fill fill, int64_t lo,
                 int64_t hi);
/* Copies params (op->params_bytes bytes of it). */
void iso_case_params(iso_case *test, const void *params, size_t bytes);
/* Marks the leading extent of input `index` as counted by block word 0 times `mult`. */
void iso_case_live(iso_case *test, uint32_t index, uint32_t mult);
void iso_case_add(iso_case_sink *sink, const iso_case *test);

/* Fills one input of a case; what the harness calls for every input before `make`. */
void iso_case_fill_input(const iso_case *test, uint32_t index, void *data);

/* Deterministic random words for `make` functions: word `n` of the case's stream `stream`. */
uint32_t iso_case_random(const iso_case *test, uint32_t stream, uint32_t n);

#endif
