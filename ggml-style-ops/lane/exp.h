/* exp: software exponential (numerics 9.2). Error at most 0.71 ulp; exp(0) = 1 exactly. The
 * polynomial coefficients are those of the Cephes library's expf. */
#ifndef ISO_LANE_EXP_H
#define ISO_LANE_EXP_H

#include "ggml-style-ops/lane/lane.h"

/* Results below 2^-126 are +0; x > 88.72: +Inf; NaN: 0x7fc00000. */
LANE_FN lane_f32 lane_exp(lane_f32 x)
{
    lane_u32 ux = lane_bits(x);
    lane_u32 ax = ux & 0x7fffffffu;
    lane_f32 xc = lane_float(ax > 0x42cfffffu ? 0u : ux);
    lane_f32 t = xc * lane_float(0x3fb8aa3bu);
    lane_f32 km = t + lane_float(0x4b400000u);    /* round(x / ln 2) in the low bits */
    lane_f32 kf = km - lane_float(0x4b400000u);
    lane_f32 kh = kf * lane_float(0x3f318000u);   /* exact */
    lane_f32 a = xc - kh;                         /* exact */
    lane_f32 b = kf * lane_float(0xb95e8083u);
    lane_f32 r = a - b;
    lane_f32 p = lane_float(0x39506967u);
    lane_f32 h = 1.0f + r;
    lane_f32 q;
    lane_f32 e;
    lane_f32 y;
    lane_u32 uy;

    p = p * r;
    p = p + lane_float(0x3ab743ceu);
    p = p * r;
    p = p + lane_float(0x3c088908u);
    p = p * r;
    p = p + lane_float(0x3d2aa9c1u);
    p = p * r;
    p = p + lane_float(0x3e2aaaaau);
    p = p * r;
    p = p + 0.5f;
    q = r * r;
    q = p * q;
    e = h - 1.0f;                                 /* what 1 + r lost */
    e = a - e;
    e = e - b;
    y = e + q;
    y = h + y;
    uy = lane_bits(y) + ((lane_bits(km) - 0x4b400000u) << 23);
    if (ux < 0x80000000u && ax > 0x42b17217u)
        uy = 0x7f800000u;
    if (ux >= 0x80000000u && ax > 0x42aeac4fu)
        uy = 0u;
    if (ax > 0x7f800000u)
        uy = 0x7fc00000u;
    return lane_float(uy);
}

#endif
