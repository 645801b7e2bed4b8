/* quant_neon: the quantisers on 16-bit lanes (numerics 11). An input is a bf16 pattern, a scale is
 * a power of two, and so is every step between two codes: magnitudes stay integers. For files that
 * are compiled for AArch64 only. */
#ifndef ISO_CPU_ARM_QUANT_NEON_H
#define ISO_CPU_ARM_QUANT_NEON_H

#include "backends/cpu/simd.h"
#include "ggml-style-ops/quant.h"

static inline uint16x8_t quant_magnitude(uint16x8_t x)
{
    return vandq_u16(x, vdupq_n_u16(0x7fff));
}

/* |x| 2^-k on the exponent field. What underflows or was zero stays below 2^-80: code 0. */
static inline uint16x8_t quant_scaled(uint16x8_t magnitude, int32_t k)
{
    const uint16_t steps = (uint16_t)((k < 0 ? -k : k) * 128);

    if (k >= 0)
        return vqsubq_u16(magnitude, vdupq_n_u16(steps));
    return vminq_u16(vqaddq_u16(magnitude, vdupq_n_u16(steps)), vdupq_n_u16(0x7fff));
}

/* e2m1 codes: how many of the seven limits are below the magnitude a (numerics 2.5), and the sign
 * of x; a limit that belongs to the upper code is given as the number before it. */
static inline uint16x8_t quant_e2m1(uint16x8_t x, uint16x8_t a, const uint16_t limit[7])
{
    uint16x8_t code = vshlq_n_u16(vshrq_n_u16(x, 15), 3);

    for (int i = 0; i < 7; i++)
        code = vsubq_u16(code, vcgtq_u16(a, vdupq_n_u16(limit[i])));
    return code;
}

/* 16 codes -> 8 bytes, even element low. */
static inline uint8x8_t quant_e2m1_pack(uint16x8_t first, uint16x8_t second)
{
    const uint8x8_t low = vmovn_u16(first), high = vmovn_u16(second);

    return vorr_u8(vuzp1_u8(low, high), vshl_n_u8(vuzp2_u8(low, high), 4));
}

#endif
