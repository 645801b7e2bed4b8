/* lane_neon: four lanes of the functions of ggml-style-ops/lane, the same bits (numerics 2.2, 2.3,
 * 9.2, 9.3). For files that are compiled for AArch64 only.
 *
 * A function that can meet a value outside the domain keeps the largest magnitude of each lane in
 * *bad, which starts as zero; lane4_flags turns what was gathered into the flag word. */
#ifndef ISO_CPU_ARM_LANE_NEON_H
#define ISO_CPU_ARM_LANE_NEON_H

#include "backends/cpu/simd.h"
#include "ggml-style-ops/lane/clean.h"

static inline uint32x4_t lane4_bits(float32x4_t x) { return vreinterpretq_u32_f32(x); }
static inline float32x4_t lane4_float(uint32x4_t u) { return vreinterpretq_f32_u32(u); }
static inline float32x4_t lane4_const(uint32_t u) { return lane4_float(vdupq_n_u32(u)); }

static inline uint32_t lane4_flags(uint32x4_t bad)
{
    return vmaxvq_u32(bad) >= LANE_CLEAN_MAX ? LANE_RANGE : 0;
}

/* ---- domain and bf16 ---- */

static inline float32x4_t lane4_clean(float32x4_t x, uint32x4_t *bad)
{
    const uint32x4_t u = lane4_bits(x), a = vandq_u32(u, vdupq_n_u32(0x7fffffffu));
    const uint32x4_t keep = vcgeq_u32(a, vdupq_n_u32(LANE_CLEAN_MIN));
    const uint32x4_t is_nan = vcgtq_u32(a, vdupq_n_u32(0x7f800000u));

    *bad = vmaxq_u32(*bad, a);
    return lane4_float(vbslq_u32(is_nan, vdupq_n_u32(0x7fc00000u), vandq_u32(u, keep)));
}

/* Rounds a cleaned value to bf16: words with the pattern in the upper half. */
static inline uint32x4_t lane4_bf16_round(float32x4_t x)
{
    const uint32x4_t u = lane4_bits(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));

    return vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
}

/* clean, then round. */
static inline uint32x4_t lane4_bf16(float32x4_t x, uint32x4_t *bad)
{
    return lane4_bf16_round(lane4_clean(x, bad));
}

/* ---- eight bf16 values ---- */

typedef struct lane8 {
    float32x4_t low, high;
} lane8;

static inline lane8 lane8_of_bf16(uint16x8_t half)
{
    return (lane8){lane4_float(vshll_n_u16(vget_low_u16(half), 16)),
                   lane4_float(vshll_high_n_u16(half, 16))};
}

static inline lane8 lane8_load_bf16(const uint16_t *p) { return lane8_of_bf16(vld1q_u16(p)); }

static inline uint16x8_t lane8_to_bf16(lane8 x, uint32x4_t *bad)
{
    const uint32x4_t low = lane4_bf16(x.low, bad), high = lane4_bf16(x.high, bad);

    return vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
}

/* One body for full vectors and for the end of a row: pass the constant 8 where it is full. A part
 * of a row is read as if +0 followed. */
static inline lane8 lane8_load_bf16_n(const uint16_t *p, uint32_t count)
{
    uint16_t half[8] = {0};

    if (count == 8)
        return lane8_load_bf16(p);
    memcpy(half, p, count * sizeof *half);
    return lane8_load_bf16(half);
}

static inline void lane8_store_bf16_n(uint16_t *p, uint32_t count, lane8 x, uint32x4_t *bad)
{
    uint16_t half[8];

    if (count == 8) {
        vst1q_u16(p, lane8_to_bf16(x, bad));
    } else {
        vst1q_u16(half, lane8_to_bf16(x, bad));
        memcpy(p, half, count * sizeof *half);
    }
}

static inline lane8 lane8_set1(float x) { return (lane8){vdupq_n_f32(x), vdupq_n_f32(x)}; }

static inline lane8 lane8_add(lane8 a, lane8 b)
{
    return (lane8){vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}

static inline lane8 lane8_mul(lane8 a, lane8 b)
{
    return (lane8){vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}

static inline lane8 lane8_clean(lane8 x, uint32x4_t *bad)
{
    return (lane8){lane4_clean(x.low, bad), lane4_clean(x.high, bad)};
}

/* ---- functions ---- */

/* exp of x <= 0 (or of any x with the sign bit set). NaN gives +0: a caller that can meet one sees
 * it in the value beside. Results below 2^-126 are +0, so that whatever the listing computes beyond
 * its range is masked and its guard against it is not needed. */
static inline float32x4_t lane4_exp_nonpositive(float32x4_t x)
{
    const uint32x4_t ax = vandq_u32(lane4_bits(x), vdupq_n_u32(0x7fffffffu));
    const float32x4_t magic = lane4_const(0x4b400000u), one = vdupq_n_f32(1.0f);
    const float32x4_t km = vaddq_f32(vmulq_f32(x, lane4_const(0x3fb8aa3bu)), magic);
    const float32x4_t kf = vsubq_f32(km, magic);
    const float32x4_t a = vsubq_f32(x, vmulq_f32(kf, lane4_const(0x3f318000u)));
    const float32x4_t b = vmulq_f32(kf, lane4_const(0xb95e8083u));
    const float32x4_t r = vsubq_f32(a, b), h = vaddq_f32(one, r);
    const float32x4_t e = vsubq_f32(vsubq_f32(a, vsubq_f32(h, one)), b);
    const uint32x4_t k = vshlq_n_u32(vsubq_u32(lane4_bits(km), vdupq_n_u32(0x4b400000u)), 23);
    float32x4_t p = lane4_const(0x39506967u), q, y;

    p = vaddq_f32(vmulq_f32(p, r), lane4_const(0x3ab743ceu));
    p = vaddq_f32(vmulq_f32(p, r), lane4_const(0x3c088908u));
    p = vaddq_f32(vmulq_f32(p, r), lane4_const(0x3d2aa9c1u));
    p = vaddq_f32(vmulq_f32(p, r), lane4_const(0x3e2aaaaau));
    p = vaddq_f32(vmulq_f32(p, r), lane4_const(0x3f000000u));
    q = vmulq_f32(p, vmulq_f32(r, r));
    y = vaddq_f32(h, vaddq_f32(e, q));
    return lane4_float(vandq_u32(vaddq_u32(lane4_bits(y), k),
                                 vcleq_u32(ax, vdupq_n_u32(0x42aeac4fu))));
}

/* Native division is correctly rounded (9.1). */
static inline float32x4_t lane4_sigmoid(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    const uint32x4_t sign = vdupq_n_u32(0x80000000u);
    const float32x4_t t = lane4_exp_nonpositive(lane4_float(vorrq_u32(lane4_bits(x), sign)));
    const uint32x4_t is_negative = vcgeq_u32(lane4_bits(x), sign);

    return vdivq_f32(vbslq_f32(is_negative, t, one), vaddq_f32(one, t));
}

static inline float32x4_t lane4_silu(float32x4_t x) { return vmulq_f32(x, lane4_sigmoid(x)); }

#endif
