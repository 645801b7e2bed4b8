/* e4m3_neon: rows of e4m3 codes as exact f32 operands. For files that are compiled for AArch64
 * only.
 *
 * The code's sign, exponent and mantissa, put at the top of an f16, are 2^-8 times its value, also
 * for subnormal codes; the conversion to f32 is exact and no flush mode reaches it (numerics 2.1,
 * 3). The 2^8 is made good in the scale, which is a power of two (numerics 6.4). */
#ifndef ISO_CPU_ARM_E4M3_NEON_H
#define ISO_CPU_ARM_E4M3_NEON_H

#include "backends/cpu/simd.h"
#include "core/op.h"
#include "ggml-style-ops/lane/clean.h"
#include "ggml-style-ops/lane/fp8.h"

enum {
    E4M3_STEP = 32,                      /* k per step; scales are per 32 or 128 k */
    E4M3_BYTE_MIN = 86,                  /* no code but zero is below 2^-50: 2^(86-127-9) */
    E4M3_BYTE_MAX = 168                  /* no code reaches 2^50: 480 * 2^(168-127) < 2^50 */
};

static inline void e4m3_eight(int16x8_t top, float32x4_t scale, float *out)
{
    const float16x8_t h = vreinterpretq_f16_s16(vandq_s16(top, vdupq_n_s16((int16_t)0xbf80)));

    vst1q_f32(out, vmulq_f32(vcvt_f32_f16(vget_low_f16(h)), scale));
    vst1q_f32(out + 4, vmulq_f32(vcvt_high_f32_f16(h), scale));
}

/* 32 codes times 2^(byte - 127), for a byte in [86, 168]. A code, as a signed byte, times 128 has
 * its sign twice on top; the mask drops the copy. */
static inline void e4m3_step(const uint8_t *code, uint32_t byte, float *out)
{
    const float32x4_t scale = vreinterpretq_f32_u32(vdupq_n_u32((byte + 8) << 23));

    for (uint32_t i = 0; i < E4M3_STEP; i += 16) {
        const int8x16_t c = vreinterpretq_s8_u8(vld1q_u8(code + i));

        e4m3_eight(vshll_n_s8(vget_low_s8(c), 7), scale, out + i);
        e4m3_eight(vshll_high_n_s8(c, 7), scale, out + i + 8);
    }
}

/* Codes [begin, begin + count) of a row with one scale per `group` k; begin is a multiple of 128,
 * out has room for count rounded up to 32. Scales for which `clean` could change an operand, or
 * that are no number, take the way of the reference. Returns flags. */
static inline uint32_t e4m3_operands(const uint8_t *code, const uint8_t *scale, uint32_t group,
                                     iso_range k, float *out)
{
    uint32_t flags = 0;

    for (uint64_t i = k.begin; i < k.end; i += E4M3_STEP, out += E4M3_STEP) {
        const uint32_t left = k.end - i < E4M3_STEP ? (uint32_t)(k.end - i) : E4M3_STEP;
        const uint32_t byte = scale[i / group];
        uint8_t copy[E4M3_STEP] = {0};

        if (byte - E4M3_BYTE_MIN > E4M3_BYTE_MAX - E4M3_BYTE_MIN) {
            for (uint32_t j = 0; j < left; j++)
                out[j] = lane_clean(lane_e4m3_f32(code[i + j]) * lane_ue8m0_f32(byte), &flags);
        } else if (left == E4M3_STEP) {
            e4m3_step(code + i, byte, out);
        } else {
            memcpy(copy, code + i, left);
            e4m3_step(copy, byte, out);
        }
    }
    return flags;
}

#endif
