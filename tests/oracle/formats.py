"""Number formats and quantisers, from numerics.md sections 2, 11 and model-v41.md 4.1-4.3.

A bf16 or decoded low-precision tensor is kept as a float32 array whose values are exactly
representable in the narrow format: products and sums can then use any NumPy type.
"""
import ml_dtypes
import numpy as np

F32 = np.float32
BF16 = ml_dtypes.bfloat16
E4M3 = ml_dtypes.float8_e4m3fn
DOMAIN_MIN = F32(2.0 ** -50)
DOMAIN_MAX = F32(2.0 ** 50)
# Magnitudes of the eight e2m1 codes (numerics.md 2.1); bit 3 of a code is the sign.
E2M1_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=F32)
E2M1_SIGNED = np.concatenate([E2M1_VALUES, -E2M1_VALUES])


class RangeError(ArithmeticError):
    """A stored value left the domain of numerics.md 2.2."""


def clean(x):
    """numerics.md 2.2: below 2^-50 in magnitude becomes +0; 2^50 and above is an error."""
    x = np.asarray(x, dtype=F32)
    magnitude = np.abs(x)
    if not np.all(magnitude < DOMAIN_MAX):      # the negated form also catches NaN
        raise RangeError("value outside [2^-50, 2^50)")
    return np.where(magnitude < DOMAIN_MIN, F32(0), x)


def bf16(x):
    """numerics.md 2.3: clean, then round to nearest even. A float64 sum is rounded to f32 first,
    because the contract's accumulator is an f32."""
    return clean(x).astype(BF16).astype(F32)


def e4m3(v):
    """numerics.md 2.4: saturate at 448, then round to nearest even; returns decoded values."""
    v = np.clip(np.asarray(v, dtype=F32), F32(-448), F32(448))
    return v.astype(E4M3).astype(F32)


def e2m1(v):
    """numerics.md 2.5: nearest of the eight magnitudes, an exact tie to the even code."""
    v = np.asarray(v, dtype=F32)
    a = np.abs(v)
    code = ((a > 0.25).astype(int) + (a >= 0.75) + (a > 1.25) + (a >= 1.75)
            + (a > 2.5) + (a >= 3.5) + (a > 5))
    return np.copysign(E2M1_VALUES[code], v)


def power_of_two_at_least(t):
    """model-v41.md 4.1 / numerics.md 2.6: smallest power of two >= t, for normal t > 0.
    frexp gives t = f * 2^e with f in [0.5, 1), so the answer is 2^e unless f is exactly 0.5."""
    f, e = np.frexp(np.asarray(t, dtype=F32))
    return np.ldexp(F32(1), np.where(f == 0.5, e - 1, e)).astype(F32)


def _groups(x, size):
    """View the last axis as groups of `size`; a short last group is padded with zeros, which
    never changes a maximum of magnitudes."""
    n = x.shape[-1]
    pad = -n % size
    if pad:
        x = np.concatenate([x, np.zeros(x.shape[:-1] + (pad,), F32)], axis=-1)
    return x.reshape(x.shape[:-1] + (-1, size)), n


def _ungroup(y, n):
    return y.reshape(y.shape[:-2] + (-1,))[..., :n]


def q8(x, group=32, with_scale=False):
    """Q8 (model-v41.md 4.2): e4m3 codes under a power-of-two scale per group, decoded again."""
    g, n = _groups(np.asarray(x, dtype=F32), group)
    amax = np.maximum(np.max(np.abs(g), axis=-1, keepdims=True), F32(1e-4))
    scale = power_of_two_at_least(amax * F32(1.0 / 448.0))
    y = _ungroup(e4m3(g / scale) * scale, n)
    return (y, scale[..., 0]) if with_scale else y


def q4i(x, group=32, floor_exponent=-41, with_scale=False):
    """Q4i (numerics.md 11): e2m1 codes under a power-of-two scale. The contract floors the scale
    at 2^-41; the vendor's floor 2^-126 (model-v41.md 4.3) is an argument, for the vectors."""
    g, n = _groups(np.asarray(x, dtype=F32), group)
    floor = np.ldexp(F32(6), floor_exponent).astype(F32)
    amax = np.maximum(np.max(np.abs(g), axis=-1, keepdims=True), floor)
    scale = power_of_two_at_least(amax * F32(1.0 / 6.0))
    y = _ungroup(e2m1(np.clip(g / scale, F32(-6), F32(6))) * scale, n)
    return (y, scale[..., 0]) if with_scale else y


def q4kv(x, group=16, with_scale=False):
    """Q4kv (model-v41.md 4.3): e2m1 codes under an e4m3 scale per 16, IEEE division by it."""
    g, n = _groups(np.asarray(x, dtype=F32), group)
    amax = np.maximum(np.max(np.abs(g), axis=-1, keepdims=True), F32(6.0 * 2.0 ** -9))
    scale = e4m3(amax / F32(6))
    y = _ungroup(e2m1(np.clip(g / scale, F32(-6), F32(6))) * scale, n)
    return (y, scale[..., 0]) if with_scale else y


def e8m0_decode(byte):
    """model-v41.md 3: 2^(byte-127); byte 0 is the subnormal 2^-127. 255 must be refused earlier."""
    return np.ldexp(np.float64(1), np.asarray(byte, dtype=np.int64) - 127)


def dequant_fp8(codes, scale_bytes, block=32):
    """model-v41.md 3: e4m3 weight [O,I] under block x block tiles of e8m0 scales."""
    scale = np.repeat(np.repeat(e8m0_decode(scale_bytes), block, axis=0), block, axis=1)
    w = codes.astype(np.float64) * scale[:codes.shape[0], :codes.shape[1]]
    return _exact_weight(w)


def dequant_fp4(packed, scale_bytes, block=32):
    """model-v41.md 3: two e2m1 codes a byte, low nibble = even column; e8m0 per row and 32."""
    packed = packed.view(np.uint8)
    codes = np.empty((packed.shape[0], packed.shape[1] * 2), np.uint8)
    codes[:, 0::2] = packed & 15
    codes[:, 1::2] = packed >> 4
    scale = np.repeat(e8m0_decode(scale_bytes), block, axis=1)
    return _exact_weight(E2M1_SIGNED[codes].astype(np.float64) * scale)


def decode_engram_rows(codes, scale_bytes):
    """engram.md 6: e4m3 times e8m0 per row and 32 channels, rounded to bf16, then cleaned."""
    value = codes.astype(np.float64) * np.repeat(e8m0_decode(scale_bytes), 32, axis=-1)
    value = value.astype(F32)
    if not np.all(np.isfinite(value)):
        raise RangeError("NaN code or overflow in an engram row")
    return bf16(value)


def _exact_weight(w):
    """numerics.md 2.8: a dequantised value below 2^-50 counts as +0; NaN codes are refused. All
    remaining values have at most 4 significant bits, so float32 holds them exactly."""
    if not np.all(np.abs(w) < 2.0 ** 50):
        raise RangeError("dequantised weight outside the domain")
    return np.where(np.abs(w) < 2.0 ** -50, 0.0, w).astype(F32)
