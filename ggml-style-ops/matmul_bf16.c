/* matmul_bf16: product with bf16 weights, optional bias.
 *   y[t,n] = sum_k x[t,k] * w[n,k];   with bias: y = clean(y) + bias[n]
 * Shapes:   x bf16 [T, K]; w bf16 [N, K]; bias bf16 [N] or absent; y bf16 or f32 [T, N].
 *           T >= 0, 1 <= K <= 2^20, N >= 1.
 * Units:    one output feature n, for all live rows.
 * Order:    numerics 6.1, 6.2, bias 6.7; the result is cleaned, then rounded to bf16 if asked.
 * Ranges:   operands are in the domain (2.2); products are exact in f32 and multiples of 2^-114
 *           below 2^100, so no partial sum is subnormal or infinite (L1).
 * Params:   out_f32: 1 for f32 output, 0 for bf16.
 * Aliasing: none.
 * Errors:   a result of 2^50 or more, or NaN, raises ISO_FLAG_RANGE; ISO_BAD_SHAPE;
 *           ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/model.py, linear (bf16 and promoted f32). Differs from it in: order
 *           of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, W, BIAS, Y };

iso_status iso_matmul_bf16_infer(iso_op_call *call, iso_error *error)
{
    const iso_matmul_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X], *w = &call->in[W];

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_within(call, X, "x", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_within(call, W, "w", 0, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_extent(call, W, "w", 1, x->extent[1], error));
    if (iso_call_has(call, BIAS)) {
        ISO_TRY(iso_rule_input(call, BIAS, "bias", ISO_DTYPE_BF16, 1, error));
        ISO_TRY(iso_rule_extent(call, BIAS, "bias", 0, w->extent[0], error));
    }
    ISO_TRY(iso_rule_param(call, params->out_f32 <= 1, "out_f32 is not 0 or 1", error));
    call->out[0] = iso_desc2(params->out_f32 != 0 ? ISO_DTYPE_F32 : ISO_DTYPE_BF16, x->extent[0],
                             w->extent[0]);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_matmul_bf16_fill(const iso_op_call *call, void *args)
{
    const iso_matmul_params *params = (const void *)call->params;

    *(iso_matmul_bf16_args *)args = (iso_matmul_bf16_args){
        .rows = iso_live_of(&call->in[X]),
        .k = (uint32_t)call->in[X].extent[1],
        .n = (uint32_t)call->in[W].extent[0],
        .out_f32 = params->out_f32,
        .has_bias = iso_call_has(call, BIAS),
    };
}

uint64_t iso_matmul_bf16_units(const void *args)
{
    const iso_matmul_bf16_args *a = args;

    return a->n;
}

static float dot(const uint16_t *x, const uint16_t *w, uint32_t k)
{
    iso_sum3 sum = {0};

    for (uint32_t begin = 0; begin < k; begin += LANE_CHUNK) {
        const uint32_t end = k - begin < LANE_CHUNK ? k : begin + LANE_CHUNK;
        float chunk = 0.0f;

        for (uint32_t i = begin; i < end; i++)
            chunk = chunk + lane_bf16_f32(x[i]) * lane_bf16_f32(w[i]);     /* exact product */
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

void iso_matmul_bf16_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_bf16_args *a = args;
    const uint16_t *x = tensors->at[X], *w = tensors->at[W], *bias = tensors->at[BIAS];
    uint32_t flags = 0;

    for (uint64_t n = units.begin; n < units.end; n++)
        for (uint64_t t = 0; t < a->rows.count; t++) {
            float y = dot(x + t * a->k, w + n * a->k, a->k);

            if (a->has_bias != 0)
                y = lane_clean(y, &flags) + lane_bf16_f32(bias[n]);
            if (a->out_f32 != 0)
                ((float *)tensors->at[Y])[t * a->n + n] = lane_clean(y, &flags);
            else
                ((uint16_t *)tensors->at[Y])[t * a->n + n] = (uint16_t)lane_bf16(y, &flags);
        }
    iso_flags_raise(tensors->flags, flags);
}

typedef struct form {
    bool has_bias;
    uint32_t out_f32;
} form;

