/* matmul_groups_vec: what the kernels of matmul_groups share: inputs and results. A file includes
 * vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_GROUPS_VEC_H
#define ISO_CPU_X86_MATMUL_GROUPS_VEC_H

#include "backends/cpu/x86/e4m3_rows.h"
#include "ggml-style-ops/args.h"

enum { GROUPS_X, GROUPS_W, GROUPS_WS, GROUPS_Y };

static inline e4m3_weights groups_weights_of(const panel_job *job, const panel_block *b)
{
    const iso_matmul_groups_args *a = job->args;
    const uint32_t shift = e4m3_shift(a->tile);
    const uint64_t tiles = ((a->k - 1) >> shift) + 1;
    const uint8_t *scales = job->at[GROUPS_WS];

    return (e4m3_weights){job->at[GROUPS_W], scales + (b->n >> shift) * tiles, a->k, shift};
}

/* Row t of the block's group. */
static inline const uint16_t *groups_input_row(const panel_job *job, const panel_block *b,
                                               uint64_t t)
{
    const iso_matmul_groups_args *a = job->args;

    return (const uint16_t *)job->at[GROUPS_X] + (t * a->groups + b->part) * a->k;
}

/* panel_inputs_fn */
static inline uint32_t groups_inputs(const panel_job *job, const panel_block *b, uint64_t t,
                                     float *x)
{
    panel_bf16_row(groups_input_row(job, b, t) + b->begin, b->count, x);
    return 0;
}

/* Set in the lanes of inputs whose magnitude is not 0 and not in [2^-50, 2^50). */
static inline __m256i groups_is_outside(const uint16_t *half)
{
    const __m256i u = _mm256_loadu_si256((const void *)half);
    const __m256i a = _mm256_and_si256(u, _mm256_set1_epi16(0x7fff));
    const __m256i above = _mm256_sub_epi16(a, _mm256_set1_epi16(LANE_CLEAN_MIN >> 16));
    const __m256i range = _mm256_set1_epi16((LANE_CLEAN_MAX - LANE_CLEAN_MIN) >> 16);
    const __m256i is_far = _mm256_cmpeq_epi16(_mm256_max_epu16(above, range), above);

    return _mm256_andnot_si256(_mm256_cmpeq_epi16(a, _mm256_setzero_si256()), is_far);
}

/* x [64] from `half` on, which is k = begin of a row, times the scales of w unless w is NULL; 2^8
 * of the conversion of the weights is made good. +0 from x[count] on. false: an input or a scale
 * needs `clean`. */
static inline bool groups_scaled(const e4m3_weights *w, const uint16_t *half, uint32_t begin,
                                 uint32_t count, float *x)
{
    uint16_t copy[PANEL_LINE];
    __m256i bad = _mm256_setzero_si256();

    if (count < PANEL_LINE) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, half, count * sizeof *half);
        half = copy;
    }
    for (uint32_t i = 0; i < PANEL_LINE; i += E4M3_STEP, half += E4M3_STEP, x += E4M3_STEP) {
        const uint32_t at = begin + (i < count ? i : 0);
        const uint32_t byte = w != NULL ? w->scale[at >> w->shift] : 127;
        /* 2^-50 .. 2^50 times 2^(86 - 127 + 8) .. 2^(168 - 127 + 8): far inside f32 */
        const vecf scale = e4m3_power(byte, w != NULL ? 8 : 0);

        if (!e4m3_scale_is_plain(byte))
            return false;
        bad = _mm256_or_si256(bad, _mm256_or_si256(groups_is_outside(half),
                                                   groups_is_outside(half + 16)));
        for (uint32_t k = 0; k < E4M3_STEP; k += VEC_LANES)
            VEC(store_ps)(x + k, VEC(mul_ps)(vec_load_bf16(half + k), scale));
    }
    return _mm256_testz_si256(bad, bad) != 0;
}

/* panel_line_fn */
static inline bool groups_line(const panel_job *job, const panel_block *b, uint64_t t,
                               uint32_t begin, uint32_t count, float *x)
{
    const e4m3_weights w = groups_weights_of(job, b);

    return groups_scaled(&w, groups_input_row(job, b, t) + begin, begin, count, x);
}

/* panel_store_fn */
static inline uint32_t groups_store(const panel_job *job, const panel_block *b, uint64_t t,
                                    const float *y)
{
    const iso_matmul_groups_args *a = job->args;

    return panel_store_bf16((uint16_t *)job->at[GROUPS_Y] + t * a->groups * a->n + b->n, b, y);
}

#endif
