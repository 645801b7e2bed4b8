/* op: what an operator is. The table of operators is ggml-style-ops/ops.c; core/ and backends/ take
 * pointers to rows of it and know no operator by name.
 *
 * An operator is pure: its outputs are a function of its inputs and parameters. The one exception
 * is an operator with ISO_OP_UPDATE (state): output 0 is input 0, changed in place.
 *
 * A kernel receives three things: `args` (a POD of u32, i32, f32, the same bytes on every backend),
 * the tensors, and a range of work units. Units are independent, every split into ranges gives the
 * same bits, and an operator says what one unit is (a row, a head of a row, an output feature). */
#ifndef ISO_CORE_OP_H
#define ISO_CORE_OP_H

#include "core/tensor.h"

enum {
    ISO_OP_INPUTS_MAX = 12,
    ISO_OP_OUTPUTS_MAX = 3,
    ISO_OP_PARAMS_MAX = 64,          /* bytes */
    ISO_OP_ARGS_MAX = 96             /* bytes */
};

enum iso_op_flags {
    ISO_OP_PURE = 0,
    ISO_OP_UPDATE = 1,               /* output 0 is input 0, changed in place */
    ISO_OP_SCRATCH = 2,              /* needs the scratch tensor that `scratch` describes */
    ISO_OP_HOST = 4,                 /* runs on the CPU backend only (rotary tables, hashing) */
    /* Inputs that may come in a packed layout, all of one call in the same. */
    ISO_OP_WEIGHT_1 = 1 << 9, ISO_OP_WEIGHT_2 = 1 << 10, ISO_OP_WEIGHT_4 = 1 << 12,
    ISO_OP_WEIGHT_5 = 1 << 13, ISO_OP_WEIGHT_4_5 = ISO_OP_WEIGHT_4 | ISO_OP_WEIGHT_5
};

/* Raised by a kernel in the step's flag word; the run reports them (numerics 1.3). */
enum iso_flags {
    ISO_FLAG_RANGE = 1,              /* a value outside the domain would have been stored */
    ISO_FLAG_INDEX = 2               /* an index operand was out of range; nothing was read there */
};

/* The leading rows that exist in this step. `count` is the capacity when the plan is made. A
 * backend resolves it at run time: count = min(capacity, block[word - 1] * mult) if word != 0.
 * The CPU backend hands kernels a resolved copy; device kernels resolve it themselves. */
typedef struct iso_live {
    uint32_t count;
    uint32_t word;
    uint32_t mult;
} iso_live;

typedef struct iso_range {
    uint64_t begin, end;             /* [begin, end) */
} iso_range;

/* Operands of one call: inputs, outputs, then the scratch tensor if there is one. An absent
 * optional input is NULL. */
typedef struct iso_tensors {
    void *const *at;
    const uint32_t *block;           /* scalars of the argument block */
    uint32_t *flags;                 /* one word; raise with iso_flags_raise */
} iso_tensors;

typedef struct iso_op iso_op;

/* One call: descriptors and parameters. Unused descriptors are zero (absent). */
typedef struct iso_op_call {
    const iso_op *op;
    iso_tensor_desc in[ISO_OP_INPUTS_MAX];
    iso_tensor_desc out[ISO_OP_OUTPUTS_MAX];
    _Alignas(8) unsigned char params[ISO_OP_PARAMS_MAX];
} iso_op_call;

typedef void iso_kernel_fn(const void *args, const iso_tensors *tensors, iso_range units);

struct iso_case_sink;                /* ggml-style-ops/cases.h */

struct iso_op {
    const char *name;
    uint32_t id;                     /* row number in ops.def */
    uint32_t input_count, output_count;
    uint32_t flags;
    uint32_t params_bytes, args_bytes;
    /* Checks dtypes, shapes and parameters of the inputs and fills call->out. */
    iso_status (*infer)(iso_op_call *call, iso_error *error);
    /* An inferred call -> args (args_bytes bytes, starting with iso_live). */
    void (*fill)(const iso_op_call *call, void *args);
    /* Work units of resolved args. */
    uint64_t (*units)(const void *args);
    /* The normative reference: plain, slow, the law. */
    iso_kernel_fn *reference;
    /* Adds the operator's test cases to a sink. */
    void (*cases)(struct iso_case_sink *sink);
    /* Descriptor of the scratch tensor; NULL unless ISO_OP_SCRATCH. */
    iso_tensor_desc (*scratch)(const iso_op_call *call);
};

/* Input `index` of the operator is a weight, which may be packed. */
static inline bool iso_op_is_weight(const iso_op *op, uint32_t index)
{
    return (op->flags >> 8 >> index & 1u) != 0;
}

/* OR `bits` into the flag word; may be called by any number of workers at once. */
void iso_flags_raise(uint32_t *flags, uint32_t bits);

/* live of an output whose leading extent is `mult` times that of `input`. */
iso_live iso_live_of(const iso_tensor_desc *desc);
void iso_live_copy(iso_tensor_desc *out, const iso_tensor_desc *in, uint32_t mult);

/* min(capacity, block[word - 1] * mult), or the capacity when static. */
uint32_t iso_live_resolve(iso_live live, const uint32_t *block);

#endif
