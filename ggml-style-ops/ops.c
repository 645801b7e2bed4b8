#include "ggml-style-ops/ops.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/params.h"

#include <string.h>

/* The scratch function of a row, picked by its flags column. */
#define SCRATCH_OF_PURE(name) NULL
#define SCRATCH_OF_UPDATE(name) NULL
#define SCRATCH_OF_HOST(name) NULL
#define SCRATCH_OF_WEIGHT_1(name) NULL
#define SCRATCH_OF_WEIGHT_2(name) NULL
#define SCRATCH_OF_WEIGHT_4_5(name) NULL
#define SCRATCH_OF_SCRATCH(name) iso_##name##_scratch

static const iso_op table[ISO_OP_ID_COUNT] = {
#define OP(op, inputs, outputs, params, flag)                                                     \
    [ISO_OP_ID_##op] = {                                                                          \
        .name = #op,                                                                              \
        .id = ISO_OP_ID_##op,                                                                     \
        .input_count = inputs,                                                                    \
        .output_count = outputs,                                                                  \
        .flags = ISO_OP_##flag,                                                                   \
        .params_bytes = sizeof(iso_##params##_params),                                            \
        .args_bytes = sizeof(iso_##op##_args),                                                    \
        .infer = iso_##op##_infer,                                                                \
        .fill = iso_##op##_fill,                                                                  \
        .units = iso_##op##_units,                                                                \
        .reference = iso_##op##_reference,                                                        \
        .cases = iso_##op##_cases,                                                                \
        .scratch = SCRATCH_OF_##flag(op),                                                         \
    },
#include "ggml-style-ops/ops.def"
#undef OP
};

const iso_op *iso_op_get(iso_op_id id)
{
    ISO_ASSERT((unsigned)id < ISO_OP_ID_COUNT);
    return &table[id];
}

const iso_op *iso_op_find(const char *name)
{
    for (unsigned id = 0; id < ISO_OP_ID_COUNT; id++)
        if (strcmp(table[id].name, name) == 0)
            return &table[id];
    return NULL;
}
