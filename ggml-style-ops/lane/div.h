/* div: correctly rounded division from an estimate that integer remainders certify (numerics 9.1).
 * A platform with IEEE division may use that instead: the bits are the same. */
#ifndef ISO_LANE_DIV_H
#define ISO_LANE_DIV_H

#include "ggml-style-ops/lane/lane.h"

/* About 1/b with a relative error of at most 2^-22.69, for b in [2^23, 2^24). */
LANE_FN lane_f32 lane_reciprocal_estimate(lane_f32 b)
{
    lane_f32 y = lane_float(0x7ef311c7u - lane_bits(b));

    for (lane_i32 i = 0; i < 3; i++) {
        lane_f32 t = b * y;

        t = 2.0f - t;
        y = y * t;
    }
    return y;
}

/* a/b rounded to nearest even. Operands below 2^-126 count as zero, results below 2^-126 become
 * zero of the right sign. x/0 and Inf/x: Inf; 0/0, Inf/Inf and NaN: 0x7fc00000. */
LANE_FN lane_f32 lane_div(lane_f32 a, lane_f32 b)
{
    lane_u32 ua = lane_bits(a);
    lane_u32 ub = lane_bits(b);
    lane_u32 s = (ua ^ ub) & 0x80000000u;
    lane_u32 aa = ua & 0x7fffffffu;
    lane_u32 ab = ub & 0x7fffffffu;
    lane_i32 ea = LANE_I32(aa >> 23);
    lane_i32 eb = LANE_I32(ab >> 23);
    lane_u32 ma = (aa & 0x7fffffu) | 0x800000u;
    lane_u32 mb = (ab & 0x7fffffu) | 0x800000u;
    lane_u32 lt = LANE_U32(ma < mb);
    lane_u32 mm = ma << lt;                       /* in [mb, 2 mb) */
    lane_f32 rc = lane_reciprocal_estimate(LANE_F32(LANE_I32(mb)));
    lane_f32 qf = LANE_F32(LANE_I32(mm)) * rc;
    lane_i32 q;
    lane_i32 r;
    lane_i32 dq;
    lane_i32 e;
    lane_u32 u;

    qf = qf * lane_float(0x4b000000u);            /* 2^23 */
    q = LANE_I32(qf);
    r = LANE_I32((mm << 23) - LANE_U32(q) * mb);  /* true remainder, modulo 2^32 */
    qf = LANE_F32(r) * rc;
    dq = LANE_I32(qf);
    q += dq;
    r -= LANE_I32(LANE_U32(dq) * mb);
    if (r < 0) {
        q -= 1;
        r += LANE_I32(mb);
    }
    if (r >= LANE_I32(mb)) {
        q += 1;
        r -= LANE_I32(mb);
    }
    q += LANE_I32(2 * r > LANE_I32(mb));          /* a tie is impossible */
    e = ea - eb + 127 - LANE_I32(lt);
    u = (LANE_U32(e) << 23) + (LANE_U32(q) - 0x800000u);
    e += q >> 24;
    if (e <= 0)
        u = 0u;
    if (e >= 255)
        u = 0x7f800000u;
    if (ea == 0 || ab == 0x7f800000u)
        u = 0u;
    if (eb == 0 || aa == 0x7f800000u)
        u = 0x7f800000u;
    u |= s;
    if (aa > 0x7f800000u || ab > 0x7f800000u || (ea == 0 && eb == 0)
        || (aa == 0x7f800000u && ab == 0x7f800000u))
        u = 0x7fc00000u;
    return lane_float(u);
}

#endif
