/* matmul_fp8: product of e4m3 activations and e4m3 weights, both with power-of-two scales.
 *   a[t,k] = x[t,k] * xs[t, k / group];  b[n,k] = w[n,k] * ws[n / tile, k / tile]
 *   y[t,n] = sum_k a[t,k] * b[n,k]
 * Shapes:   x e4m3 [T, K]; xs ue8m0 [T, ceil(K / group)]; w e4m3 [N, K];
 *           ws ue8m0 [ceil(N / tile), ceil(K / tile)]; y bf16 [T, N], or [T, heads, N / heads].
 *           T >= 0, 1 <= K <= 2^20, N >= 1.
 * Units:    one output feature n, for all live rows.
 * Order:    numerics 6.4: a and b are the exact dequantised values, cleaned; then 6.1 and 6.2.
 * Ranges:   no code is NaN; bytes of ws lie in [64, 168], of xs in [105, 169], so a and b are bf16
 *           numbers of the domain; the rest as matmul_bf16.
 * Params:   tile 32 (V4.1) or 128 (V4); group = tile; heads > 0 shapes y as [T, heads, N / heads].
 * Aliasing: none.
 * Errors:   an operand or a result of 2^50 or more, or NaN, raises ISO_FLAG_RANGE; ISO_BAD_SHAPE;
 *           ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/kernel.py, fp8_gemm. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, XS, W, WS, Y };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

iso_status iso_matmul_fp8_infer(iso_op_call *call, iso_error *error)
{
    const iso_tile_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X], *w = &call->in[W];
    const int64_t tile = params->tile;

    ISO_TRY(iso_rule_param(call, tile == 32 || tile == 128, "tile is not 32 or 128", error));
    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_E4M3, 2, error));
    ISO_TRY(iso_rule_within(call, X, "x", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, XS, "xs", ISO_DTYPE_UE8M0, 2, error));
    ISO_TRY(iso_rule_extent(call, XS, "xs", 0, x->extent[0], error));
    ISO_TRY(iso_rule_extent(call, XS, "xs", 1, ceil_div(x->extent[1], tile), error));
    ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_E4M3, 2, error));
    ISO_TRY(iso_rule_within(call, W, "w", 0, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_extent(call, W, "w", 1, x->extent[1], error));
    ISO_TRY(iso_rule_input(call, WS, "ws", ISO_DTYPE_UE8M0, 2, error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 0, ceil_div(w->extent[0], tile), error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 1, ceil_div(w->extent[1], tile), error));
    ISO_TRY(iso_rule_param(call, params->heads == 0 || w->extent[0] % params->heads == 0,
                           "heads does not divide N", error));
    call->out[0] = params->heads == 0
                       ? iso_desc2(ISO_DTYPE_BF16, x->extent[0], w->extent[0])
                       : iso_desc3(ISO_DTYPE_BF16, x->extent[0], params->heads,
                                   w->extent[0] / params->heads);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_matmul_fp8_fill(const iso_op_call *call, void *args)
{
    const iso_tile_params *params = (const void *)call->params;

    *(iso_matmul_fp8_args *)args = (iso_matmul_fp8_args){
        .rows = iso_live_of(&call->in[X]),
        .k = (uint32_t)call->in[X].extent[1],
        .n = (uint32_t)call->in[W].extent[0],
        .group = params->tile,
        .tile = params->tile,
    };
}

uint64_t iso_matmul_fp8_units(const void *args)
{
    const iso_matmul_fp8_args *a = args;

    return a->n;
}

static float operand(uint32_t code, uint32_t scale, uint32_t *flags)
{
    return lane_clean(lane_e4m3_f32(code) * lane_ue8m0_f32(scale), flags);
}

/* One row of codes with its scales, one per `group` codes. */
typedef struct row {
    const uint8_t *code, *scale;
    uint32_t group;
} row;

