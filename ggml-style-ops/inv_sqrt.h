/* inv_sqrt: n^-1/2 correctly rounded to binary32, by integers: the scales of attention, of index
 * scores and of the Engram gate (512 -> 0x3d3504f3, 5120 -> 0x3c64f92e). */
#ifndef ISO_OPS_INV_SQRT_H
#define ISO_OPS_INV_SQRT_H

#include "core/check.h"
#include "ggml-style-ops/lane/fp8.h"

/* floor(2^exponent / n) for n != 0 and a quotient below 2^63. */
static inline uint64_t iso_pow2_quotient(uint32_t exponent, uint32_t n)
{
    uint64_t quotient = 0, rest = 1;

    for (uint32_t i = 0; i <= exponent; i++) {
        quotient = quotient * 2 + rest / n;
        rest = rest % n * 2;                      /* < 2^33 */
    }
    return quotient;
}

/* floor(sqrt(x)) for x < 2^62. */
static inline uint64_t iso_floor_sqrt(uint64_t x)
{
    uint64_t root = 0;

    for (uint64_t bit = (uint64_t)1 << 30; bit != 0; bit /= 2)
        if ((root | bit) * (root | bit) <= x)
            root |= bit;
    return root;
}

/* n != 0. The root is found to 25 bits; a tie is impossible: an odd 25-bit root is never exact. */
static inline float iso_inv_sqrt_u32(uint32_t n)
{
    uint32_t shift = 23;
    uint64_t root;

    ISO_ASSERT(n != 0);
    do {
        root = iso_floor_sqrt(iso_pow2_quotient(2 * shift + 2, n));
        shift++;
    } while (root < (1u << 24));                  /* root / 2^shift -> n^-1/2, in [2^24, 2^25) */
    return (float)(int32_t)((root + 1) / 2) * lane_pow2(1 - (int32_t)shift);
}

#endif
