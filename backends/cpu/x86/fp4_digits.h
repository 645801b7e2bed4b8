/* fp4_digits: the operands of the exact integer sums of e2m1 x e4m3 over blocks of 32 k with 8-bit
 * products (numerics 6.5, any means). A file includes vec8.h or vec16.h first.
 *
 * An e4m3 code is the integer X = rest + 8 low + 2048 high with rest in -7 .. 7, low in -128 .. 127
 * and |high| <= 120 (a NaN code included). A code of |x| >= 2^-3 has no rest, and most groups of 64
 * have no smaller one beside the zeros: they need two products instead of three. Weights are
 * c + 12 in 0 .. 24, the unsigned operand of the products; 12 sum(X) is taken off at the end.
 *
 * A step is as many blocks as a vector has parts of 128 bits: two or four. Byte j of a part holds
 * k = 2 j (even, the low nibbles) or 2 j + 1 (odd) of its block. */
#ifndef ISO_CPU_X86_FP4_DIGITS_H
#define ISO_CPU_X86_FP4_DIGITS_H

#include "backends/cpu/simd.h"

#include <string.h>

enum { FP4_BLOCK = 32, FP4_STEP_BLOCKS = VEC_LANES / 4, FP4_STEP = FP4_STEP_BLOCKS * FP4_BLOCK };

/* The activations of one step. */
typedef struct fp4_digits {
    veci low[2], high[2], rest[2];       /* even k, odd k */
} fp4_digits;

/* The weights of one step, c + 12. */
typedef struct fp4_weights {
    veci even, odd;
} fp4_weights;

static inline __m256i fp4_table(__m128i table) { return _mm256_broadcastsi128_si256(table); }

static inline fp4_weights fp4_decode(veci codes)
{
    const veci value = vec_each_128(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24,
                                                  12, 11, 10, 9, 8, 6, 4, 0));
    const veci nibble = VEC(set1_epi8)(15);

    return (fp4_weights){
        VEC(shuffle_epi8)(value, VECS(and)(codes, nibble)),
        VEC(shuffle_epi8)(value, VECS(and)(VEC(srli_epi16)(codes, 4), nibble))};
}

/* The codes of a step, or of its first blocks with zeros behind. */
static inline veci fp4_load_codes(const uint8_t *w, uint32_t blocks)
{
    uint8_t copy[FP4_STEP / 2] = {0};

    if (blocks >= FP4_STEP_BLOCKS)
        return VECS(loadu)((const void *)w);
    memcpy(copy, w, blocks * (FP4_BLOCK / 2));
    return VECS(loadu)((const void *)copy);
}

/* Four bytes in every word. */
static inline veci fp4_four(const void *bytes)
{
    int32_t word;

    memcpy(&word, bytes, sizeof word);
    return VEC(set1_epi32)(word);
}

/* Even and odd bytes of two blocks, one block in each half. */
static inline void fp4_split_bytes(__m256i a, __m256i b, __m256i out[2])
{
    const __m256i byte = _mm256_set1_epi16(255);
    const __m256i even = _mm256_packus_epi16(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte));
    const __m256i odd = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));

    out[0] = _mm256_permute4x64_epi64(even, 0xd8);
    out[1] = _mm256_permute4x64_epi64(odd, 0xd8);
}

