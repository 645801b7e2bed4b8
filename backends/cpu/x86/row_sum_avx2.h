/* row_sum_avx2: the order of numerics 7 in four registers: 32 lanes, a halving tree, segments of
 * 4096. For files that are compiled with the AVX2 flags only. */
#ifndef ISO_CPU_X86_ROW_SUM_AVX2_H
#define ISO_CPU_X86_ROW_SUM_AVX2_H

#include "backends/cpu/x86/lane_avx2.h"
#include "ggml-style-ops/lane/sqrt.h"

/* Elements 0..15 and 16..31 of the 32 lanes, each as its even and odd ones. */
typedef struct iso_lane32 {
    lane16 low, high;
} iso_lane32;

static inline iso_lane32 iso_lane32_zero(void)
{
    return (iso_lane32){lane16_set1(0.0f), lane16_set1(0.0f)};
}

/* Steps 8, 4 and 2 of the tree, for the even or the odd lanes of sixteen. */
static inline __m128 iso_lane8_tree(__m256 t)
{
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));

    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_add_ss(h, _mm_movehdup_ps(h));
}

static inline float iso_lane32_tree(const iso_lane32 *sum)
{
    const lane16 t = lane16_add(sum->low, sum->high);

    return _mm_cvtss_f32(_mm_add_ss(iso_lane8_tree(t.even), iso_lane8_tree(t.odd)));
}

static inline lane16 iso_add_squares(lane16 sum, lane16 x)
{
    return (lane16){_mm256_fmadd_ps(x.even, x.even, sum.even),   /* 8 + 8 bits: exact */
                    _mm256_fmadd_ps(x.odd, x.odd, sum.odd)};     /* 8 + 8 bits: exact */
}

/* Squares of up to 4096 values: one segment. A missing element adds +0, which changes no lane. */
static inline float iso_segment_squares(const uint16_t *x, uint32_t n)
{
    iso_lane32 sum = iso_lane32_zero();
    uint32_t i = 0;

    for (; i + 32 <= n; i += 32) {
        sum.low = iso_add_squares(sum.low, lane16_load_bf16(x + i));
        sum.high = iso_add_squares(sum.high, lane16_load_bf16(x + i + 16));
    }
    if (n - i >= 16) {
        sum.low = iso_add_squares(sum.low, lane16_load_bf16(x + i));
        sum.high = iso_add_squares(sum.high, lane16_load_bf16_n(x + i + 16, n - i - 16));
    } else {
        sum.low = iso_add_squares(sum.low, lane16_load_bf16_n(x + i, n - i));
    }
    return iso_lane32_tree(&sum);
}

/* iso_mean_rsqrt of rms.h: native division and square root are correctly rounded (9.1); an operand
 * below 2^-126, which takes a subnormal eps, is left to the lane function. */
static inline float iso_mean_rsqrt_avx2(const uint16_t *x, uint32_t n, float eps)
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
