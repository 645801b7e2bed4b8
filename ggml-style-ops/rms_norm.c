/* rms_norm: scale each row to unit root mean square, then by a weight.
 *   r[t] = 1 / sqrt(sum_j x[t,j]^2 * f32(1/N) + eps);   y[t,i] = (x[t,i] * r[t]) * w[i]
 * Shapes:   x [tokens.., N] bf16; w [N] bf16; y as x. tokens >= 0, 1 <= N <= 2^20.
 * Units:    one row; eps is in units of x^2.
 * Order:    the sum by numerics 7, the rest by 8.1; one rounding to bf16, at the end.
 * Ranges:   x and w are in the domain (2.2): x^2 >= 2^-100, so no term is subnormal (L1, L3).
 * Params:   eps finite and > 0: 1e-20 in V4.1, 1e-6 in V4.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE if w is not [N]; ISO_BAD_DTYPE; ISO_BAD_PARAM if eps is not > 0.
 * Source:   released inference/model.py, RMSNorm. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/rms.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, W, Y };

iso_status iso_rms_norm_infer(iso_op_call *call, iso_error *error)
{
    const iso_norm_params *params = (const void *)call->params;
    const uint32_t rank = call->in[X].rank;

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, rank, error));
    ISO_TRY(iso_rule_within(call, X, "x", rank - 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_BF16, 1, error));
    ISO_TRY(iso_rule_extent(call, W, "w", 0, iso_desc_last(&call->in[X]), error));
    ISO_TRY(iso_rule_param(call, params->eps > 0.0f && params->eps < 1.0f, "eps not in (0, 1)",
                           error));
    call->out[0] = call->in[X];
    return ISO_OK;
}

void iso_rms_norm_fill(const iso_op_call *call, void *args)
{
    const iso_norm_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X];

    *(iso_rms_norm_args *)args = (iso_rms_norm_args){
        .rows = iso_live_of(x),
        .per_row = (uint32_t)(iso_desc_rows(x) / (x->extent[0] != 0 ? x->extent[0] : 1)),
        .dim = (uint32_t)iso_desc_last(x),
        .eps = params->eps,
    };
}

uint64_t iso_rms_norm_units(const void *args)
{
    const iso_rms_norm_args *a = args;

    return (uint64_t)a->rows.count * a->per_row;
}

void iso_rms_norm_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rms_norm_args *a = args;
    const uint16_t *x = tensors->at[X], *w = tensors->at[W];
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t row = units.begin; row < units.end; row++) {
        const uint16_t *xr = x + row * a->dim;
        const float r = iso_mean_rsqrt(xr, a->dim, a->eps);

        for (uint32_t i = 0; i < a->dim; i++) {
            const float t = lane_bf16_f32(xr[i]) * r;

            y[row * a->dim + i] = (uint16_t)lane_bf16(t * lane_bf16_f32(w[i]), &flags);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

static void add_case(iso_case_sink *sink, int64_t rows, int64_t dim, iso_fill fill, float eps,
                     const char *name)
{
    const iso_norm_params params = {eps};
    iso_case test = iso_case_start(ISO_OP_ID_rms_norm, "%s_%lldx%lld", name, (long long)rows,
                                   (long long)dim);

    iso_case_in(&test, X, iso_desc2(ISO_DTYPE_BF16, rows, dim), fill, 0, 0);
    iso_case_in(&test, W, iso_desc1(ISO_DTYPE_BF16, dim), ISO_FILL_MILD, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    iso_case_add(sink, &test);
}

void iso_rms_norm_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 31, 32, 33, 64, 127, 128, 512, 1280, 4095, 4096, 4097,
                                   5120};
    const float eps = lane_float(LANE_EPS_1E20);

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++)
        add_case(sink, 3, dims[i], ISO_FILL_MILD, eps, "mild");
    /* Many rows: one unit in the last place of a sum shows in some of their bf16 results. */
    add_case(sink, 8192, 128, ISO_FILL_MILD, eps, "mild");
    add_case(sink, 0, 128, ISO_FILL_MILD, eps, "empty");
    add_case(sink, 5, 512, ISO_FILL_TINY, eps, "tiny");
    add_case(sink, 5, 5120, ISO_FILL_WIDE, eps, "wide");
    add_case(sink, 5, 512, ISO_FILL_ZERO, eps, "zero");
    add_case(sink, 5, 512, ISO_FILL_HUGE, eps, "huge");
    add_case(sink, 5, 512, ISO_FILL_ONEHOT, eps, "onehot");
    add_case(sink, 5, 512, ISO_FILL_MILD, lane_float(LANE_EPS_1E6), "eps6");
}