/* X mod 8 of 32 codes, with sign: nonzero for codes below 2^-3, |code| < 32 only. */
static inline __m256i fp4_rests(__m256i codes, __m256i signs)
{
    const __m256i first = fp4_table(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i second = fp4_table(_mm_setr_epi8(0, 2, 4, 6, 0, 2, 4, 6,
                                                   0, 4, 0, 4, 0, 4, 0, 4));
    const __m256i a = _mm256_and_si256(codes, _mm256_set1_epi8(0x7f));
    const __m256i over = _mm256_set1_epi8(0x70);         /* 16 and above: to 128, which gives 0 */
    const __m256i low = _mm256_shuffle_epi8(first, _mm256_adds_epu8(a, over));
    const __m256i high = _mm256_shuffle_epi8(
        second, _mm256_adds_epu8(_mm256_xor_si256(a, _mm256_set1_epi8(16)), over));

    return _mm256_sign_epi8(_mm256_or_si256(low, high), signs);
}

/* (X - rest) / 8 of 32 codes, |value| <= 30,720: 16-bit numbers of the even and the odd codes.
 * |X| = M 2^(E-1) with M = 8 + m, or M = m and 2^0 for E = 0; out = (M 2^12 * 2^E) >> 16. */
static inline void fp4_eighths(__m256i codes, __m256i signs, __m256i out[2])
{
    const __m256i pow_low = fp4_table(_mm_setr_epi8(2, 2, 4, 8, 16, 32, 64, -128,
                                                    0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i pow_high = fp4_table(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0,
                                                     1, 2, 4, 8, 16, 32, 64, -128));
    const __m256i hidden = fp4_table(_mm_setr_epi8(0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8));
    const __m256i byte = _mm256_set1_epi16(255);
    const __m256i e = _mm256_and_si256(_mm256_srli_epi16(codes, 3), _mm256_set1_epi8(15));
    const __m256i m = _mm256_or_si256(_mm256_and_si256(codes, _mm256_set1_epi8(7)),
                                      _mm256_shuffle_epi8(hidden, e));
    const __m256i low = _mm256_shuffle_epi8(pow_low, e), high = _mm256_shuffle_epi8(pow_high, e);
    const __m256i even = _mm256_or_si256(_mm256_and_si256(low, byte), _mm256_slli_epi16(high, 8));
    const __m256i odd = _mm256_or_si256(_mm256_srli_epi16(low, 8), _mm256_andnot_si256(byte, high));
    const __m256i m_odd = _mm256_slli_epi16(_mm256_andnot_si256(byte, m), 4);

    out[0] = _mm256_sign_epi16(_mm256_mulhi_epu16(_mm256_slli_epi16(m, 12), even),
                               _mm256_slli_epi16(signs, 8));
    out[1] = _mm256_sign_epi16(_mm256_mulhi_epu16(m_odd, odd), signs);
}

static inline void fp4_put(veci *to, uint32_t pair, __m256i value)
{
    _mm256_store_si256((__m256i *)(void *)to + pair, value);
}

/* Digits of the codes of two blocks, to pair `pair` of a step. Returns whether there is a rest. */
static inline bool fp4_split(__m256i a, __m256i b, fp4_digits *x, uint32_t pair)
{
    const __m256i one = _mm256_set1_epi8(1), byte = _mm256_set1_epi16(255);
    const __m256i half = _mm256_set1_epi16(128);
    const __m256i sign_a = _mm256_or_si256(a, one), sign_b = _mm256_or_si256(b, one);
    const __m256i rest_a = fp4_rests(a, sign_a), rest_b = fp4_rests(b, sign_b);
    const __m256i any = _mm256_or_si256(rest_a, rest_b);
    __m256i va[2], vb[2], rest[2];

    fp4_eighths(a, sign_a, va);
    fp4_eighths(b, sign_b, vb);
    fp4_split_bytes(rest_a, rest_b, rest);
    for (int i = 0; i < 2; i++) {
        const __m256i low = _mm256_packus_epi16(_mm256_and_si256(va[i], byte),
                                                _mm256_and_si256(vb[i], byte));
        const __m256i high = _mm256_packs_epi16(
            _mm256_srai_epi16(_mm256_add_epi16(va[i], half), 8),
            _mm256_srai_epi16(_mm256_add_epi16(vb[i], half), 8));

        fp4_put(&x->low[i], pair, _mm256_permute4x64_epi64(low, 0xd8));
        fp4_put(&x->high[i], pair, _mm256_permute4x64_epi64(high, 0xd8));
        fp4_put(&x->rest[i], pair, rest[i]);
    }
    return !_mm256_testz_si256(any, any);
}

#endif
