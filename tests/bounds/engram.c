/* Engram.
 *
 * engram_hash: equal to a 128-bit evaluation. engram_gate: t_i = (h_i w_i) key_i rounds once (h w
 * is exact) and is cleaned, as is w_i; the sum has error E = g(d + 1) sum |t_i| + n t + dropped w;
 * dot = sum * (r_h r_k) * n^-1/2 has relative error 2 mean_rsqrt + g(4) on top. gate(dot) =
 * sigmoid(sign sqrt(max(|dot|, 1e-6))) does not decrease, so it lies between gate(dot - e) and
 * gate(dot + e); the square root rounds once (its error u a moves the sigmoid by at most a u / 4),
 * the sigmoid has 2.41 ulp. h + gate value: the product and the sum round once each. A gate is in
 * (0, 1): 1 bounds its error. */
#include "tests/bounds/bounds.h"

__extension__ typedef unsigned __int128 wide;

void bounds_engram_hash(bounds_case *c)
{
    const iso_engram_params *params = (const void *)c->call.params;
    const int64_t window = bounds_extent(c, 0, 1), heads = params->heads;
    const uint32_t *mult = c->in[1], *prime = c->in[2], *offset = c->in[3];

    for (int64_t t = 0; t < c->rows; t++) {
        const int32_t *history = (const int32_t *)c->in[0] + t * window;
        int64_t alive = 0;

        while (alive < window && history[alive] >= 0)
            alive++;
        for (int64_t column = 0; column < (window - 1) * heads; column++) {
            uint64_t x = 0;

            for (int64_t i = 0; i <= column / heads + 1; i++) {
                const wide m = (wide)mult[2 * i + 1] << 32 | mult[2 * i];
                const wide id = (wide)(i < alive ? history[i] : params->pad);

                x ^= (uint64_t)(id * m % ((wide)1 << 64));
            }
            bounds_same(c, 0, (uint64_t)(t * (window - 1) * heads + column),
                        (int64_t)(uint32_t)((wide)x % prime[column] + offset[column]));
        }
    }
}

/* ---- gate ---- */

static real gate_of(real d)
{
    const real a = sqrtl(fmaxl(fabsl(d), (real)1e-6f));

    return bounds_sigmoid(d < 0.0L ? -a : a);
}

typedef struct gate {
    real exact, error;
} gate;

static gate find_gate(const bounds_case *c, const double *h, const double *key, const double *qw,
                      const double *kw)
{
    const iso_norm_params *params = (const void *)c->call.params;
    const int64_t n = bounds_extent(c, 0, 2);
    const real eps = (real)params->eps, rest = 2.0L * bounds_mean_rsqrt_error(n) + bounds_gamma(4);
    const real r = bounds_mean_rsqrt(h, n, eps) * bounds_mean_rsqrt(key, n, eps) / sqrtl((real)n);
    real sum = 0.0L, size = 0.0L, dropped = 0.0L, d, e, middle;
    gate g;

    for (int64_t i = 0; i < n; i++) {
        const real w = (real)(qw[i] * kw[i]), t = (real)(h[i] * key[i]) * w;

        sum += t;
        size += fabsl(t);
        dropped += fabsl(w) < BOUNDS_TAU ? fabsl(t)
                 : fabsl(t) < 2.0L * BOUNDS_TAU ? fminl(fabsl(t), BOUNDS_TAU) : 0.0L;
    }
    d = sum * r;
    e = (bounds_gamma(bounds_row_depth(n) + 1.0L) * size + dropped) * r;
    e += (fabsl(d) + e) * rest;
    if (fabsl(d) - e < BOUNDS_TAU)
        e += BOUNDS_TAU;
    middle = gate_of(d);
    g.exact = middle;
    g.error = fmaxl(gate_of(d + e) - middle, middle - gate_of(d - e));
    g.error += sqrtl(fmaxl(fabsl(d) + e, (real)1e-6f)) * BOUNDS_U / 4.0L;
    g.error += BOUNDS_ULPS(2.41L) * (middle + g.error);
    g.error = fminl(g.error, 1.0L);
    return g;
}

void bounds_engram_gate(bounds_case *c)
{
    const int64_t streams = bounds_extent(c, 0, 1), n = bounds_extent(c, 0, 2);
    const double *x = bounds_decode(c, 0), *kv = bounds_decode(c, 1);
    const double *qw = bounds_decode(c, 2), *kw = bounds_decode(c, 3);

    for (int64_t unit = 0; unit < c->rows * streams; unit++) {
        const int64_t t = unit / streams, s = unit % streams;
        const double *row = kv + t * (streams + 1) * n, *value = row + streams * n;
        gate g;

        if (bounds_has(c, 4) && bounds_int(c, 4, (uint64_t)t) != 0) {
            for (int64_t i = unit * n; i < (unit + 1) * n; i++)
                bounds_same_bits(c, 0, (uint64_t)i, ((const uint16_t *)c->in[0])[i]);
            continue;
        }
        g = find_gate(c, x + unit * n, row + s * n, qw + s * n, kw + s * n);
        for (int64_t i = 0; i < n; i++) {
            const real v = (real)value[i], exact = (real)x[unit * n + i] + g.exact * v;
            real e = g.error * fabsl(v);

            e += BOUNDS_U * (g.exact * fabsl(v) + e);
            bounds_stored(c, 0, (uint64_t)(unit * n + i), exact, e + BOUNDS_U * (fabsl(exact) + e));
        }
    }
}
