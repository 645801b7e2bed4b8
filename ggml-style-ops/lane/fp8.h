/* fp8: e4m3 codes and ue8m0 power-of-two scales (numerics 2.1, 2.4, 2.6). */
#ifndef ISO_LANE_FP8_H
#define ISO_LANE_FP8_H

#include "ggml-style-ops/lane/lane.h"

/* Nearest e4m3 code, ties to even, magnitude clamped to 448 (0x7e), sign kept. NaN: 0x7f and the
 * range flag. */
LANE_FN lane_u32 lane_e4m3(lane_f32 v, LANE_FLAGS)
{
    lane_u32 u = lane_bits(v);
    lane_u32 a = u & 0x7fffffffu;
    lane_u32 s = (u >> 24) & 0x80u;
    lane_u32 code;

    if (a > 0x7f800000u) {
        LANE_RAISE(LANE_RANGE);
        return 0x7fu;
    }
    if (a > 0x43e00000u)
        a = 0x43e00000u;
    if (a >= 0x3c800000u) {                       /* normal: 2^-6 and up */
        code = ((a + 0x7ffffu + ((a >> 20) & 1u)) >> 20) - 960u;
    } else {                                      /* multiples of 2^-9 */
        lane_u32 h = 141u - (a >> 23);
        lane_u32 m = (a & 0x7fffffu) | 0x800000u;

        code = h > 25u ? 0u : (m + (1u << (h - 1u)) - 1u + ((m >> h) & 1u)) >> h;
    }
    return s | code;
}

/* An e4m3 code as an integer number of 2^-9; |result| <= 229,376 for codes that are not NaN. */
LANE_FN lane_i32 lane_e4m3_int(lane_u32 c)
{
    lane_u32 e = (c >> 3) & 15u;
    lane_u32 m = c & 7u;
    lane_i32 v = LANE_I32(e != 0u ? (8u + m) << (e - 1u) : m);

    return (c & 0x80u) != 0u ? -v : v;
}

LANE_FN lane_f32 lane_e4m3_f32(lane_u32 c)        /* exact */
{
    return LANE_F32(lane_e4m3_int(c)) * lane_float(0x3b000000u);
}

/* 2^(b-127); byte 0 is the subnormal 2^-127, byte 255 is NaN. */
LANE_FN lane_f32 lane_ue8m0_f32(lane_u32 b)
{
    return lane_float(b == 255u ? 0x7fc00000u : b != 0u ? b << 23 : 0x00400000u);
}

/* Byte of the smallest power of two >= t, for a normal t > 0. */
LANE_FN lane_u32 lane_ue8m0_ceil(lane_f32 t)
{
    lane_u32 u = lane_bits(t);

    return (u >> 23) + LANE_U32((u & 0x7fffffu) != 0u);
}

/* 2^k for -126 <= k <= 127. */
LANE_FN lane_f32 lane_pow2(lane_i32 k) { return lane_float(LANE_U32(k + 127) << 23); }

#endif
