/* fp4_dot_madd: sums of products of fp4_digits.h by vpmaddubsw and vpmaddwd. */
#ifndef ISO_CPU_X86_FP4_DOT_MADD_H
#define ISO_CPU_X86_FP4_DOT_MADD_H

#include "backends/cpu/x86/fp4_digits.h"

/* |each of the 16-bit sums| <= 2 * 2 * 24 * 128 = 12,288: fits int16, nothing saturates. */
static inline veci fp4_products(const fp4_weights *w, const veci x[2])
{
    return VEC(add_epi16)(VEC(maddubs_epi16)(w->even, x[0]), VEC(maddubs_epi16)(w->odd, x[1]));
}

/* sum of (c + 12) X, four parts per block: |all four| <= 32 * 24 * 245,760 < 2^28. */
static inline veci fp4_dot(const fp4_weights *w, const fp4_digits *x, bool has_rest)
{
    const veci low = VEC(madd_epi16)(fp4_products(w, x->low), VEC(set1_epi16)(8));
    const veci high = VEC(madd_epi16)(fp4_products(w, x->high), VEC(set1_epi16)(2048));
    const veci sum = VEC(add_epi32)(low, high);

    if (!has_rest)
        return sum;
    return VEC(add_epi32)(sum, VEC(madd_epi16)(fp4_products(w, x->rest), VEC(set1_epi16)(1)));
}

/* sum of q k over a block for the k of VEC_LANES rows: four k in each word, even ones in k[2 j],
 * odd ones in k[2 j + 1]; q: 16 bytes for even k, 16 for odd ones, 0 .. 24; |k| <= 12. |each of the
 * 16-bit sums| <= 16 * 24 * 12 = 4,608. */
static inline veci fp4_lanes_dot(const uint8_t *even, const uint8_t *odd, const veci k[8])
{
    veci a = VECS(setzero)(), b = a;

    for (uint32_t j = 0; j < 4; j++) {
        a = VEC(add_epi16)(a, VEC(maddubs_epi16)(fp4_four(even + 4 * j), k[2 * j]));
        b = VEC(add_epi16)(b, VEC(maddubs_epi16)(fp4_four(odd + 4 * j), k[2 * j + 1]));
    }
    return VEC(madd_epi16)(VEC(add_epi16)(a, b), VEC(set1_epi16)(1));
}

#endif
