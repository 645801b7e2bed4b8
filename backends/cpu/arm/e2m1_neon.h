/* e2m1_neon: e2m1 codes by a table look-up. For files that are compiled for AArch64 only. */
#ifndef ISO_CPU_ARM_E2M1_NEON_H
#define ISO_CPU_ARM_E2M1_NEON_H

#include "backends/cpu/simd.h"

#include <stdint.h>

/* Twice the value of each code. */
static inline int8x16_t e2m1_table(void)
{
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

    return vld1q_s8(twice);
}

static inline void e2m1_eight(int16x8_t twice, float scale, float *out)
{
    const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(twice)));
    const float32x4_t high = vcvtq_f32_s32(vmovl_high_s16(twice));

    vst1q_f32(out, vmulq_n_f32(low, scale));
    vst1q_f32(out + 4, vmulq_n_f32(high, scale));
}

/* 16 codes, twice their value times `scale`, in order. */
static inline void e2m1_sixteen(const uint8_t *code, float scale, float *out)
{
    const uint8x8_t pair = vld1_u8(code), low = vand_u8(pair, vdup_n_u8(15));
    const uint8x8_t high = vshr_n_u8(pair, 4);
    const uint8x16_t codes = vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high));
    const int8x16_t twice = vqtbl1q_s8(e2m1_table(), codes);

    e2m1_eight(vmovl_s8(vget_low_s8(twice)), scale, out);
    e2m1_eight(vmovl_high_s8(twice), scale, out + 8);
}

#endif
