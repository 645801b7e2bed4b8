/* erf: odd polynomial below 1, 1 - exp(-polynomial) up to 4, then 1; and the exact-form GELU
 * (numerics 9.4). Error of erf at most 1.47 ulp. */
#ifndef ISO_LANE_ERF_H
#define ISO_LANE_ERF_H

#include "ggml-style-ops/lane/exp.h"

LANE_FN lane_f32 lane_erf_small(lane_f32 z)       /* 0 <= z < 1 */
{
    lane_f32 t = z * z;
    lane_f32 p = lane_float(0x38a4b509u);

    p = p * t;
    p = p + lane_float(0xba51fb8fu);
    p = p * t;
    p = p + lane_float(0x3baa02dfu);
    p = p * t;
    p = p + lane_float(0xbcdbfc88u);
    p = p * t;
    p = p + lane_float(0x3de7167cu);
    p = p * t;
    p = p + lane_float(0xbec0939fu);
    p = p * t;
    p = p + lane_float(0x3e0375d4u);
    p = z * p;
    return z + p;
}

LANE_FN lane_f32 lane_erf_large(lane_f32 z)       /* 1 <= z < 4 */
{
    lane_f32 p = lane_float(0xb9436e80u);

    p = p * z;
    p = p + lane_float(0x3b412d52u);
    p = p * z;
    p = p + lane_float(0xbcb2e5a6u);
    p = p * z;
    p = p + lane_float(0x3dd32996u);
    p = p * z;
    p = p + lane_float(0x3f235d78u);
    p = p * z;
    p = p + lane_float(0x3f904475u);
    p = p * z;
    p = p + lane_float(0x39b310adu);
    return 1.0f - lane_exp(lane_float(lane_bits(p) ^ 0x80000000u));
}

LANE_FN lane_f32 lane_erf(lane_f32 x)
{
    lane_u32 ux = lane_bits(x);
    lane_u32 ax = ux & 0x7fffffffu;
    lane_f32 z = lane_float(ax);
    lane_f32 r;

    if (ax > 0x7f800000u)
        return lane_float(0x7fc00000u);
    if (ax < 0x3f800000u)
        r = lane_erf_small(z);
    else if (ax < 0x40800000u)
        r = lane_erf_large(z);
    else
        r = 1.0f;
    return lane_float(lane_bits(r) | (ux & 0x80000000u));
}

LANE_FN lane_f32 lane_gelu(lane_f32 x)
{
    lane_f32 e = lane_erf(x * lane_float(0x3f3504f3u));
    lane_f32 h = 0.5f * x;

    e = 1.0f + e;
    return h * e;
}

#endif
