/* lane_avx2: eight lanes of the functions of ggml-style-ops/lane, the same bits (numerics 2.2, 2.3,
 * 9.2, 9.3). For files that are compiled with the AVX2 flags only: nothing here may be emitted into
 * another translation unit.
 *
 * A function that can meet a value outside the domain keeps the largest magnitude of each lane in
 * *bad, which starts as zero (a mask of all ones may be ORed into it as well); lane8_flags turns
 * what was gathered into the flag word. */
#ifndef ISO_CPU_X86_LANE_AVX2_H
#define ISO_CPU_X86_LANE_AVX2_H

#include "backends/cpu/simd.h"
#include "ggml-style-ops/lane/clean.h"

static inline __m256i lane8_bits(__m256 x) { return _mm256_castps_si256(x); }
static inline __m256 lane8_float(__m256i u) { return _mm256_castsi256_ps(u); }
static inline __m256i lane8_u32(uint32_t u) { return _mm256_set1_epi32((int32_t)u); }
static inline __m256 lane8_const(uint32_t u) { return lane8_float(lane8_u32(u)); }

static inline uint32_t lane8_flags(__m256i bad)
{
    const __m256i outside = _mm256_cmpgt_epi32(bad, lane8_u32(LANE_CLEAN_MAX - 1));

    return _mm256_movemask_epi8(_mm256_or_si256(outside, _mm256_srai_epi32(bad, 31))) != 0
               ? LANE_RANGE : 0;
}

/* ---- domain and bf16 ---- */

/* Magnitudes are below 2^31, so the signed comparison orders them. */
static inline __m256 lane8_clean(__m256 x, __m256i *bad)
{
    const __m256i a = _mm256_and_si256(lane8_bits(x), lane8_u32(0x7fffffffu));
    const __m256i keep = _mm256_cmpgt_epi32(a, lane8_u32(LANE_CLEAN_MIN - 1));
    const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);

    *bad = _mm256_max_epu32(*bad, a);
    return _mm256_blendv_ps(_mm256_and_ps(x, lane8_float(keep)), lane8_const(0x7fc00000u),
                            is_nan);
}

/* Rounds a cleaned value to bf16, as 32-bit words with the pattern in the upper half. */
static inline __m256i lane8_bf16_round(__m256 x)
{
    const __m256i u = lane8_bits(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), lane8_u32(1));

    return _mm256_add_epi32(u, _mm256_add_epi32(odd, lane8_u32(0x7fff)));
}

/* clean, then round: words with the pattern in the lower half. */
static inline __m256i lane8_bf16(__m256 x, __m256i *bad)
{
    return _mm256_srli_epi32(lane8_bf16_round(lane8_clean(x, bad)), 16);
}

static inline __m256 lane8_load_bf16(const uint16_t *p)
{
    const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)p);

    return lane8_float(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* Stores eight words of at most 16 bits. */
static inline void lane8_store_u16(uint16_t *p, __m256i words)
{
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);

    _mm_storeu_si128((__m128i *)(void *)p, _mm_packus_epi32(low, high));
}

static inline void lane8_store_bf16(uint16_t *p, __m256 x, __m256i *bad)
{
    lane8_store_u16(p, lane8_bf16(x, bad));
}

/* ---- sixteen bf16 values as two registers, even and odd ones: that costs no shuffle ---- */

typedef struct lane16 {
    __m256 even, odd;
} lane16;

static inline lane16 lane16_load_bf16(const uint16_t *p)
{
    const __m256i pair = _mm256_loadu_si256((const __m256i *)(const void *)p);

    return (lane16){lane8_float(_mm256_slli_epi32(pair, 16)),
                    lane8_float(_mm256_and_si256(pair, lane8_u32(0xffff0000u)))};
}

static inline void lane16_store_bf16(uint16_t *p, lane16 x, __m256i *bad)
{
    const __m256i even = lane8_bf16(x.even, bad);
    const __m256i odd = lane8_bf16_round(lane8_clean(x.odd, bad));

    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_blend_epi16(even, odd, 0xaa));
}

