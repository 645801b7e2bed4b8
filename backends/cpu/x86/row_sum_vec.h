/* row_sum_vec: the order of numerics 7 in registers: 32 lanes, a halving tree, segments of 4096. A
 * file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_ROW_SUM_VEC_H
#define ISO_CPU_X86_ROW_SUM_VEC_H

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/lane/sqrt.h"

/* The 32 lanes, VEC_PAIR at a time, each pair as its even and odd elements. */
enum { ROW_SUM_PAIRS = 32 / VEC_PAIR };
typedef struct iso_lane32 {
    vec_pair part[ROW_SUM_PAIRS];
} iso_lane32;

static inline iso_lane32 iso_lane32_zero(void)
{
    iso_lane32 sum;

    for (uint32_t i = 0; i < ROW_SUM_PAIRS; i++)
        sum.part[i] = vec_pair_set1(0.0f);
    return sum;
}

/* Step 16 adds two registers of eight lanes or the halves of one of sixteen. */
static inline float iso_lane32_tree(const iso_lane32 *sum)
{
    vec_pair t = sum->part[0];

    for (uint32_t i = 1; i < ROW_SUM_PAIRS; i++)
        t = vec_pair_add(t, sum->part[i]);
    return vec_tree(t.even) + vec_tree(t.odd);
}

static inline vec_pair iso_add_squares(vec_pair sum, vec_pair x)
{
    return (vec_pair){VEC(fmadd_ps)(x.even, x.even, sum.even),   /* 8 + 8 bits: exact */
                    VEC(fmadd_ps)(x.odd, x.odd, sum.odd)};     /* 8 + 8 bits: exact */
}

/* Squares of up to 4096 values: one segment. A missing element adds +0, which changes no lane. */
static inline float iso_segment_squares(const uint16_t *x, uint32_t n)
{
    iso_lane32 sum = iso_lane32_zero();
    uint32_t i = 0;

    for (; i + 32 <= n; i += 32)
        for (uint32_t part = 0; part < ROW_SUM_PAIRS; part++)
            sum.part[part] = iso_add_squares(sum.part[part],
                                             vec_pair_load_bf16(x + i + part * VEC_PAIR));
    for (uint32_t part = 0; i < n; part++, i += VEC_PAIR)
        sum.part[part] = iso_add_squares(
            sum.part[part], vec_pair_load_bf16_n(x + i, n - i < VEC_PAIR ? n - i : VEC_PAIR));
    return iso_lane32_tree(&sum);
}

/* iso_mean_rsqrt of rms.h: native division and square root are correctly rounded (9.1); an operand
 * below 2^-126, which takes a subnormal eps, is left to the lane function. */
static inline float iso_mean_rsqrt_vec(const uint16_t *x, uint32_t n, float eps)
{
    float sum = 0.0f, mean;

    for (uint32_t i = 0; i < n; i += LANE_ROW_SEGMENT) {
        const uint32_t count = n - i < LANE_ROW_SEGMENT ? n - i : LANE_ROW_SEGMENT;
        const float segment = iso_segment_squares(x + i, count);

        sum = i != 0 ? sum + segment : segment;
    }
    mean = sum * (1.0f / (float)(int32_t)n) + eps;
    if (lane_bits(mean) < 0x00800000u)
        return lane_rsqrt(mean);
    return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean)));
}

#endif
