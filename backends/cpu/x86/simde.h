/* simde: AVX-512 by SIMDe, which computes each intrinsic with two of AVX2: the build that checks
 * the AVX-512 kernels on processors that have AVX2 only. What its packaged version (0.7.4) does not
 * have is below, each for the forms that kernels use. simd.h includes this file in that build. */
#ifndef ISO_CPU_X86_SIMDE_H
#define ISO_CPU_X86_SIMDE_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <stdbool.h>

static inline __m512 simd_two_ps(__m256 low, __m256 high)
{
    return simde_mm512_insertf32x8(simde_mm512_castps256_ps512(low), high, 1);
}

static inline __m512i simd_two_si(__m256i low, __m256i high)
{
    return simde_mm512_inserti64x4(simde_mm512_castsi256_si512(low), high, 1);
}

static inline __m256i simd_half(__m512i x, const bool is_high)
{
    return is_high ? simde_mm512_extracti64x4_epi64(x, 1) : simde_mm512_castsi512_si256(x);
}

static inline __m512 simd_cvtph_ps(__m256i x)
{
    return simd_two_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(x)),
                       _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
}

static inline __m512i simd_cvtepu16_epi32(__m256i x)
{
    return simd_two_si(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)),
                       _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1)));
}

static inline __m512i simd_cvtepu8_epi32(__m128i x)
{
    return simd_two_si(_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)));
}

static inline __m512i simd_cvtepi8_epi32(__m128i x)
{
    return simd_two_si(_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)));
}

static inline __m512 simd_cvtepi32_ps(__m512i x)
{
    return simd_two_ps(_mm256_cvtepi32_ps(simd_half(x, false)),
                       _mm256_cvtepi32_ps(simd_half(x, true)));
}

/* Keeps the lower half of each word. */
static inline __m256i simd_cvtepi32_epi16(__m512i x)
{
    const __m256i mask = _mm256_set1_epi32(0xffff);
    const __m256i halves = _mm256_packus_epi32(_mm256_and_si256(simd_half(x, false), mask),
                                               _mm256_and_si256(simd_half(x, true), mask));

    return _mm256_permute4x64_epi64(halves, 0xd8);
}

/* Its alias of this one asks for four arguments. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)

#undef _mm512_cvtph_ps
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtph_ps(x) simd_cvtph_ps(x)
#define _mm512_cvtepu16_epi32(x) simd_cvtepu16_epi32(x)
#define _mm512_cvtepu8_epi32(x) simd_cvtepu8_epi32(x)
#define _mm512_cvtepi8_epi32(x) simd_cvtepi8_epi32(x)
#define _mm512_cvtepi32_ps(x) simd_cvtepi32_ps(x)
#define _mm512_cvtepi32_epi16(x) simd_cvtepi32_epi16(x)

#endif