static float dot(row x, row w, uint32_t k, uint32_t *flags)
{
    iso_sum3 sum = {0};

    for (uint32_t begin = 0; begin < k; begin += LANE_CHUNK) {
        const uint32_t end = k - begin < LANE_CHUNK ? k : begin + LANE_CHUNK;
        float chunk = 0.0f;

        for (uint32_t i = begin; i < end; i++) {
            const float a = operand(x.code[i], x.scale[i / x.group], flags);
            const float b = operand(w.code[i], w.scale[i / w.group], flags);

            chunk = chunk + a * b;                /* 4 + 4 bits: exact product */
        }
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

void iso_matmul_fp8_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_fp8_args *a = args;
    const uint8_t *x = tensors->at[X], *xs = tensors->at[XS];
    const uint8_t *w = tensors->at[W], *ws = tensors->at[WS];
    const uint64_t x_groups = (a->k - 1) / a->group + 1, w_tiles = (a->k - 1) / a->tile + 1;
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t n = units.begin; n < units.end; n++) {
        const row wn = {w + n * a->k, ws + n / a->tile * w_tiles, a->tile};

        for (uint64_t t = 0; t < a->rows.count; t++) {
            const row xt = {x + t * a->k, xs + t * x_groups, a->group};

            y[t * a->n + n] = (uint16_t)lane_bf16(dot(xt, wn, a->k, &flags), &flags);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

typedef struct bytes {
    int64_t x_low, x_high, w_low, w_high;
} bytes;

static const bytes mild = {115, 126, 110, 129};

static iso_case start(const int64_t tnk[3], uint32_t tile, bytes b, const char *name)
{
    const iso_tile_params params = {.tile = tile};
    const int64_t k_tiles = ceil_div(tnk[2], tile);
    iso_case test = iso_case_start(ISO_OP_ID_matmul_fp8, "%s_%lldx%lldx%lld_%u", name,
                                   (long long)tnk[0], (long long)tnk[1], (long long)tnk[2], tile);

    iso_case_in(&test, X, iso_desc2(ISO_DTYPE_E4M3, tnk[0], tnk[2]), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, XS, iso_desc2(ISO_DTYPE_UE8M0, tnk[0], k_tiles), ISO_FILL_RANGE, b.x_low,
                b.x_high);
    iso_case_in(&test, W, iso_desc2(ISO_DTYPE_E4M3, tnk[1], tnk[2]), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, WS, iso_desc2(ISO_DTYPE_UE8M0, ceil_div(tnk[1], tile), k_tiles),
                ISO_FILL_RANGE, b.w_low, b.w_high);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

/* x and w from the same few codes, w negated in every second column: sums that cancel. */
static void make_cancel(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X], *w = inputs[W];
    const int64_t k = test->call.in[X].extent[1];

    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i++)
        x[i] = (uint8_t)(0x38 + i % k / 2 % 32);
    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[W]); i++)
        w[i] = (uint8_t)(0x38 | (i % k % 2) << 7 | (i % k == 6));
    memset(inputs[XS], 120, (size_t)iso_desc_elems(&test->call.in[XS]));
    memset(inputs[WS], 118, (size_t)iso_desc_elems(&test->call.in[WS]));
}

/* One nonzero code per row of x. */
static void make_onehot(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X];
    const int64_t rows = test->call.in[X].extent[0], k = test->call.in[X].extent[1];

    memset(x, 0, (size_t)(rows * k));
    for (int64_t t = 0; t < rows; t++)
        x[t * k + t * 37 % k] = (uint8_t)(0x31 + t);
}

/* Every pair of codes that are not NaN: x holds code k, w[n] holds code n. */
static void make_pairs(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X], *w = inputs[W];
    const int64_t k = test->call.in[X].extent[1];

    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i++)
        x[i] = (uint8_t)((i & 0x7f) == 0x7f ? 0 : i);
    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[W]); i++)
        w[i] = (uint8_t)((i / k & 0x7f) == 0x7f ? 0 : i / k);
}

static void add_values(iso_case_sink *sink, uint32_t tile)
{
    static const struct {
        const char *name;
        bytes b;
        iso_case_make_fn *make;
        uint32_t flags;
    } value[] = {
        {"tiny", {105, 105, 64, 86}, NULL, 0},
        {"low_bytes", {105, 108, 64, 168}, NULL, 0},
        {"act_bytes", {105, 168, 64, 66}, NULL, 0},
        {"spread", {105, 137, 100, 130}, NULL, 0},
        {"equal", {120, 120, 120, 120}, NULL, 0},
        {"cancel", {120, 120, 118, 118}, make_cancel, 0},
        {"onehot", {105, 126, 70, 130}, make_onehot, 0},
        {"overflow", {160, 168, 160, 168}, NULL, ISO_FLAG_RANGE},
    };
    static const int64_t tnk[3] = {3, 37, 1312}, pairs[3] = {1, 255, 256};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(value); i++) {
        test = start(tnk, tile, value[i].b, value[i].name);
        test.make = value[i].make;
        test.flags_expected = value[i].flags;
        iso_case_add(sink, &test);
    }
    test = start(pairs, tile, mild, "pairs");
    test.make = make_pairs;
    iso_case_add(sink, &test);
}

void iso_matmul_fp8_cases(iso_case_sink *sink)
{
    static const int64_t shape[][3] = {
        {1, 1, 1}, {1, 7, 31}, {3, 33, 32}, {2, 7, 33}, {3, 5, 64}, {2, 3, 96}, {4, 7, 127},
        {3, 33, 128}, {2, 65, 129}, {7, 8, 160}, {2, 31, 256}, {2, 129, 288}, {2, 33, 512},
        {1, 7, 992}, {3, 9, 1024}, {2, 7, 1056}, {3, 15, 1280}, {2, 16, 2304}, {1, 17, 4096},
        {2, 32, 5120}, {1, 3, 8192}, {1, 3, 20480}, {33, 5, 96}, {130, 9, 64}, {1, 1280, 5120},
        {0, 7, 64},
    };
    static const int64_t live_shape[3] = {9, 7, 160};
    static const uint32_t tiles[] = {32, 128};
    iso_case test;

    for (size_t t = 0; t < ISO_COUNT_OF(tiles); t++) {
        for (size_t i = 0; i < ISO_COUNT_OF(shape); i++) {
            test = start(shape[i], tiles[t], mild, "mild");
            iso_case_add(sink, &test);
        }
        add_values(sink, tiles[t]);
        test = start((int64_t[]){3, 24, 96}, tiles[t], mild, "heads3");
        ((iso_tile_params *)(void *)test.call.params)->heads = 3;
        iso_case_add(sink, &test);
        test = start(live_shape, tiles[t], mild, "live5");
        iso_case_live(&test, X, 1);
        iso_case_live(&test, XS, 1);
        test.live = 5;
        iso_case_add(sink, &test);
    }
}
