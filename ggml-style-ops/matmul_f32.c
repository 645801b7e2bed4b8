/* matmul_f32: product with f32 weights (the projection of the hyper-connections).
 *   y[t,n] = sum_k x[t,k] * w[n,k], every product rounded before it is added
 * Shapes:   x bf16 [T, K] or [T, S, D] with S D = K, stream-major; w f32 [N, K]; y f32 [T, N].
 *           T >= 0, 1 <= K <= 2^20, N >= 1.
 * Units:    one output feature n, for all live rows.
 * Order:    numerics 6.1, 6.3; never fused; the result is cleaned.
 * Ranges:   operands are in the domain (2.2); products are 0 or >= 2^-100 and multiples of 2^-123,
 *           so no partial sum is subnormal; below 2^120 (L1).
 * Params:   none.
 * Aliasing: none.
 * Errors:   a result of 2^50 or more, or NaN, raises ISO_FLAG_RANGE; ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/model.py, Block.hc_pre. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, W, Y };

static int64_t row_elems(const iso_tensor_desc *x) { return x->extent[1] * x->extent[2]; }

iso_status iso_matmul_f32_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *x = &call->in[X], *w = &call->in[W];

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, x->rank == 3 ? 3 : 2, error));
    ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_within(call, W, "w", 0, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_within(call, W, "w", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_extent(call, W, "w", 1, row_elems(x), error));
    call->out[0] = iso_desc2(ISO_DTYPE_F32, x->extent[0], w->extent[0]);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_matmul_f32_fill(const iso_op_call *call, void *args)
{
    *(iso_matmul_f32_args *)args = (iso_matmul_f32_args){
        .rows = iso_live_of(&call->in[X]),
        .k = (uint32_t)call->in[W].extent[1],
        .n = (uint32_t)call->in[W].extent[0],
    };
}

uint64_t iso_matmul_f32_units(const void *args)
{
    const iso_matmul_f32_args *a = args;

    return a->n;
}

static float dot(const uint16_t *x, const float *w, uint32_t k)
{
    iso_sum3 sum = {0};

    for (uint32_t begin = 0; begin < k; begin += LANE_CHUNK) {
        const uint32_t end = k - begin < LANE_CHUNK ? k : begin + LANE_CHUNK;
        float chunk = 0.0f;

        for (uint32_t i = begin; i < end; i++) {
            const float product = lane_bf16_f32(x[i]) * w[i];    /* rounded: never fused */

            chunk = chunk + product;
        }
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

void iso_matmul_f32_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_f32_args *a = args;
    const uint16_t *x = tensors->at[X];
    const float *w = tensors->at[W];
    float *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t n = units.begin; n < units.end; n++)
        for (uint64_t t = 0; t < a->rows.count; t++)
            y[t * a->n + n] = lane_clean(dot(x + t * a->k, w + n * a->k, a->k), &flags);
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(iso_tensor_desc x, int64_t features, iso_fill fill_x, iso_fill fill_w,
                      const char *name)
{
    const int64_t k = row_elems(&x);
    iso_case test = iso_case_start(ISO_OP_ID_matmul_f32, "%s_%lldx%lldx%lld", name,
                                   (long long)x.extent[0], (long long)features, (long long)k);

    iso_case_in(&test, X, x, fill_x, 0, 0);
    iso_case_in(&test, W, iso_desc2(ISO_DTYPE_F32, features, k), fill_w, 0, 0);
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

    for (size_t i = 0; i < ISO_COUNT_OF(value); i++) {
        iso_case test = start(iso_desc2(ISO_DTYPE_BF16, 3, 1311), 9, value[i].x, value[i].w,
                              value[i].name);

        test.flags_expected = value[i].flags;
        iso_case_add(sink, &test);
    }
}

void iso_matmul_f32_cases(iso_case_sink *sink)
{
    static const int64_t shape[][3] = {           /* T, N, K */
        {1, 1, 1}, {3, 7, 2}, {3, 33, 31}, {2, 24, 32}, {5, 24, 33}, {3, 5, 64}, {1, 17, 127},
        {4, 7, 128}, {3, 24, 129}, {2, 24, 256}, {2, 7, 588}, {1, 7, 1023}, {3, 9, 1024},
        {2, 7, 1025}, {3, 15, 1280}, {1, 24, 4096}, {33, 5, 96}, {2, 24, 20480}, {1, 24, 28672},
        {0, 24, 64},
    };
    const iso_fill mild = ISO_FILL_MILD;
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(shape); i++) {
        test = start(iso_desc2(ISO_DTYPE_BF16, shape[i][0], shape[i][2]), shape[i][1], mild, mild,
                     "mild");
        iso_case_add(sink, &test);
    }
    add_values(sink);
    test = start(iso_desc3(ISO_DTYPE_BF16, 3, 4, 320), 24, mild, mild, "streams");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 1, 4, 5120), 24, ISO_FILL_WIDE, mild, "streams_wide");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 9, 4, 40), 24, mild, mild, "live5");
    iso_case_live(&test, X, 1);
    test.live = 5;
    iso_case_add(sink, &test);
}
