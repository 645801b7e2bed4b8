/* engram_gate, stream by stream, channels as lanes; the sums in the 32 lanes of numerics 7. The
 * gate itself is one number a stream and stays scalar. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/arm/row_sum_neon.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/gate.h"
#include "ggml-style-ops/inv_sqrt.h"

enum { X, KV, Q_WEIGHT, K_WEIGHT, IMAGE, Y };

/* clean((h * clean(q k)) * key); the first product is exact (numerics 16). */
static inline lane8 term8(const iso_gate_rows *g, uint32_t i, uint32_t count, uint32x4_t *bad)
{
    const lane8 qk = lane8_mul(lane8_load_bf16_n(g->q_weight + i, count),
                                 lane8_load_bf16_n(g->k_weight + i, count));
    const lane8 hw = lane8_mul(lane8_load_bf16_n(g->h + i, count), lane8_clean(qk, bad));

    return lane8_clean(lane8_mul(hw, lane8_load_bf16_n(g->key + i, count)), bad);
}

/* One segment of the row sum. A missing element adds +0, which changes no lane: cleaned terms and
 * sums that start at +0 are never -0. */
static float segment_dot(const iso_gate_rows *g, uint32_t begin, uint32_t end, uint32x4_t *bad)
{
    iso_lane32 sum = iso_lane32_zero();
    uint32_t i = begin;

    for (; i + 32 <= end; i += 32)
        for (uint32_t j = 0; j < 4; j++)
            sum.part[j] = lane8_add(sum.part[j], term8(g, i + 8 * j, 8, bad));
    for (uint32_t j = 0; i < end; i += 8, j++)
        sum.part[j] = lane8_add(sum.part[j], term8(g, i, end - i < 8 ? end - i : 8, bad));
    return iso_lane32_tree(&sum);
}

/* iso_gate_dot of gate.h. */
static float gate_dot(const iso_gate_rows *g, uint32x4_t *bad, uint32_t *flags)
{
    const float r = iso_mean_rsqrt_neon(g->h, g->n, g->eps)
                  * iso_mean_rsqrt_neon(g->key, g->n, g->eps);
    float sum = 0.0f, d;

    for (uint32_t i = 0; i < g->n; i += LANE_ROW_SEGMENT) {
        const uint32_t end = g->n - i < LANE_ROW_SEGMENT ? g->n : i + LANE_ROW_SEGMENT;
        const float segment = segment_dot(g, i, end, bad);

        sum = i != 0 ? sum + segment : segment;
    }
    d = sum * r;
    return lane_clean(d * g->inv_sqrt, flags);
}

/* y = x + gate * value; the gate is f32: never fused. */
static inline void update8(const uint16_t *x, const uint16_t *value, lane8 gate, uint16_t *y,
                            uint32_t count, uint32x4_t *bad)
{
    const lane8 add = lane8_mul(gate, lane8_load_bf16_n(value, count));

    lane8_store_bf16_n(y, count, lane8_add(lane8_load_bf16_n(x, count), add), bad);
}

static void update_row(const uint16_t *x, const uint16_t *value, float gate, uint16_t *y,
                       uint32_t dim, uint32x4_t *bad)
{
    const lane8 g = lane8_set1(gate);
    uint32_t i = 0;

    for (; i + 8 <= dim; i += 8)
        update8(x + i, value + i, g, y + i, 8, bad);
    if (i < dim)
        update8(x + i, value + i, g, y + i, dim - i, bad);
}

void iso_cpu_engram_gate_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_engram_gate_args *a = args;
    const float inv_sqrt = iso_inv_sqrt_u32(a->dim);
    const int32_t *image = tensors->at[IMAGE];
    uint32x4_t bad = vdupq_n_u32(0);
    uint32_t flags = 0;

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint64_t token = unit / a->streams, stream = unit % a->streams;
        const uint16_t *x = (const uint16_t *)tensors->at[X] + unit * a->dim;
        const uint16_t *kv = (const uint16_t *)tensors->at[KV] + token * (a->streams + 1) * a->dim;
        uint16_t *y = (uint16_t *)tensors->at[Y] + unit * a->dim;
        const iso_gate_rows rows = {
            .h = x,
            .key = kv + stream * a->dim,
            .q_weight = (const uint16_t *)tensors->at[Q_WEIGHT] + stream * a->dim,
            .k_weight = (const uint16_t *)tensors->at[K_WEIGHT] + stream * a->dim,
            .n = a->dim,
            .eps = a->eps,
            .inv_sqrt = inv_sqrt,
        };

        if (image != NULL && image[token] != 0)
            memcpy(y, x, a->dim * sizeof *y);
        else
            update_row(x, kv + (uint64_t)a->streams * a->dim,
                       iso_gate_of_dot(gate_dot(&rows, &bad, &flags), &flags), y, a->dim, &bad);
    }
    iso_flags_raise(tensors->flags, flags | lane4_flags(bad));
}
