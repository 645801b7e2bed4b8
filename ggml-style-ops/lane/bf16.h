/* bf16: the upper 16 bits of a binary32 (numerics 2.3). Values travel as 16-bit patterns. */
#ifndef ISO_LANE_BF16_H
#define ISO_LANE_BF16_H

#include "ggml-style-ops/lane/clean.h"

LANE_FN lane_f32 lane_bf16_f32(lane_u32 h) { return lane_float(h << 16); }

/* clean, then round to nearest even on the bit pattern; the result is in the low 16 bits. */
LANE_FN lane_u32 lane_bf16(lane_f32 x, LANE_FLAGS)
{
    lane_u32 u = lane_bits(lane_clean(x, flags));

    return ((u + 0x7fffu + ((u >> 16) & 1u)) >> 16) & 0xffffu;
}

#endif
