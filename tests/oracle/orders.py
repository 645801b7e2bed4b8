"""Ways to evaluate sums and functions.

  f64       every dot product, sum and function in float64, rounded once to float32
  f32       NumPy's float32 order (BLAS and pairwise sums) and float32 functions
  blocks    float32, blocks of 32 along K taken from the last to the first, sums from the end
  contract  the order and the function listings of numerics.md 6, 7, 9: bit-exact by definition

The first three know nothing of the contract's order; evaluations that differ in order only bound
what order can do. The fourth is a second reading of the contract, made from the paper alone.
"""
import numpy as np

F32 = np.float32


NAMES = ("f64", "f32", "blocks", "contract")


def make_order(name):
    if name not in NAMES:
        raise ValueError("unknown order %s" % name)
    return ContractOrder() if name == "contract" else Order(name)


class Order:
    def __init__(self, name="f64"):
        self.name = name
        self.function_type = np.float64 if name == "f64" else np.float32

    def dot(self, a, w, exact_class=False):
        """[..., K] x [N, K] -> [..., N] float32 (the matmul of numerics.md 6, in another order).
        `exact_class` marks e2m1 operands (6.5); it matters to the contract's order only."""
        if self.name == "f64":
            return (a.astype(np.float64) @ w.astype(np.float64).T).astype(F32)
        a, w = a.astype(F32), w.astype(F32)
        if self.name == "f32":
            return a @ w.T
        total = None
        for begin in reversed(range(0, a.shape[-1], 32)):
            part = a[..., begin:begin + 32][..., ::-1] @ w[:, begin:begin + 32][:, ::-1].T
            total = part if total is None else total + part
        return total

    def sum(self, x, axis=-1):
        """Sum along an axis, float32 result."""
        if self.name == "f64":
            return np.sum(x.astype(np.float64), axis=axis).astype(F32)
        x = x.astype(F32)
        if self.name == "f32":
            return np.sum(x, axis=axis, dtype=F32)
        x = np.moveaxis(x, axis, 0)[::-1]
        total = np.zeros(x.shape[1:], F32)
        for row in x:
            total = total + row
        return total

    def sequential(self, x):
        """Short sum along the last axis that the contract takes in ascending order."""
        return self.sum(x)

    def sum4(self, x, axis):
        """Sum over the four streams in this evaluation's type, axis kept (numerics.md 13)."""
        return x.sum(axis=axis, keepdims=True)

    def wide(self, x):
        """Operand of an elementary function in this evaluation's type."""
        return np.asarray(x).astype(self.function_type)

    def exp(self, x):
        return np.exp(self.wide(x)).astype(F32)

    def sigmoid(self, x):
        """Both branches avoid overflow: exp is only taken of -|x|."""
        x = self.wide(x)
        t = np.exp(-np.abs(x))
        return (np.where(x >= 0, 1, t) / (1 + t)).astype(F32)

    def softplus(self, x):
        """numerics.md 9.3: max(x, 0) + log1p(exp(-|x|))."""
        x = self.wide(x)
        return (np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))).astype(F32)

    def sqrt(self, x):
        return np.sqrt(np.asarray(x, dtype=F32))


def f32_from_bits(word):
    return np.uint32(word).view(F32)


def bits(x):
    return np.asarray(x, dtype=F32).view(np.uint32)


