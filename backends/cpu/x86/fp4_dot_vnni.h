/* fp4_dot_vnni: sums of products of fp4_digits.h by vpdpbusd. A file includes vec16.h first. */
#ifndef ISO_CPU_X86_FP4_DOT_VNNI_H
#define ISO_CPU_X86_FP4_DOT_VNNI_H

#include "backends/cpu/x86/fp4_digits.h"

/* sum + (c + 12) x, four parts per block. */
static inline veci fp4_products(veci sum, const fp4_weights *w, const veci x[2])
{
    return VEC(dpbusd_epi32)(VEC(dpbusd_epi32)(sum, w->even, x[0]), w->odd, x[1]);
}

/* sum of (c + 12) X, four parts per block: |all four| <= 32 * 24 * 245,760 < 2^28. */
static inline veci fp4_dot(const fp4_weights *w, const fp4_digits *x, bool has_rest)
{
    const veci high = VEC(slli_epi32)(fp4_products(VECS(setzero)(), w, x->high), 8);
    const veci sum = VEC(slli_epi32)(fp4_products(high, w, x->low), 3);

    return has_rest ? fp4_products(sum, w, x->rest) : sum;
}

/* sum of q k over a block for the k of VEC_LANES rows: four k in each word, even ones in k[2 j],
 * odd ones in k[2 j + 1]; q: 16 bytes for even k, 16 for odd ones, 0 .. 24; |k| <= 12. */
static inline veci fp4_lanes_dot(const uint8_t *even, const uint8_t *odd, const veci k[8])
{
    veci a = VECS(setzero)(), b = a;

    for (uint32_t j = 0; j < 4; j++) {
        a = VEC(dpbusd_epi32)(a, fp4_four(even + 4 * j), k[2 * j]);
        b = VEC(dpbusd_epi32)(b, fp4_four(odd + 4 * j), k[2 * j + 1]);
    }
    return VEC(add_epi32)(a, b);
}

#endif
