/* engram_gate_rows: stream by stream, channels as lanes; the sums in the 32 lanes of numerics 7.
 * The gate itself is one number a stream and is scalar. A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_ENGRAM_GATE_ROWS_H
#define ISO_CPU_X86_ENGRAM_GATE_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/row_sum_vec.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/gate.h"
#include "ggml-style-ops/inv_sqrt.h"

enum { X, KV, Q_WEIGHT, K_WEIGHT, IMAGE, Y };

/* clean((h * clean(q k)) * key); the first product is exact (numerics 16). */
static inline vec_pair term_pair(const iso_gate_rows *g, uint32_t i, uint32_t count, veci *bad)
{
    const vec_pair qk = vec_pair_mul(vec_pair_load_bf16_n(g->q_weight + i, count),
                                     vec_pair_load_bf16_n(g->k_weight + i, count));
    const vec_pair h = vec_pair_load_bf16_n(g->h + i, count);
    const vec_pair hw = vec_pair_mul(h, vec_pair_clean(qk, bad));

    return vec_pair_clean(vec_pair_mul(hw, vec_pair_load_bf16_n(g->key + i, count)), bad);
}

/* One segment of the row sum. A missing element adds +0, which changes no lane: cleaned terms and
 * sums that start at +0 are never -0. */
static float segment_dot(const iso_gate_rows *g, uint32_t begin, uint32_t end, veci *bad)
{
    iso_lane32 sum = iso_lane32_zero();
    uint32_t i = begin;

    for (; i + 32 <= end; i += 32)
        for (uint32_t part = 0; part < ROW_SUM_PAIRS; part++)
            sum.part[part] = vec_pair_add(sum.part[part],
                                          term_pair(g, i + part * VEC_PAIR, VEC_PAIR, bad));
    for (uint32_t part = 0; i < end; part++, i += VEC_PAIR)
        sum.part[part] = vec_pair_add(
            sum.part[part], term_pair(g, i, end - i < VEC_PAIR ? end - i : VEC_PAIR, bad));
    return iso_lane32_tree(&sum);
}

/* iso_gate_dot of gate.h. */
static float gate_dot(const iso_gate_rows *g, veci *bad, uint32_t *flags)
{
    const float r = iso_mean_rsqrt_vec(g->h, g->n, g->eps)
                  * iso_mean_rsqrt_vec(g->key, g->n, g->eps);
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
static inline void update_pair(const uint16_t *x, const uint16_t *value, vec_pair gate, uint16_t *y,
                            uint32_t count, veci *bad)
{
    const vec_pair add = vec_pair_mul(gate, vec_pair_load_bf16_n(value, count));

    vec_pair_store_bf16_n(y, count, vec_pair_add(vec_pair_load_bf16_n(x, count), add), bad);
}

static void update_row(const uint16_t *x, const uint16_t *value, float gate, uint16_t *y,
                       uint32_t dim, veci *bad)
{
    const vec_pair g = vec_pair_set1(gate);
    uint32_t i = 0;

    for (; i + VEC_PAIR <= dim; i += VEC_PAIR)
        update_pair(x + i, value + i, g, y + i, VEC_PAIR, bad);
    if (i < dim)
        update_pair(x + i, value + i, g, y + i, dim - i, bad);
}

void VEC_KERNEL(engram_gate_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_engram_gate_args *a = args;
    const float inv_sqrt = iso_inv_sqrt_u32(a->dim);
    const int32_t *image = tensors->at[IMAGE];
    veci bad = VECS(setzero)();
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
    iso_flags_raise(tensors->flags, flags | vec_flags(bad));
}

#endif
