/* u64: products of 32-bit words as (low, high) pairs, for dialects without 64-bit integers. */
#ifndef ISO_LANE_U64_H
#define ISO_LANE_U64_H

#include "ggml-style-ops/lane/lane.h"

LANE_FN lane_u32 lane_mul_low(lane_u32 a, lane_u32 b) { return a * b; }

LANE_FN lane_u32 lane_mul_high(lane_u32 a, lane_u32 b)
{
    lane_u32 al = a & 0xffffu;
    lane_u32 ah = a >> 16;
    lane_u32 bl = b & 0xffffu;
    lane_u32 bh = b >> 16;
    lane_u32 t = al * bl;
    lane_u32 m = ah * bl + (t >> 16);             /* < 2^32 */
    lane_u32 n = al * bh + (m & 0xffffu);         /* < 2^32 */

    return ah * bh + (m >> 16) + (n >> 16);
}

#endif
