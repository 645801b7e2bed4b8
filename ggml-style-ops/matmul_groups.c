/* matmul_groups: block-diagonal product of bf16 activations and e4m3 weights (the output
 * projection wo_a: a group of heads has its own rows of weights).
 *   b[j,k] = w[j,k] * ws[j / tile, k / tile];   j = g R + r, output feature r of group g
 *   y[t,j] = sum_k x[t,g,k] * b[j,k]
 * Shapes:   x bf16 [T, G, K], or [T, H, d] with H d = G K: heads g H/G .. lie side by side;
 *           w e4m3 [G R, K]; ws ue8m0 [ceil(G R / tile), ceil(K / tile)]; y bf16 [T, G R].
 *           T >= 0, 1 <= K <= 2^20, R >= 1.
 * Units:    one output feature j, for all live rows.
 * Order:    numerics 6.4: b is the exact dequantised value, cleaned; then 6.1 and 6.2.
 * Ranges:   x is in the domain (2.2); no code is NaN; bytes of ws lie in [64, 168], so b is a bf16
 *           number of the domain; the rest as matmul_bf16.
 * Params:   tile 32 (V4.1) or 128 (V4); groups G >= 1: 8, or 16 in V4-Pro.
 * Aliasing: none.
 * Errors:   an operand or a result of 2^50 or more, or NaN, raises ISO_FLAG_RANGE; ISO_BAD_SHAPE;
 *           ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/model.py, Attention.forward (wo_a einsum). Differs from it in:
 *           order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, W, WS, Y };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

iso_status iso_matmul_groups_infer(iso_op_call *call, iso_error *error)
{
    const iso_groups_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X], *w = &call->in[W];
    const int64_t tile = params->tile, groups = params->groups;

    ISO_TRY(iso_rule_param(call, tile == 32 || tile == 128, "tile is not 32 or 128", error));
    ISO_TRY(iso_rule_param(call, groups >= 1 && groups <= 1 << 16, "groups not in 1 .. 2^16",
                           error));
    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, 3, error));
    ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_E4M3, 2, error));
    ISO_TRY(iso_rule_multiple(call, W, "w", 0, groups, error));
    ISO_TRY(iso_rule_within(call, W, "w", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_param(call, x->extent[1] * x->extent[2] == groups * w->extent[1],
                           "a row of x is not groups * K", error));
    ISO_TRY(iso_rule_input(call, WS, "ws", ISO_DTYPE_UE8M0, 2, error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 0, ceil_div(w->extent[0], tile), error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 1, ceil_div(w->extent[1], tile), error));
    call->out[0] = iso_desc2(ISO_DTYPE_BF16, x->extent[0], w->extent[0]);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_matmul_groups_fill(const iso_op_call *call, void *args)
{
    const iso_groups_params *params = (const void *)call->params;

    *(iso_matmul_groups_args *)args = (iso_matmul_groups_args){
        .rows = iso_live_of(&call->in[X]),
        .groups = params->groups,
        .k = (uint32_t)call->in[W].extent[1],
        .n = (uint32_t)(call->in[W].extent[0] / params->groups),
        .tile = params->tile,
    };
}

uint64_t iso_matmul_groups_units(const void *args)
{
    const iso_matmul_groups_args *a = args;

    return (uint64_t)a->groups * a->n;
}

static float dot(const uint16_t *x, const uint8_t *w, const uint8_t *ws,
                 const iso_matmul_groups_args *a, uint32_t *flags)
{
    iso_sum3 sum = {0};

    for (uint32_t begin = 0; begin < a->k; begin += LANE_CHUNK) {
        const uint32_t end = a->k - begin < LANE_CHUNK ? a->k : begin + LANE_CHUNK;
        float chunk = 0.0f;

        for (uint32_t i = begin; i < end; i++) {
            const float b = lane_clean(lane_e4m3_f32(w[i]) * lane_ue8m0_f32(ws[i / a->tile]),
                                       flags);

            chunk = chunk + lane_bf16_f32(x[i]) * b;             /* 8 + 4 bits: exact product */
        }
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

