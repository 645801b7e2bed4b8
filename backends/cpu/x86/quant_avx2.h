/* quant_avx2: the quantisers on 16-bit lanes (numerics 11). An input is a bf16 pattern, a scale is
 * a power of two, and so is every step between two codes: magnitudes stay integers. For files that
 * are compiled with the AVX2 flags only. */
#ifndef ISO_CPU_X86_QUANT_AVX2_H
#define ISO_CPU_X86_QUANT_AVX2_H

#include "backends/cpu/simd.h"
#include "ggml-style-ops/quant.h"

static inline __m256i quant_load(const uint16_t *x)
{
    return _mm256_loadu_si256((const void *)x);
}

static inline __m256i quant_magnitude(__m256i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi16(0x7fff));
}

/* The largest of 16 numbers; the smallest of their complements has an instruction. */
static inline uint32_t quant_max(__m256i a)
{
    const __m128i half = _mm_max_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i not = _mm_xor_si128(half, _mm_set1_epi16(-1));

    return 0xffffu ^ (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(not), 0);
}

/* |x| 2^-k on the exponent field. What underflows or was zero stays below 2^-80: code 0. */
static inline __m256i quant_scaled(__m256i magnitude, int32_t k)
{
    const int16_t steps = (int16_t)((k < 0 ? -k : k) * 128);
    const __m256i by = _mm256_set1_epi16(steps);

    return k < 0 ? _mm256_adds_epi16(magnitude, by) : _mm256_subs_epu16(magnitude, by);
}

/* e2m1 magnitudes: how many of the seven limits are below a (numerics 2.5); a limit that belongs to
 * the upper code is given as the number before it. */
static inline __m256i quant_e2m1(__m256i a, const __m256i limit[7])
{
    __m256i code = _mm256_setzero_si256();

    for (int i = 0; i < 7; i++)
        code = _mm256_sub_epi16(code, _mm256_cmpgt_epi16(a, limit[i]));
    return code;
}

/* The sign of x as the sign bit of a code of four bits. */
static inline __m256i quant_e2m1_sign(__m256i x)
{
    return _mm256_slli_epi16(_mm256_srli_epi16(x, 15), 3);
}

/* 32 codes in 16-bit lanes (elements 0 .. 15 and 16 .. 31) -> 16 bytes, even element low. */
static inline __m128i quant_e2m1_pack(__m256i first, __m256i second)
{
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(first, second), 0xd8);
    const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x1001));

    return _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

#endif
