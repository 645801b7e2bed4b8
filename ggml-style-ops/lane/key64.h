/* key64: the order of scores: higher first, then the lower index, as an unsigned 64-bit key whose
 * words are (high, low) (numerics 17). */
#ifndef ISO_LANE_KEY64_H
#define ISO_LANE_KEY64_H

#include "ggml-style-ops/lane/clean.h"

/* High word of the key: grows with the cleaned score; NaN is 0. */
LANE_FN lane_u32 lane_key_high(lane_f32 score, LANE_FLAGS)
{
    lane_u32 u = lane_bits(lane_clean(score, flags));

    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0u;
    return u >= 0x80000000u ? ~u : u | 0x80000000u;
}

LANE_FN lane_u32 lane_key_low(lane_u32 index) { return 0xffffffffu - index; }

#endif
