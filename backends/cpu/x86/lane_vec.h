/* lane_vec: lanes of the functions of ggml-style-ops/lane, the same bits (numerics 2.2, 2.3, 9.2,
 * 9.3), eight or sixteen: a file includes vec8.h or vec16.h first.
 *
 * A function that can meet a value outside the domain keeps the largest magnitude of each lane in
 * *bad, which starts as zero (a mask of all ones may be ORed into it as well); vec_flags turns
 * what was gathered into the flag word. */
#ifndef ISO_CPU_X86_LANE_VEC_H
#define ISO_CPU_X86_LANE_VEC_H

#include "ggml-style-ops/lane/clean.h"

static inline veci vec_u32(uint32_t u) { return VEC(set1_epi32)((int32_t)u); }
static inline vecf vec_const(uint32_t u) { return vec_float(vec_u32(u)); }

static inline uint32_t vec_flags(veci bad)
{
    return vec_any_from(bad, LANE_CLEAN_MAX) ? LANE_RANGE : 0;
}

/* ---- domain and bf16 ---- */

/* Magnitudes are below 2^31, so the signed comparison orders them. */
static inline vecf vec_clean(vecf x, veci *bad)
{
    const veci a = VECS(and)(vec_bits(x), vec_u32(0x7fffffffu));
    const veci kept = vec_where_greater(vec_bits(x), a, vec_u32(LANE_CLEAN_MIN - 1));

    *bad = VEC(max_epu32)(*bad, a);
    return vec_where_number(vec_float(kept), x, vec_const(0x7fc00000u));
}

/* Rounds a cleaned value to bf16, as 32-bit words with the pattern in the upper half. */
static inline veci vec_bf16_round(vecf x)
{
    const veci u = vec_bits(x);
    const veci odd = VECS(and)(VEC(srli_epi32)(u, 16), vec_u32(1));

    return VEC(add_epi32)(u, VEC(add_epi32)(odd, vec_u32(0x7fff)));
}

/* clean, then round: words with the pattern in the lower half. */
static inline veci vec_bf16(vecf x, veci *bad)
{
    return VEC(srli_epi32)(vec_bf16_round(vec_clean(x, bad)), 16);
}

static inline vecf vec_load_bf16(const uint16_t *p)
{
    const vech half = VECH(loadu)((const void *)p);

    return vec_float(VEC(slli_epi32)(VEC(cvtepu16_epi32)(half), 16));
}

/* Stores words of at most 16 bits. */
static inline void vec_store_u16(uint16_t *p, veci words)
{
    VECH(storeu)((void *)p, vec_narrow(words));
}

static inline void vec_store_bf16(uint16_t *p, vecf x, veci *bad)
{
    vec_store_u16(p, vec_bf16(x, bad));
}

/* ---- VEC_PAIR bf16 values as two registers, even and odd ones: that costs no shuffle ---- */

enum { VEC_PAIR = 2 * VEC_LANES };

typedef struct vec_pair {
    vecf even, odd;
} vec_pair;

static inline vec_pair vec_pair_load_bf16(const uint16_t *p)
{
    const veci pair = VECS(loadu)((const void *)p);

    return (vec_pair){vec_float(VEC(slli_epi32)(pair, 16)),
                    vec_float(VECS(and)(pair, vec_u32(0xffff0000u)))};
}

static inline void vec_pair_store_bf16(uint16_t *p, vec_pair x, veci *bad)
{
    const veci even = vec_bf16(x.even, bad);
    const veci odd = vec_bf16_round(vec_clean(x.odd, bad));

    VECS(storeu)((void *)p, vec_halves(even, odd));
}

/* One body for full registers and for the end of a row: pass the constant VEC_PAIR where it is
 * full. A part of a row is read as if +0 followed. */
static inline vec_pair vec_pair_load_bf16_n(const uint16_t *p, uint32_t count)
{
    uint16_t half[VEC_PAIR] = {0};

    if (count == VEC_PAIR)
        return vec_pair_load_bf16(p);
    memcpy(half, p, count * sizeof *half);
    return vec_pair_load_bf16(half);
}

