/* vec8: the vectors of the kernels' headers as AVX2 has them, eight lanes. A header that names
 * vecf, veci and VEC is compiled for AVX2 by a file that includes this one first, and for AVX-512
 * by a file that includes vec16.h. For files that are compiled with the flags of AVX2, FMA and
 * F16C only: nothing here may be emitted into another translation unit. */
#ifndef ISO_CPU_X86_VEC8_H
#define ISO_CPU_X86_VEC8_H

#include "backends/cpu/simd.h"

#include <stdbool.h>
#include <stdint.h>

typedef __m256 vecf;
typedef __m256i veci;
typedef __m128i vech;                    /* half as many bits: 16 for each lane */
enum { VEC_LANES = 8 };

/* Intrinsics whose names differ by the width only; VECS: those of all bits. */
#define VEC(name) _mm256_##name
#define VECS(name) _mm256_##name##_si256
#define VECH(name) _mm_##name##_si128
#define VEC_KERNEL(name) iso_cpu_##name##_avx2

static inline veci vec_bits(vecf x) { return _mm256_castps_si256(x); }
static inline vecf vec_float(veci u) { return _mm256_castsi256_ps(u); }
static inline vech vec_low(veci x) { return _mm256_castsi256_si128(x); }
static inline vech vec_high(veci x) { return _mm256_extracti128_si256(x, 1); }

/* x where a > b as signed words, zero elsewhere. */
static inline veci vec_where_greater(veci x, veci a, veci b)
{
    return _mm256_and_si256(x, _mm256_cmpgt_epi32(a, b));
}

/* value where x is a number, nan elsewhere. */
static inline vecf vec_where_number(vecf value, vecf x, vecf nan)
{
    return _mm256_blendv_ps(value, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* a where the sign bit of x is clear, b where it is set. */
static inline vecf vec_by_sign(vecf x, vecf a, vecf b) { return _mm256_blendv_ps(a, b, x); }

/* Whether any word is `least` or more, unsigned. */
static inline bool vec_any_from(veci x, uint32_t least)
{
    const __m256i most = _mm256_max_epu32(x, _mm256_set1_epi32((int32_t)least));

    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(most, x)) != 0;
}

/* The lower halves of the words of a, the upper halves of the words of b. */
static inline veci vec_halves(veci a, veci b) { return _mm256_blend_epi16(a, b, 0xaa); }

/* Words of at most 16 bits as halves. */
static inline vech vec_narrow(veci words)
{
    return _mm_packus_epi32(vec_low(words), vec_high(words));
}

/* Eight halves each from half `at` on of rows 0 and 4; the lowest row in the lowest bits. */
static inline veci vec_load_fourths(const uint16_t *const *row, uint64_t at)
{
    const __m128i u = _mm_loadu_si128((const void *)(row[0] + at));
    const __m128i v = _mm_loadu_si128((const void *)(row[4] + at));

    return _mm256_inserti128_si256(_mm256_castsi128_si256(u), v, 1);
}

/* Sixteen f16 to w[0] and w[1]. */
static inline void vec_sixteen_f16(__m256i half, vecf *w)
{
    w[0] = _mm256_cvtph_ps(vec_low(half));
    w[1] = _mm256_cvtph_ps(vec_high(half));
}

/* 32 bytes at byte `at` of row 0: the first 16 of them, then the others. */
static inline veci vec_load_eighths(const uint8_t *const *row, uint64_t at)
{
    return _mm256_loadu_si256((const void *)(row[0] + at));
}

/* Sixteen signed bytes as numbers to w[0] and w[1]. */
static inline void vec_sixteen_i8(__m128i byte, vecf *w)
{
    w[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(byte));
    w[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(byte, 8)));
}

/* Bytes as words. */
static inline veci vec_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

/* The sixteen bytes in each 128 bits. */
static inline veci vec_each_128(__m128i x) { return _mm256_broadcastsi128_si256(x); }

/* One word a lane. */
static inline veci vec_of_words(const int32_t w[VEC_LANES])
{
    return _mm256_setr_epi32(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
}

/* In each 128 bits: the sums of the four words of a, of b, of c and of d there. */
static inline veci vec_sums_of_four(veci a, veci b, veci c, veci d)
{
    return _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
}

/* Part i of 128 bits of x[j] to part j of out[i]. */
static inline void vec_turn_quarters(const veci x[VEC_LANES / 4], veci out[VEC_LANES / 4])
{
    out[0] = _mm256_permute2x128_si256(x[0], x[1], 0x20);
    out[1] = _mm256_permute2x128_si256(x[0], x[1], 0x31);
}

/* The halving tree down to one lane (numerics 7). */
static inline float vec_tree(vecf t)
{
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));

    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}

#endif
