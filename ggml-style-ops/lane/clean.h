/* clean: the domain of every stored value: +0 or 2^-50 <= |x| < 2^50 (numerics 2.2). */
#ifndef ISO_LANE_CLEAN_H
#define ISO_LANE_CLEAN_H

#include "ggml-style-ops/lane/lane.h"

#define LANE_CLEAN_MIN 0x26800000u   /* 2^-50 */
#define LANE_CLEAN_MAX 0x58800000u   /* 2^50 */

/* Below 2^-50, also -0 and subnormals: +0. At 2^50 and above, Inf, NaN: raises the range flag.
 * Decided on the bits, so flush modes cannot matter. */
LANE_FN lane_f32 lane_clean(lane_f32 x, LANE_FLAGS)
{
    lane_u32 u = lane_bits(x);
    lane_u32 a = u & 0x7fffffffu;

    if (a < LANE_CLEAN_MIN)
        return lane_float(0u);
    if (a >= LANE_CLEAN_MAX) {
        LANE_RAISE(LANE_RANGE);
        if (a > 0x7f800000u)
            u = 0x7fc00000u;
    }
    return lane_float(u);
}

#endif
