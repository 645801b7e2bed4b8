/* shape_rules: the checks that infer functions are made of. Each returns a status and says what,
 * where, expected and found: "rms_norm: w is bf16[128], expected bf16[256]". */
#ifndef ISO_OPS_SHAPE_RULES_H
#define ISO_OPS_SHAPE_RULES_H

#include "core/op.h"

/* Input `index` is present and has this dtype and rank. `what` is its name in the contract. */
iso_status iso_rule_input(const iso_op_call *call, uint32_t index, const char *what,
                          iso_dtype dtype, uint32_t rank, iso_error *error);
/* Extent `axis` of input `index` equals `expected`. */
iso_status iso_rule_extent(const iso_op_call *call, uint32_t index, const char *what,
                           uint32_t axis, int64_t expected, iso_error *error);
/* Extent `axis` of input `index` is a positive multiple of `block`. */
iso_status iso_rule_multiple(const iso_op_call *call, uint32_t index, const char *what,
                             uint32_t axis, int64_t block, iso_error *error);
/* Extent `axis` of input `index` lies in [low, high]. */
iso_status iso_rule_within(const iso_op_call *call, uint32_t index, const char *what,
                           uint32_t axis, int64_t low, int64_t high, iso_error *error);
/* A parameter condition: false gives ISO_BAD_PARAM "op: text". */
iso_status iso_rule_param(const iso_op_call *call, bool holds, const char *text,
                          iso_error *error);

static inline bool iso_call_has(const iso_op_call *call, uint32_t index)
{
    return call->in[index].dtype != ISO_DTYPE_NONE;
}

#endif
