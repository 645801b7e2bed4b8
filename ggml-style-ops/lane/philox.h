/* philox: Philox4x32-10 counter-based random numbers (numerics 18; Salmon et al., 2011). */
#ifndef ISO_LANE_PHILOX_H
#define ISO_LANE_PHILOX_H

#include "ggml-style-ops/lane/u64.h"

struct lane_philox {
    lane_u32 c0, c1, c2, c3;
};

LANE_FN struct lane_philox lane_philox4x32(struct lane_philox ctr, lane_u32 key0, lane_u32 key1)
{
    for (lane_i32 r = 0; r < 10; r++) {
        lane_u32 ah = lane_mul_high(ctr.c0, 0xd2511f53u);
        lane_u32 al = lane_mul_low(ctr.c0, 0xd2511f53u);
        lane_u32 bh = lane_mul_high(ctr.c2, 0xcd9e8d57u);
        lane_u32 bl = lane_mul_low(ctr.c2, 0xcd9e8d57u);

        ctr.c0 = bh ^ ctr.c1 ^ key0;
        ctr.c1 = bl;
        ctr.c2 = ah ^ ctr.c3 ^ key1;
        ctr.c3 = al;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return ctr;
}

#endif
