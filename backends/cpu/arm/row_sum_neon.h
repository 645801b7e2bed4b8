/* row_sum_neon: the order of numerics 7 in eight registers: 32 lanes, a halving tree, segments of
 * 4096. For files that are compiled for AArch64 only. */
#ifndef ISO_CPU_ARM_ROW_SUM_NEON_H
#define ISO_CPU_ARM_ROW_SUM_NEON_H

#include "backends/cpu/arm/lane_neon.h"
#include "ggml-style-ops/lane/sqrt.h"

/* Elements 8 i .. 8 i + 7 of the 32 lanes. */
typedef struct iso_lane32 {
    lane8 part[4];
} iso_lane32;

static inline iso_lane32 iso_lane32_zero(void)
{
    const lane8 zero = lane8_set1(0.0f);

    return (iso_lane32){{zero, zero, zero, zero}};
}

static inline float iso_lane32_tree(const iso_lane32 *sum)
{
    const lane8 a = lane8_add(sum->part[0], sum->part[2]);       /* half = 16 */
    const lane8 b = lane8_add(sum->part[1], sum->part[3]);
    const lane8 c = lane8_add(a, b);                             /* 8 */
    const float32x4_t d = vaddq_f32(c.low, c.high);              /* 4 */
    const float32x2_t e = vadd_f32(vget_low_f32(d), vget_high_f32(d));

    return vget_lane_f32(e, 0) + vget_lane_f32(e, 1);
}

static inline lane8 iso_add_squares(lane8 sum, lane8 x)
{
    return (lane8){vfmaq_f32(sum.low, x.low, x.low),             /* 8 + 8 bits: exact */
                   vfmaq_f32(sum.high, x.high, x.high)};         /* 8 + 8 bits: exact */
}

static inline void iso_lane32_squares(iso_lane32 *sum, const uint16_t *x)
{
    for (uint32_t j = 0; j < 4; j++)
        sum->part[j] = iso_add_squares(sum->part[j], lane8_load_bf16(x + 8 * j));
}

/* Squares of up to 4096 values: one segment. A missing element adds +0, which changes no lane. */
static inline float iso_segment_squares(const uint16_t *x, uint32_t n)
{
    iso_lane32 sum = iso_lane32_zero();
    uint16_t rest[32] = {0};
    uint32_t i = 0;

    for (; i + 32 <= n; i += 32)
        iso_lane32_squares(&sum, x + i);
    if (i < n) {
        memcpy(rest, x + i, (n - i) * sizeof *x);
        iso_lane32_squares(&sum, rest);
    }
    return iso_lane32_tree(&sum);
}

/* iso_mean_rsqrt of rms.h: native division and square root are correctly rounded (9.1); an operand
 * below 2^-126, which takes a subnormal eps, is left to the lane function. */
static inline float iso_mean_rsqrt_neon(const uint16_t *x, uint32_t n, float eps)
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
    return 1.0f / vget_lane_f32(vsqrt_f32(vdup_n_f32(mean)), 0);
}

#endif
