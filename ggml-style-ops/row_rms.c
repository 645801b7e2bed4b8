/* row_rms: the reciprocal root mean square of a row, on its own (hyper-connections).
 *   r[t] = 1 / sqrt(sum_j x[t,j]^2 * f32(1/n) + eps)
 * Shapes:   x bf16 [T, ..], rank 2 .. 4, n = product of the other extents; r f32 [T].
 *           T >= 0, 1 <= n <= 2^20. Streams are flattened stream-major: [T, 4, D] has n = 4 D.
 * Units:    one row t; eps is in units of x^2.
 * Order:    the sum by numerics 7, the rest by 8.1.
 * Ranges:   x is in the domain (2.2): x^2 >= 2^-100, so no term is subnormal (L1, L3);
 *           r lies in [2^-50, 2^34).
 * Params:   eps finite and > 0: 1e-20 in V4.1, 1e-6 in V4.
 * Aliasing: none.
 * Errors:   NaN in a row raises ISO_FLAG_RANGE; ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM if eps
 *           is not in (0, 1).
 * Source:   released inference/model.py, Block.hc_pre. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/rms.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, R };

static int64_t row_elems(const iso_tensor_desc *x)
{
    return x->extent[1] * x->extent[2] * x->extent[3];
}

iso_status iso_row_rms_infer(iso_op_call *call, iso_error *error)
{
    const iso_norm_params *params = (const void *)call->params;
    const uint32_t rank = call->in[X].rank > 2 ? call->in[X].rank : 2;
    char text[ISO_DESC_TEXT];

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, rank, error));
    if (row_elems(&call->in[X]) < 1 || row_elems(&call->in[X]) > 1 << 20)
        return iso_fail(error, ISO_BAD_SHAPE, "row_rms: x is %s, expected 1 to 2^20 values a row",
                        iso_desc_text(&call->in[X], text));
    ISO_TRY(iso_rule_param(call, params->eps > 0.0f && params->eps < 1.0f, "eps not in (0, 1)",
                           error));
    call->out[0] = iso_desc1(ISO_DTYPE_F32, call->in[X].extent[0]);
    iso_live_copy(&call->out[0], &call->in[X], 1);
    return ISO_OK;
}

void iso_row_rms_fill(const iso_op_call *call, void *args)
{
    const iso_norm_params *params = (const void *)call->params;

    *(iso_row_rms_args *)args = (iso_row_rms_args){
        .rows = iso_live_of(&call->in[X]),
        .dim = (uint32_t)row_elems(&call->in[X]),
        .eps = params->eps,
    };
}

uint64_t iso_row_rms_units(const void *args)
{
    const iso_row_rms_args *a = args;

    return a->rows.count;
}

void iso_row_rms_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_row_rms_args *a = args;
    const uint16_t *x = tensors->at[X];
    float *r = tensors->at[R];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++)
        r[t] = lane_clean(iso_mean_rsqrt(x + t * a->dim, a->dim, a->eps), &flags);
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(iso_tensor_desc x, iso_fill fill, uint32_t eps, const char *name)
{
    const iso_norm_params params = {.eps = lane_float(eps)};
    iso_case test = iso_case_start(ISO_OP_ID_row_rms, "%s_%lldx%lldx%lld", name,
                                   (long long)x.extent[0], (long long)x.extent[1],
                                   (long long)x.extent[2]);

    iso_case_in(&test, X, x, fill, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

static void add_case(iso_case_sink *sink, int64_t rows, int64_t streams, int64_t dim,
                     iso_fill fill, const char *name)
{
    const iso_case test = start(iso_desc3(ISO_DTYPE_BF16, rows, streams, dim), fill,
                                LANE_EPS_1E20, name);

    iso_case_add(sink, &test);
}

void iso_row_rms_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 31, 32, 33, 64, 127, 1024, 1025, 2049, 5120};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++)
        add_case(sink, 3, 4, dims[i], ISO_FILL_MILD, "mild");
    add_case(sink, 0, 4, 32, ISO_FILL_MILD, "empty");
    add_case(sink, 5, 4, 128, ISO_FILL_TINY, "tiny");
    add_case(sink, 3, 4, 5120, ISO_FILL_WIDE, "wide");
    add_case(sink, 5, 4, 128, ISO_FILL_ZERO, "zero");
    add_case(sink, 5, 4, 128, ISO_FILL_HUGE, "huge");
    add_case(sink, 5, 4, 128, ISO_FILL_ONEHOT, "onehot");
    add_case(sink, 5, 1, 4096, ISO_FILL_CONSTANT, "constant");
    test = start(iso_desc2(ISO_DTYPE_BF16, 5, 4097), ISO_FILL_MILD, LANE_EPS_1E6, "eps6");
    iso_case_add(sink, &test);
    test = start(iso_desc4(ISO_DTYPE_BF16, 3, 2, 2, 67), ISO_FILL_MILD, LANE_EPS_1E20, "rank4");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 7, 4, 64), ISO_FILL_MILD, LANE_EPS_1E20, "live2");
    iso_case_live(&test, X, 1);
    test.live = 2;
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 3, 4, 1024), ISO_FILL_RAW, LANE_EPS_1E20, "raw");
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
