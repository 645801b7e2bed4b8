/* sqrt: correctly rounded square root, certified like the division (numerics 9.1). There is no
 * rsqrt primitive: it is div(1, sqrt(x)), two roundings. */
#ifndef ISO_LANE_SQRT_H
#define ISO_LANE_SQRT_H

#include "ggml-style-ops/lane/div.h"

/* sqrt(-0) = +0; operands below 2^-126 count as zero; negative and NaN: 0x7fc00000. */
LANE_FN lane_f32 lane_sqrt(lane_f32 x)
{
    lane_u32 u = lane_bits(x);
    lane_u32 ax = u & 0x7fffffffu;
    lane_u32 m = (ax & 0x7fffffu) | 0x800000u;
    lane_i32 e = LANE_I32(ax >> 23);
    lane_i32 odd = (e & 1) ^ 1;
    lane_f32 fm = LANE_F32(LANE_I32(m << odd));   /* in [2^23, 2^25) */
    lane_f32 y = lane_float(0x5f375a86u - (lane_bits(fm) >> 1));
    lane_f32 hx = fm * 0.5f;
    lane_f32 t;
    lane_i32 q;
    lane_i32 r;
    lane_i32 dq;
    lane_u32 uo;

    for (lane_i32 i = 0; i < 3; i++) {
        t = hx * y;
        t = t * y;
        t = 1.5f - t;
        y = y * t;
    }
    t = fm * y;
    t = t * lane_float(0x453504f3u);              /* 2^11.5 */
    q = LANE_I32(t);
    r = LANE_I32((m << (23 + odd)) - LANE_U32(q) * LANE_U32(q));
    t = y * lane_float(0x393504f3u);              /* 2^-12.5 */
    t = LANE_F32(r) * t;
    dq = LANE_I32(t);
    r -= LANE_I32(LANE_U32(dq) * LANE_U32(2 * q + dq));
    q += dq;
    if (r < 0) {
        r += 2 * q - 1;
        q -= 1;
    }
    if (r > 2 * q) {
        r -= 2 * q + 1;
        q += 1;
    }
    q += LANE_I32(r > q);
    uo = (LANE_U32(((e - 127 - odd) >> 1) + 127) << 23) + (LANE_U32(q) - 0x800000u);
    if (e == 0)
        uo = 0u;
    if (ax == 0x7f800000u)
        uo = 0x7f800000u;
    if (ax > 0x7f800000u || (u >= 0x80000000u && e != 0))
        uo = 0x7fc00000u;
    return lane_float(uo);
}

LANE_FN lane_f32 lane_rsqrt(lane_f32 x) { return lane_div(1.0f, lane_sqrt(x)); }

#endif