static inline void vec_pair_store_bf16_n(uint16_t *p, uint32_t count, vec_pair x, veci *bad)
{
    uint16_t half[VEC_PAIR];

    if (count == VEC_PAIR) {
        vec_pair_store_bf16(p, x, bad);
    } else {
        vec_pair_store_bf16(half, x, bad);
        memcpy(p, half, count * sizeof *half);
    }
}

static inline vec_pair vec_pair_set1(float x)
{
    return (vec_pair){VEC(set1_ps)(x), VEC(set1_ps)(x)};
}

static inline vec_pair vec_pair_add(vec_pair a, vec_pair b)
{
    return (vec_pair){VEC(add_ps)(a.even, b.even), VEC(add_ps)(a.odd, b.odd)};
}

static inline vec_pair vec_pair_mul(vec_pair a, vec_pair b)
{
    return (vec_pair){VEC(mul_ps)(a.even, b.even), VEC(mul_ps)(a.odd, b.odd)};
}

static inline vec_pair vec_pair_clean(vec_pair x, veci *bad)
{
    return (vec_pair){vec_clean(x.even, bad), vec_clean(x.odd, bad)};
}

/* ---- functions ---- */

/* exp of x <= 0 (or of any x with the sign bit set). NaN gives +0: a caller that can meet one sees
 * it in the value beside. Results below 2^-126 are +0, so that whatever the listing computes beyond
 * its range is masked and its guard against it is not needed. */
static inline vecf vec_exp_nonpositive(vecf x)
{
    const veci ax = VECS(and)(vec_bits(x), vec_u32(0x7fffffffu));
    const vecf magic = vec_const(0x4b400000u), one = VEC(set1_ps)(1.0f);
    const vecf km = VEC(add_ps)(VEC(mul_ps)(x, vec_const(0x3fb8aa3bu)), magic);
    const vecf kf = VEC(sub_ps)(km, magic);
    const vecf a = VEC(sub_ps)(x, VEC(mul_ps)(kf, vec_const(0x3f318000u)));
    const vecf b = VEC(mul_ps)(kf, vec_const(0xb95e8083u));
    const vecf r = VEC(sub_ps)(a, b), h = VEC(add_ps)(one, r);
    const vecf e = VEC(sub_ps)(VEC(sub_ps)(a, VEC(sub_ps)(h, one)), b);
    const veci k = VEC(slli_epi32)(VEC(sub_epi32)(vec_bits(km), vec_u32(0x4b400000u)),
                                        23);
    vecf p = vec_const(0x39506967u), q, y;

    p = VEC(add_ps)(VEC(mul_ps)(p, r), vec_const(0x3ab743ceu));
    p = VEC(add_ps)(VEC(mul_ps)(p, r), vec_const(0x3c088908u));
    p = VEC(add_ps)(VEC(mul_ps)(p, r), vec_const(0x3d2aa9c1u));
    p = VEC(add_ps)(VEC(mul_ps)(p, r), vec_const(0x3e2aaaaau));
    p = VEC(add_ps)(VEC(mul_ps)(p, r), vec_const(0x3f000000u));
    q = VEC(mul_ps)(p, VEC(mul_ps)(r, r));
    y = VEC(add_ps)(h, VEC(add_ps)(e, q));
    y = vec_float(VEC(add_epi32)(vec_bits(y), k));
    return vec_float(vec_where_greater(vec_bits(y), vec_u32(0x42aeac50u), ax));
}

static inline vecf vec_sigmoid(vecf x)
{
    const vecf one = VEC(set1_ps)(1.0f);
    const vecf t = vec_exp_nonpositive(VEC(or_ps)(x, vec_const(0x80000000u)));

    return VEC(div_ps)(vec_by_sign(x, one, t), VEC(add_ps)(one, t));
}

static inline vecf vec_silu(vecf x) { return VEC(mul_ps)(x, vec_sigmoid(x)); }

#endif