class ContractOrder(Order):
    """numerics.md 6.1-6.5 and 7 for sums, 9.2-9.3 for functions; every operation rounds to f32."""

    EXP_POLY = [f32_from_bits(w) for w in (0x39506967, 0x3ab743ce, 0x3c088908, 0x3d2aa9c1,
                                           0x3e2aaaaa, 0x3f000000)]
    LOG_POLY = [f32_from_bits(w) for w in (0x3d9021bb, 0xbdebd1b8, 0x3def251a, 0xbdfe5d4f,
                                           0x3e11e9bf, 0xbe2aae50, 0x3e4cceac, 0xbe7ffffc,
                                           0x3eaaaaaa)]

    def __init__(self):
        super().__init__("contract")
        self.function_type = F32

    def dot(self, a, w, exact_class=False):
        """6.1: chunks of 128, segments of 8 chunks, segments ascending."""
        a, w = a.astype(F32), w.astype(F32)
        chunk = self._exact_chunk if exact_class else self._float_chunk
        total, count = None, a.shape[-1]
        for segment in range(0, count, 1024):
            part = None
            for begin in range(segment, min(segment + 1024, count), 128):
                end = min(begin + 128, count)
                p = chunk(a[..., begin:end], w[:, begin:end])
                part = p if part is None else part + p
            total = part if total is None else total + part
        return total

    @staticmethod
    def _float_chunk(a, w):
        """6.2-6.4: k ascending from +0, product rounded, then the sum (exact products are the
        same fused or not)."""
        p = np.zeros(a.shape[:-1] + (w.shape[0],), F32)
        for k in range(a.shape[-1]):
            p += a[..., k, None] * w[:, k]
        return p

    @staticmethod
    def _exact_chunk(a, w):
        """6.5: exact sums of 32 (float64 holds them), each rounded to f32, added in order."""
        p = None
        for begin in range(0, a.shape[-1], 32):
            wide = a[..., begin:begin + 32].astype(np.float64)
            b = (wide @ w[:, begin:begin + 32].astype(np.float64).T).astype(F32)
            p = b if p is None else p + b
        return p

    def sum(self, x, axis=-1):
        """7: segments of 4096, 32 lanes ascending, then the tree of halves."""
        x = np.moveaxis(np.asarray(x, dtype=F32), axis, -1)
        total = None
        for begin in range(0, x.shape[-1], 4096):
            part = self._segment(x[..., begin:begin + 4096])
            total = part if total is None else total + part
        return total

    @staticmethod
    def _segment(x):
        lanes = np.zeros(x.shape[:-1] + (32,), F32)
        for begin in range(0, x.shape[-1], 32):
            row = x[..., begin:begin + 32]
            lanes[..., :row.shape[-1]] += row
        for half in (16, 8, 4, 2, 1):
            lanes = lanes[..., :half] + lanes[..., half:2 * half]
        return lanes[..., 0]

    def sequential(self, x):
        total = np.zeros(x.shape[:-1], F32)
        for i in range(x.shape[-1]):
            total = total + x[..., i]
        return total

    def sum4(self, x, axis):
        a, b, c, d = np.split(x, 4, axis=axis)
        return (a + b) + (c + d)

    def exp(self, x):
        """9.2, for any x; results below the threshold are +0."""
        x = np.asarray(x, dtype=F32)
        a = bits(np.abs(x))
        xc = np.where(a > 0x42cfffff, F32(0), x)
        magic = f32_from_bits(0x4b400000)
        km = xc * f32_from_bits(0x3fb8aa3b) + magic
        kf = km - magic
        big = xc - kf * f32_from_bits(0x3f318000)
        small = kf * f32_from_bits(0xb95e8083)
        r = big - small
        p = self.EXP_POLY[0]
        for c in self.EXP_POLY[1:]:
            p = p * r + c
        q = p * (r * r)
        h = F32(1) + r
        e = (big - (h - F32(1))) - small
        y = h + (e + q)
        word = bits(y) + ((bits(km) - np.uint32(0x4b400000)) << np.uint32(23))
        out = word.view(F32)
        out = np.where((x > 0) & (a > 0x42b17217), F32(np.inf), out)
        return np.where((x < 0) & (a > 0x42aeac4f), F32(0), out)

    def log1p01(self, t):
        """9.3, t in [0, 1]."""
        hi = bits(t) > 0x3ed413cd
        f = np.where(hi, (t - F32(1)) * F32(0.5), t)
        c = np.where(hi, f32_from_bits(0x3f317218), F32(0))
        d = np.where(hi, f32_from_bits(0xb102e308), F32(0))
        z = f * f
        p = self.LOG_POLY[0]
        for coefficient in self.LOG_POLY[1:]:
            p = p * f + coefficient
        y = (f * z) * p + d
        y = y - F32(0.5) * z
        return c + (f + y)

    def softplus(self, x):
        x = np.asarray(x, dtype=F32)
        return np.where(np.signbit(x), F32(0), x) + self.log1p01(self.exp(-np.abs(x)))

    def sigmoid(self, x):
        x = np.asarray(x, dtype=F32)
        t = self.exp(-np.abs(x))
        return np.where(np.signbit(x), t, F32(1)) / (F32(1) + t)
