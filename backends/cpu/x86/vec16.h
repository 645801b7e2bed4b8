/* vec16: the vectors of the kernels' headers as AVX-512 has them, sixteen lanes; see vec8.h. For
 * files that are compiled with the flags of AVX-512 (F, BW, DQ, VL), or for AVX2 with SIMDe, only.
 * A file that needs VNNI names its kernel itself. */
#ifndef ISO_CPU_X86_VEC16_H
#define ISO_CPU_X86_VEC16_H

#include "backends/cpu/simd.h"

#include <stdbool.h>
#include <stdint.h>

typedef __m512 vecf;
typedef __m512i veci;
typedef __m256i vech;                    /* half as many bits: 16 for each lane */
enum { VEC_LANES = 16 };

/* Intrinsics whose names differ by the width only; VECS: those of all bits. */
#define VEC(name) _mm512_##name
#define VECS(name) _mm512_##name##_si512
#define VECH(name) _mm256_##name##_si256
#ifndef VEC_KERNEL
#define VEC_KERNEL(name) iso_cpu_##name##_avx512
#endif

static inline veci vec_bits(vecf x) { return _mm512_castps_si512(x); }
static inline vecf vec_float(veci u) { return _mm512_castsi512_ps(u); }
static inline vech vec_low(veci x) { return _mm512_castsi512_si256(x); }
static inline vech vec_high(veci x) { return _mm512_extracti64x4_epi64(x, 1); }

/* x where a > b as signed words, zero elsewhere. */
static inline veci vec_where_greater(veci x, veci a, veci b)
{
    return _mm512_maskz_mov_epi32(_mm512_cmpgt_epi32_mask(a, b), x);
}

/* value where x is a number, nan elsewhere. */
static inline vecf vec_where_number(vecf value, vecf x, vecf nan)
{
    return _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

/* a where the sign bit of x is clear, b where it is set. */
static inline vecf vec_by_sign(vecf x, vecf a, vecf b)
{
    return _mm512_mask_mov_ps(a, _mm512_movepi32_mask(_mm512_castps_si512(x)), b);
}

/* Whether any word is `least` or more, unsigned. */
static inline bool vec_any_from(veci x, uint32_t least)
{
    return _mm512_cmpge_epu32_mask(x, _mm512_set1_epi32((int32_t)least)) != 0;
}

/* The lower halves of the words of a, the upper halves of the words of b. */
static inline veci vec_halves(veci a, veci b) { return _mm512_mask_blend_epi16(0xaaaaaaaau, a, b); }

/* Words of at most 16 bits as halves. */
static inline vech vec_narrow(veci words) { return _mm512_cvtepi32_epi16(words); }

/* Eight halves each from half `at` on of rows 0, 4, 8 and 12; the lowest row in the lowest bits. */
static inline veci vec_load_fourths(const uint16_t *const *row, uint64_t at)
{
    __m128i v[4];
    __m512i x;

    for (int i = 0; i < 4; i++)
        v[i] = _mm_loadu_si128((const void *)(row[4 * i] + at));
    x = _mm512_inserti32x4(_mm512_castsi128_si512(v[0]), v[1], 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(x, v[2], 2), v[3], 3);
}

/* Sixteen f16 to w[0]. */
static inline void vec_sixteen_f16(__m256i half, vecf *w) { w[0] = _mm512_cvtph_ps(half); }

/* 32 bytes each at byte `at` of rows 0 and 8: the first 16 of both rows, then the others. */
static inline veci vec_load_eighths(const uint8_t *const *row, uint64_t at)
{
    const __m256i u = _mm256_loadu_si256((const void *)(row[0] + at));
    const __m256i v = _mm256_loadu_si256((const void *)(row[8] + at));
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(u), v, 1);

    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7), both);
}

/* Sixteen signed bytes as numbers to w[0]. */
static inline void vec_sixteen_i8(__m128i byte, vecf *w)
{
    w[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(byte));
}

/* Bytes as words. */
static inline veci vec_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}

/* The sixteen bytes in each 128 bits. */
static inline veci vec_each_128(__m128i x) { return _mm512_broadcast_i32x4(x); }

/* One word a lane. */
static inline veci vec_of_words(const int32_t w[VEC_LANES])
{
    return _mm512_setr_epi32(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10],
                             w[11], w[12], w[13], w[14], w[15]);
}

/* In each 128 bits: the sums of the four words of a, of b, of c and of d there. */
static inline veci vec_sums_of_four(veci a, veci b, veci c, veci d)
{
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));

    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* Part i of 128 bits of x[j] to part j of out[i]. */
static inline void vec_turn_quarters(const veci x[VEC_LANES / 4], veci out[VEC_LANES / 4])
{
    const __m512i a = _mm512_shuffle_i32x4(x[0], x[1], 0x44);    /* 0 1 of x[0], 0 1 of x[1] */
    const __m512i b = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    const __m512i c = _mm512_shuffle_i32x4(x[0], x[1], 0xee);    /* 2 3, 2 3 */
    const __m512i d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);

    out[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    out[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    out[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    out[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* The halving tree down to one lane (numerics 7). */
static inline float vec_tree(vecf t)
{
    const __m256 low = _mm512_castps512_ps256(t);
    const __m256 high = _mm256_castsi256_ps(vec_high(_mm512_castps_si512(t)));
    const __m256 s = _mm256_add_ps(low, high);
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));

    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}

#endif
