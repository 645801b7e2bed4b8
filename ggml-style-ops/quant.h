/* quant: what the quantisers and the readers of their codes share (numerics 11, 2.1). */
#ifndef ISO_OPS_QUANT_H
#define ISO_OPS_QUANT_H

#include "ggml-style-ops/lane/lane.h"

#define ISO_BF16_OUTSIDE 0x5880u     /* magnitude of 2^50 as bf16: this and above is no value */

/* Largest magnitude of n bf16 values, as its 15 bits. Outside the domain: raises the range flag. */
static inline uint32_t iso_max_magnitude(const uint16_t *x, uint32_t n, uint32_t *flags)
{
    uint32_t max = 0;

    for (uint32_t i = 0; i < n; i++)
        if ((x[i] & 0x7fffu) > max)
            max = x[i] & 0x7fffu;
    if (max >= ISO_BF16_OUTSIDE)
        *flags |= LANE_RANGE;
    return max;
}

/* Smallest k with limit * 2^k >= the value of `magnitude`, at least floor. limit is 448 (bias 135,
 * fraction 96) or 6 (bias 129, fraction 64): the fraction of limit in 128ths, and its exponent. */
static inline int32_t iso_scale_exponent(uint32_t magnitude, int32_t bias, uint32_t fraction,
                                         int32_t floor)
{
    const int32_t k = (int32_t)(magnitude >> 7) - bias + ((magnitude & 127u) > fraction ? 1 : 0);

    return k < floor ? floor : k;
}

/* e2m1 code `index` of a packed row: the low nibble is the even element. */
static inline uint32_t iso_e2m1_at(const uint8_t *codes, uint64_t index)
{
    return (uint32_t)codes[index / 2] >> (4 * (index % 2)) & 15u;
}

/* Writes code `index`; ascending indices from an even one write every nibble once. */
static inline void iso_e2m1_put(uint8_t *codes, uint64_t index, uint32_t code)
{
    if (index % 2 == 0)
        codes[index / 2] = (uint8_t)code;
    else
        codes[index / 2] = (uint8_t)(codes[index / 2] | code << 4);
}

#endif
