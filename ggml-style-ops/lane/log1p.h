/* log1p: log(1 + t) on [0, 1], and softplus, sigmoid, silu made of it and exp (numerics 9.3). The
 * polynomial coefficients of log1p are those of the Cephes library's logf. */
#ifndef ISO_LANE_LOG1P_H
#define ISO_LANE_LOG1P_H

#include "ggml-style-ops/lane/exp.h"
#include "ggml-style-ops/lane/sqrt.h"

LANE_FN lane_f32 lane_log1p01(lane_f32 t)
{
    bool hi = lane_bits(t) > 0x3ed413cdu;         /* t > sqrt(2) - 1 */
    lane_f32 th = t - 1.0f;
    lane_f32 f = hi ? th * 0.5f : t;
    lane_f32 c = lane_float(hi ? 0x3f317218u : 0u);
    lane_f32 d = lane_float(hi ? 0xb102e308u : 0u);
    lane_f32 z = f * f;
    lane_f32 p = lane_float(0x3d9021bbu);
    lane_f32 y;

    p = p * f;
    p = p + lane_float(0xbdebd1b8u);
    p = p * f;
    p = p + lane_float(0x3def251au);
    p = p * f;
    p = p + lane_float(0xbdfe5d4fu);
    p = p * f;
    p = p + lane_float(0x3e11e9bfu);
    p = p * f;
    p = p + lane_float(0xbe2aae50u);
    p = p * f;
    p = p + lane_float(0x3e4cceacu);
    p = p * f;
    p = p + lane_float(0xbe7ffffcu);
    p = p * f;
    p = p + lane_float(0x3eaaaaaau);
    y = f * z;
    y = y * p;
    y = y + d;
    z = 0.5f * z;
    y = y - z;
    y = f + y;
    return c + y;
}

LANE_FN lane_f32 lane_softplus(lane_f32 x)
{
    lane_f32 t = lane_exp(lane_float(lane_bits(x) | 0x80000000u));
    lane_f32 m = lane_float(lane_bits(x) >= 0x80000000u ? 0u : lane_bits(x));

    return m + lane_log1p01(t);
}

LANE_FN lane_f32 lane_sigmoid(lane_f32 x)
{
    lane_f32 t = lane_exp(lane_float(lane_bits(x) | 0x80000000u));
    lane_f32 n = lane_bits(x) >= 0x80000000u ? t : 1.0f;

    return lane_div(n, 1.0f + t);
}

LANE_FN lane_f32 lane_silu(lane_f32 x) { return x * lane_sigmoid(x); }

#endif
