/* i32: int32 to binary32 with one rounding although each conversion is exact (numerics 2.7). */
#ifndef ISO_LANE_I32_H
#define ISO_LANE_I32_H

#include "ggml-style-ops/lane/lane.h"

LANE_FN lane_f32 lane_i32_f32(lane_i32 v)
{
    lane_i32 lo = v & 4095;
    lane_i32 hi = (v - lo) / 4096;                /* exact */
    lane_f32 h = LANE_F32(hi) * 4096.0f;

    return h + LANE_F32(lo);
}

#endif