void iso_matmul_groups_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_groups_args *a = args;
    const uint16_t *x = tensors->at[X];
    const uint8_t *w = tensors->at[W], *ws = tensors->at[WS];
    const uint64_t features = (uint64_t)a->groups * a->n, tiles = (a->k - 1) / a->tile + 1;
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t j = units.begin; j < units.end; j++)
        for (uint64_t t = 0; t < a->rows.count; t++) {
            const uint16_t *xg = x + (t * a->groups + j / a->n) * a->k;
            const float sum = dot(xg, w + j * a->k, ws + j / a->tile * tiles, a, &flags);

            y[t * features + j] = (uint16_t)lane_bf16(sum, &flags);
        }
    iso_flags_raise(tensors->flags, flags);
}

typedef struct shape {
    int64_t t, groups, r, k;
} shape;

static iso_case start(shape s, uint32_t tile, iso_fill fill, int64_t low, int64_t high,
                      const char *name)
{
    const iso_groups_params params = {.tile = tile, .groups = (uint32_t)s.groups};
    const int64_t features = s.groups * s.r;
    iso_case test = iso_case_start(ISO_OP_ID_matmul_groups, "%s_%lldx%lldx%lldx%lld_%u", name,
                                   (long long)s.t, (long long)s.groups, (long long)s.r,
                                   (long long)s.k, tile);

    iso_case_in(&test, X, iso_desc3(ISO_DTYPE_BF16, s.t, s.groups, s.k), fill, 0, 0);
    iso_case_in(&test, W, iso_desc2(ISO_DTYPE_E4M3, features, s.k), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, WS, iso_desc2(ISO_DTYPE_UE8M0, ceil_div(features, tile),
                                     ceil_div(s.k, tile)), ISO_FILL_RANGE, low, high);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

static void add_values(iso_case_sink *sink, uint32_t tile)
{
    static const struct {
        const char *name;
        iso_fill x;
        int64_t low, high;
        uint32_t flags;
    } value[] = {
        {"tiny", ISO_FILL_TINY, 64, 86, 0},
        {"all_bytes", ISO_FILL_TINY, 64, 168, 0},
        {"wide", ISO_FILL_WIDE, 110, 129, 0},
        {"huge", ISO_FILL_HUGE, 64, 80, 0},
        {"overflow", ISO_FILL_HUGE, 160, 168, ISO_FLAG_RANGE},
        {"zero", ISO_FILL_ZERO, 64, 168, 0},
        {"cancel", ISO_FILL_CANCEL, 110, 129, 0},
        {"onehot", ISO_FILL_ONEHOT, 64, 150, 0},
        {"raw", ISO_FILL_RAW, 110, 129, ISO_FLAG_RANGE},
    };
    static const shape s = {3, 2, 19, 1312};

    for (size_t i = 0; i < ISO_COUNT_OF(value); i++) {
        iso_case test = start(s, tile, value[i].x, value[i].low, value[i].high, value[i].name);

        test.flags_expected = value[i].flags;
        iso_case_add(sink, &test);
    }
}

void iso_matmul_groups_cases(iso_case_sink *sink)
{
    static const shape shapes[] = {
        {1, 1, 1, 1}, {2, 2, 1, 31}, {3, 2, 33, 32}, {2, 3, 7, 33}, {2, 3, 11, 64},
        {1, 5, 13, 127}, {2, 4, 32, 128}, {2, 2, 65, 129}, {5, 1, 7, 160}, {2, 8, 4, 512},
        {1, 2, 5, 1056}, {1, 2, 7, 2304}, {2, 8, 2, 4096}, {1, 1, 1024, 1024}, {33, 2, 3, 96},
        {130, 2, 5, 64}, {1, 8, 64, 4096}, {0, 2, 7, 64},
    };
    static const shape live_shape = {9, 2, 7, 160};
    static const uint32_t tiles[] = {32, 128};
    iso_case test;

    for (size_t t = 0; t < ISO_COUNT_OF(tiles); t++) {
        for (size_t i = 0; i < ISO_COUNT_OF(shapes); i++) {
            test = start(shapes[i], tiles[t], ISO_FILL_MILD, 110, 129, "mild");
            iso_case_add(sink, &test);
        }
        add_values(sink, tiles[t]);
        test = start(live_shape, tiles[t], ISO_FILL_MILD, 110, 129, "live5");
        iso_case_live(&test, X, 1);
        test.live = 5;
        iso_case_add(sink, &test);
        test = start((shape){3, 4, 8, 192}, tiles[t], ISO_FILL_MILD, 110, 129, "heads");
        test.call.in[X] = iso_desc3(ISO_DTYPE_BF16, 3, 12, 64);
        iso_case_add(sink, &test);
    }
}
