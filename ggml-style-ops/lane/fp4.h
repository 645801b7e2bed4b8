/* fp4: e2m1 codes: magnitudes 0 0.5 1 1.5 2 3 4 6 for codes 0..7, bit 3 is the sign (numerics 2.5).
 * Two codes share a byte; the low nibble is the even element. */
#ifndef ISO_LANE_FP4_H
#define ISO_LANE_FP4_H

#include "ggml-style-ops/lane/lane.h"

/* Nearest code, at a tie the even one, saturating at 6, sign kept, also for zero. */
LANE_FN lane_u32 lane_e2m1(lane_f32 x)
{
    lane_f32 v = lane_float(lane_bits(x) & 0x7fffffffu);
    lane_u32 code = LANE_U32(v > 0.25f) + LANE_U32(v >= 0.75f) + LANE_U32(v > 1.25f)
                  + LANE_U32(v >= 1.75f) + LANE_U32(v > 2.5f) + LANE_U32(v >= 3.5f)
                  + LANE_U32(v > 5.0f);

    return ((lane_bits(x) >> 28) & 8u) | code;
}

/* A code as an integer number of halves: 0 1 2 3 4 6 8 12, with sign. */
LANE_FN lane_i32 lane_e2m1_int(lane_u32 c)
{
    lane_u32 m = c & 7u;
    lane_u32 e = m >> 1;
    lane_i32 v = LANE_I32(e != 0u ? (2u + (m & 1u)) << (e - 1u) : m);

    return (c & 8u) != 0u ? -v : v;
}

LANE_FN lane_f32 lane_e2m1_f32(lane_u32 c)        /* exact */
{
    return LANE_F32(lane_e2m1_int(c)) * 0.5f;
}

#endif