/* One body for full registers and for the end of a row: pass the constant 16 where it is full. A
 * part of a row is read as if +0 followed. */
static inline lane16 lane16_load_bf16_n(const uint16_t *p, uint32_t count)
{
    uint16_t half[16] = {0};

    if (count == 16)
        return lane16_load_bf16(p);
    memcpy(half, p, count * sizeof *half);
    return lane16_load_bf16(half);
}

static inline void lane16_store_bf16_n(uint16_t *p, uint32_t count, lane16 x, __m256i *bad)
{
    uint16_t half[16];

    if (count == 16) {
        lane16_store_bf16(p, x, bad);
    } else {
        lane16_store_bf16(half, x, bad);
        memcpy(p, half, count * sizeof *half);
    }
}

static inline lane16 lane16_set1(float x) { return (lane16){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }

static inline lane16 lane16_add(lane16 a, lane16 b)
{
    return (lane16){_mm256_add_ps(a.even, b.even), _mm256_add_ps(a.odd, b.odd)};
}

static inline lane16 lane16_mul(lane16 a, lane16 b)
{
    return (lane16){_mm256_mul_ps(a.even, b.even), _mm256_mul_ps(a.odd, b.odd)};
}

static inline lane16 lane16_clean(lane16 x, __m256i *bad)
{
    return (lane16){lane8_clean(x.even, bad), lane8_clean(x.odd, bad)};
}

/* ---- functions ---- */

/* exp of x <= 0 (or of any x with the sign bit set). NaN gives +0: a caller that can meet one sees
 * it in the value beside. Results below 2^-126 are +0, so that whatever the listing computes beyond
 * its range is masked and its guard against it is not needed. */
static inline __m256 lane8_exp_nonpositive(__m256 x)
{
    const __m256i ax = _mm256_and_si256(lane8_bits(x), lane8_u32(0x7fffffffu));
    const __m256 magic = lane8_const(0x4b400000u), one = _mm256_set1_ps(1.0f);
    const __m256 km = _mm256_add_ps(_mm256_mul_ps(x, lane8_const(0x3fb8aa3bu)), magic);
    const __m256 kf = _mm256_sub_ps(km, magic);
    const __m256 a = _mm256_sub_ps(x, _mm256_mul_ps(kf, lane8_const(0x3f318000u)));
    const __m256 b = _mm256_mul_ps(kf, lane8_const(0xb95e8083u));
    const __m256 r = _mm256_sub_ps(a, b), h = _mm256_add_ps(one, r);
    const __m256 e = _mm256_sub_ps(_mm256_sub_ps(a, _mm256_sub_ps(h, one)), b);
    const __m256i k = _mm256_slli_epi32(_mm256_sub_epi32(lane8_bits(km), lane8_u32(0x4b400000u)),
                                        23);
    __m256 p = lane8_const(0x39506967u), q, y;

    p = _mm256_add_ps(_mm256_mul_ps(p, r), lane8_const(0x3ab743ceu));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), lane8_const(0x3c088908u));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), lane8_const(0x3d2aa9c1u));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), lane8_const(0x3e2aaaaau));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), lane8_const(0x3f000000u));
    q = _mm256_mul_ps(p, _mm256_mul_ps(r, r));
    y = _mm256_add_ps(h, _mm256_add_ps(e, q));
    y = lane8_float(_mm256_add_epi32(lane8_bits(y), k));
    return _mm256_andnot_ps(lane8_float(_mm256_cmpgt_epi32(ax, lane8_u32(0x42aeac4fu))), y);
}

static inline __m256 lane8_sigmoid(__m256 x)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 t = lane8_exp_nonpositive(_mm256_or_ps(x, lane8_const(0x80000000u)));

    return _mm256_div_ps(_mm256_blendv_ps(one, t, x), _mm256_add_ps(one, t));
}

static inline __m256 lane8_silu(__m256 x) { return _mm256_mul_ps(x, lane8_sigmoid(x)); }

#endif
