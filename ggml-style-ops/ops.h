/* ops: the table of operators, from the rows of ops.def. */
#ifndef ISO_OPS_OPS_H
#define ISO_OPS_OPS_H

#include "core/op.h"

typedef enum iso_op_id {
#define OP(name, inputs, outputs, params, flags) ISO_OP_ID_##name,
#include "ggml-style-ops/ops.def"
#undef OP
    ISO_OP_ID_COUNT
} iso_op_id;

const iso_op *iso_op_get(iso_op_id id);
const iso_op *iso_op_find(const char *name); /* NULL if there is none */

#define OP(name, inputs, outputs, params, flags)                                                  \
    iso_status iso_##name##_infer(iso_op_call *call, iso_error *error);                           \
    void iso_##name##_fill(const iso_op_call *call, void *args);                                  \
    uint64_t iso_##name##_units(const void *args);                                                \
    void iso_##name##_reference(const void *args, const iso_tensors *tensors, iso_range units);   \
    void iso_##name##_cases(struct iso_case_sink *sink);
#include "ggml-style-ops/ops.def"
#undef OP

iso_tensor_desc iso_sample_scratch(const iso_op_call *call);

#endif
