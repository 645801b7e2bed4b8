/* select: the cut that keeps the best of many scores without memory (numerics 17, 18).
 *
 * Order is by 64-bit keys (high word: the score; low word: the lower index first). So the best keys
 * are all with a high word above the cut, and the first few, ascending, that are equal to it. */
#ifndef ISO_OPS_SELECT_H
#define ISO_OPS_SELECT_H

#include "ggml-style-ops/lane/key64.h"

/* Sum of the weights (or the number) of the candidates whose high word is >= high. */
typedef uint64_t iso_measure_fn(const void *context, uint32_t high);

typedef struct iso_cut {
    uint32_t high;
    uint64_t rest;           /* weight still to take from those equal to `high` */
} iso_cut;

/* The cut of the shortest prefix, best key first, whose measure is >= target; everything if the
 * measure of all candidates is less. 33 evaluations at most. */
static inline iso_cut iso_cut_find(iso_measure_fn *measure, const void *context, uint64_t target)
{
    uint32_t high = 0;

    for (uint32_t bit = 0x80000000u; bit != 0; bit /= 2)
        if (measure(context, high | bit) >= target)
            high |= bit;
    return (iso_cut){high, target - (high == UINT32_MAX ? 0 : measure(context, high + 1))};
}

/* Whether a candidate is inside; ask once for each, in ascending index order. */
static inline bool iso_cut_take(iso_cut *cut, uint32_t high, uint64_t weight)
{
    if (high != cut->high)
        return high > cut->high;
    if (cut->rest == 0)
        return false;
    cut->rest -= weight < cut->rest ? weight : cut->rest;
    return true;
}

#endif