static iso_case start(const int64_t tnk[3], form f, iso_fill fill_x, iso_fill fill_w,
                      const char *name)
{
    const iso_matmul_params params = {.out_f32 = f.out_f32};
    iso_case test = iso_case_start(ISO_OP_ID_matmul_bf16, "%s_%lldx%lldx%lld%s%s", name,
                                   (long long)tnk[0], (long long)tnk[1], (long long)tnk[2],
                                   f.has_bias ? "_bias" : "", f.out_f32 != 0 ? "_f32" : "");

    iso_case_in(&test, X, iso_desc2(ISO_DTYPE_BF16, tnk[0], tnk[2]), fill_x, 0, 0);
    iso_case_in(&test, W, iso_desc2(ISO_DTYPE_BF16, tnk[1], tnk[2]), fill_w, 0, 0);
    if (f.has_bias)
        iso_case_in(&test, BIAS, iso_desc1(ISO_DTYPE_BF16, tnk[1]), ISO_FILL_MILD, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

static void add_values(iso_case_sink *sink)
{
    static const struct {
        const char *name;
        iso_fill x, w;
        uint32_t flags;
    } value[] = {
        {"tiny", ISO_FILL_TINY, ISO_FILL_TINY, 0},
        {"tiny_mild", ISO_FILL_TINY, ISO_FILL_MILD, 0},
        {"wide", ISO_FILL_WIDE, ISO_FILL_MILD, 0},
        {"huge_tiny", ISO_FILL_HUGE, ISO_FILL_TINY, 0},
        {"huge", ISO_FILL_HUGE, ISO_FILL_HUGE, ISO_FLAG_RANGE},
        {"zero", ISO_FILL_ZERO, ISO_FILL_MILD, 0},
        {"ties", ISO_FILL_TIES, ISO_FILL_TIES, 0},
        {"cancel", ISO_FILL_CANCEL, ISO_FILL_CONSTANT, 0},
        {"onehot", ISO_FILL_ONEHOT, ISO_FILL_WIDE, 0},
        {"raw", ISO_FILL_RAW, ISO_FILL_MILD, ISO_FLAG_RANGE},
    };
    static const int64_t tnk[3] = {3, 9, 1311}, one_k[3] = {5, 64, 1};

    for (size_t i = 0; i < ISO_COUNT_OF(value); i++)
        for (uint32_t out_f32 = 0; out_f32 < 2; out_f32++) {
            iso_case test = start(tnk, (form){false, out_f32}, value[i].x, value[i].w,
                                  value[i].name);

            test.flags_expected = value[i].flags;
            iso_case_add(sink, &test);
        }
    for (uint32_t out_f32 = 0; out_f32 < 2; out_f32++) {         /* sums that clean drops */
        iso_case test = start(one_k, (form){true, out_f32}, ISO_FILL_TINY, ISO_FILL_MILD, "tiny");

        test.input[BIAS].fill = ISO_FILL_TINY;
        iso_case_add(sink, &test);
    }
}

void iso_matmul_bf16_cases(iso_case_sink *sink)
{
    static const int64_t shape[][3] = {
        {1, 1, 1}, {1, 7, 2}, {3, 33, 31}, {2, 7, 32}, {5, 33, 33}, {3, 5, 64}, {2, 3, 77},
        {1, 17, 127}, {4, 7, 128}, {3, 33, 129}, {2, 3, 255}, {7, 8, 256}, {1, 3, 257},
        {2, 31, 512}, {2, 33, 588}, {1, 7, 1023}, {3, 9, 1024}, {2, 7, 1025}, {1, 7, 1152},
        {3, 15, 1280}, {2, 16, 2304}, {1, 17, 4096}, {2, 32, 5120}, {1, 3, 5376}, {1, 3, 9216},
        {2, 3, 20480}, {33, 5, 96}, {130, 9, 64}, {1, 512, 5120}, {0, 7, 64},
    };
    static const int64_t live_shape[3] = {9, 7, 160};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(shape); i++)
        for (uint32_t out_f32 = 0; out_f32 < 2; out_f32++) {
            test = start(shape[i], (form){i % 3 == 2, out_f32}, ISO_FILL_MILD, ISO_FILL_MILD,
                         "mild");
            iso_case_add(sink, &test);
        }
    add_values(sink);
    test = start(live_shape, (form){true, 0}, ISO_FILL_MILD, ISO_FILL_MILD, "live5");
    iso_case_live(&test, X, 1);
    test.live = 5;
    iso_case_add(sink, &test);
    test = start(live_shape, (form){false, 1}, ISO_FILL_MILD, ISO_FILL_MILD, "live0");
    iso_case_live(&test, X, 1);
    iso_case_add(sink, &test);
}
