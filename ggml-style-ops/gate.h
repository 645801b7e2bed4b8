/* gate: how much of the Engram value a stream takes (numerics 16). */
#ifndef ISO_OPS_GATE_H
#define ISO_OPS_GATE_H

#include "ggml-style-ops/lane/log1p.h"
#include "ggml-style-ops/rms.h"

/* sigmoid of the signed square root of d, |d| at least 1e-6; d is cleaned, so +0 counts as > 0. */
static inline float iso_gate_of_dot(float d, uint32_t *flags)
{
    const uint32_t u = lane_bits(d), sign = u & 0x80000000u;
    const float magnitude = lane_float(u & 0x7fffffffu), least = lane_float(LANE_EPS_1E6);
    const float root = lane_sqrt(magnitude > least ? magnitude : least);

    return lane_clean(lane_sigmoid(lane_float(lane_bits(root) | sign)), flags);
}

/* One stream and its key, n values each, with the weights of the stream; inv_sqrt is n^-1/2. */
typedef struct iso_gate_rows {
    const uint16_t *h, *key, *q_weight, *k_weight;
    uint32_t n;
    float eps, inv_sqrt;
} iso_gate_rows;

/* The weighted, normalised dot of the stream and its key. */
static inline float iso_gate_dot(const iso_gate_rows *g, uint32_t *flags)
{
    const float r = iso_mean_rsqrt(g->h, g->n, g->eps) * iso_mean_rsqrt(g->key, g->n, g->eps);
    iso_row_sum sum = {0};
    float d;

    for (uint32_t i = 0; i < g->n; i++) {
        const float qk = lane_bf16_f32(g->q_weight[i]) * lane_bf16_f32(g->k_weight[i]);
        const float hw = lane_bf16_f32(g->h[i]) * lane_clean(qk, flags);   /* 8 + 16 bits: exact */

        iso_row_sum_add(&sum, lane_clean(hw * lane_bf16_f32(g->key[i]), flags));
    }
    d = iso_row_sum_end(&sum) * r;
    return lane_clean(d * g->inv_sqrt, flags);
}

#endif
