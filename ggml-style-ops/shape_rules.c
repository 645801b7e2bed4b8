#include "ggml-style-ops/shape_rules.h"

/* Kernels count in 32 bits: no extent and no leading row may hold more than this. */
enum { EXTENT_MAX = INT32_MAX };

static iso_status input_limits(const iso_op_call *call, uint32_t index, const char *what,
                               iso_error *error)
{
    const iso_tensor_desc *in = &call->in[index];
    char text[ISO_DESC_TEXT];
    uint64_t row = 1;

    for (uint32_t i = 0; i < in->rank; i++) {
        if (i != 0)
            row *= (uint64_t)in->extent[i];       /* <= 2^62: both factors are below 2^31 */
        if (in->extent[i] > EXTENT_MAX || row > EXTENT_MAX)
            return iso_fail(error, ISO_BAD_SHAPE, "%s: %s is %s, more than %d elements in a row",
                            call->op->name, what, iso_desc_text(in, text), EXTENT_MAX);
    }
    return ISO_OK;
}

iso_status iso_rule_input(const iso_op_call *call, uint32_t index, const char *what,
                          iso_dtype dtype, uint32_t rank, iso_error *error)
{
    const iso_tensor_desc *in = &call->in[index];
    char text[ISO_DESC_TEXT];
    iso_status status;

    if (!iso_desc_present(in))
        return iso_fail(error, ISO_BAD_DTYPE, "%s: %s is absent, expected %s of rank %u",
                        call->op->name, what, iso_dtype_name(dtype), rank);
    status = iso_desc_check(in, what, error);
    if (status != ISO_OK)
        return iso_fail_in(error, status, "%s", call->op->name);
    if (in->dtype != dtype)
        return iso_fail(error, ISO_BAD_DTYPE, "%s: %s is %s, expected %s", call->op->name, what,
                        iso_desc_text(in, text), iso_dtype_name(dtype));
    if (in->layout != ISO_LAYOUT_PLAIN && !iso_op_is_weight(call->op, index))
        return iso_fail(error, ISO_BAD_LAYOUT, "%s: %s is %s, expected plain", call->op->name,
                        what, iso_layout_name(in->layout));
    if (in->rank != rank)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: %s is %s, expected rank %u", call->op->name,
                        what, iso_desc_text(in, text), rank);
    return input_limits(call, index, what, error);
}

iso_status iso_rule_extent(const iso_op_call *call, uint32_t index, const char *what,
                           uint32_t axis, int64_t expected, iso_error *error)
{
    iso_tensor_desc wanted = call->in[index];
    char found_text[ISO_DESC_TEXT], wanted_text[ISO_DESC_TEXT];

    if (wanted.extent[axis] == expected)
        return ISO_OK;
    wanted.extent[axis] = expected;
    return iso_fail(error, ISO_BAD_SHAPE, "%s: %s is %s, expected %s", call->op->name, what,
                    iso_desc_text(&call->in[index], found_text),
                    iso_desc_text(&wanted, wanted_text));
}

iso_status iso_rule_multiple(const iso_op_call *call, uint32_t index, const char *what,
                             uint32_t axis, int64_t block, iso_error *error)
{
    const int64_t extent = call->in[index].extent[axis];
    char text[ISO_DESC_TEXT];

    if (extent > 0 && extent % block == 0)
        return ISO_OK;
    return iso_fail(error, ISO_BAD_SHAPE,
                    "%s: %s is %s, expected a positive multiple of %lld in extent %u",
                    call->op->name, what, iso_desc_text(&call->in[index], text),
                    (long long)block, axis);
}

iso_status iso_rule_within(const iso_op_call *call, uint32_t index, const char *what,
                           uint32_t axis, int64_t low, int64_t high, iso_error *error)
{
    const int64_t extent = call->in[index].extent[axis];
    char text[ISO_DESC_TEXT];

    if (extent >= low && extent <= high)
        return ISO_OK;
    return iso_fail(error, ISO_BAD_SHAPE, "%s: %s is %s, expected %lld to %lld in extent %u",
                    call->op->name, what, iso_desc_text(&call->in[index], text), (long long)low,
                    (long long)high, axis);
}

iso_status iso_rule_param(const iso_op_call *call, bool holds, const char *text,
                          iso_error *error)
{
    if (holds)
        return ISO_OK;
    return iso_fail(error, ISO_BAD_PARAM, "%s: %s", call->op->name, text);
}
