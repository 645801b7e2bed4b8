/* fill_row: the same few values in every row, such as the first mix [1, 0, 0, 0] of the streams.
 *   y[t,i] = value[i]
 * Shapes:   x any dtype [T, ..], never read: its rows count; y f32 [T, count]. T >= 0.
 * Units:    one row.
 * Order:    none; nothing is computed.
 * Ranges:   the values are in the domain (2.2), checked by infer.
 * Params:   count 1 .. 8; value[0 .. count-1], each +0 or 2^-50 <= |value| < 2^50.
 * Aliasing: none.
 * Errors:   ISO_BAD_DTYPE if x is absent; ISO_BAD_PARAM for a bad count or value.
 * Source:   released inference/model.py, Transformer.forward (initial pre). Differs from it in:
 *           nothing. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/clean.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, Y };

static bool in_domain(float value)
{
    uint32_t flags = 0;

    return lane_bits(lane_clean(value, &flags)) == lane_bits(value) && flags == 0;
}

iso_status iso_fill_row_infer(iso_op_call *call, iso_error *error)
{
    const iso_fill_row_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X];

    ISO_TRY(iso_rule_input(call, X, "x", x->dtype, x->rank, error));
    ISO_TRY(iso_rule_param(call, params->count >= 1 && params->count <= 8, "count not in 1 .. 8",
                           error));
    for (uint32_t i = 0; i < params->count; i++)
        ISO_TRY(iso_rule_param(call, in_domain(params->value[i]), "a value is not in the domain",
                               error));
    call->out[0] = iso_desc2(ISO_DTYPE_F32, x->extent[0], params->count);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_fill_row_fill(const iso_op_call *call, void *args)
{
    const iso_fill_row_params *params = (const void *)call->params;
    iso_fill_row_args *a = args;

    *a = (iso_fill_row_args){.rows = iso_live_of(&call->in[X]), .count = params->count};
    memcpy(a->value, params->value, params->count * sizeof *a->value);
}

uint64_t iso_fill_row_units(const void *args)
{
    const iso_fill_row_args *a = args;

    return a->rows.count;
}

void iso_fill_row_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_fill_row_args *a = args;
    float *y = tensors->at[Y];

    for (uint64_t t = units.begin; t < units.end; t++)
        for (uint32_t i = 0; i < a->count; i++)
            y[t * a->count + i] = a->value[i];
}

static iso_case start(iso_tensor_desc x, uint32_t count, const char *name)
{
    static const uint32_t bits[8] = {0x3f800000u, 0u, 0u, 0u, 0x26800000u, 0xa6800000u,
                                     0x587fffffu, 0xd87fffffu};       /* ends of the domain */
    iso_fill_row_params params = {.count = count};
    iso_case test = iso_case_start(ISO_OP_ID_fill_row, "%s_%lldx%u", name,
                                   (long long)x.extent[0], count);

    memcpy(params.value, bits, count * sizeof *bits);
    iso_case_in(&test, X, x, ISO_FILL_ZERO, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

void iso_fill_row_cases(iso_case_sink *sink)
{
    iso_case test;

    for (uint32_t count = 1; count <= 8; count++) {
        test = start(iso_desc1(ISO_DTYPE_I32, 5), count, "ids");
        iso_case_add(sink, &test);
    }
    test = start(iso_desc1(ISO_DTYPE_I32, 0), 4, "empty");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 67, 4, 8), 4, "rank3");
    iso_case_add(sink, &test);
    test = start(iso_desc1(ISO_DTYPE_I32, 9), 4, "live5");
    iso_case_live(&test, X, 1);
    test.live = 5;
    iso_case_add(sink, &test);
}
