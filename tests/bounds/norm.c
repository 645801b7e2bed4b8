/* Normalisation and rotation.
 *
 * mean_rsqrt: squares are exact and not negative, so their sum has relative error g(d), d =
 * bounds_row_depth(n); the constant f32(1/n), its product and the sum with eps add three roundings.
 * The square root halves g(d + 3) and rounds, the division rounds: g((d + 3) / 2 + 2), and 2^-10 of
 * it for terms of second order. rms_norm rounds two products more. rope: two products and a sum,
 * g(2) (|a cos| + |b sin|). rope_angles: the angle is the f32 product, cos and sin of it are
 * correctly rounded: half an ulp of the exact value and not more. */
#include "tests/bounds/bounds.h"

real bounds_mean_rsqrt(const double *x, int64_t n, real eps)
{
    real sum = 0.0L;

    for (int64_t i = 0; i < n; i++)
        sum += (real)(x[i] * x[i]);
    return 1.0L / sqrtl(sum / (real)n + eps);
}

real bounds_mean_rsqrt_error(int64_t n)
{
    return bounds_gamma((bounds_row_depth(n) + 3.0L) / 2.0L + 2.0L) * (1.0L + 0x1p-10L);
}

void bounds_rms_norm(bounds_case *c)
{
    const iso_norm_params *params = (const void *)c->call.params;
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t n = iso_desc_last(desc);
    const int64_t per_row = desc->extent[0] != 0 ? iso_desc_rows(desc) / desc->extent[0] : 0;
    const double *x = bounds_decode(c, 0), *w = bounds_decode(c, 1);
    const real factor = bounds_mean_rsqrt_error(n) + bounds_gamma(2) * (1.0L + 0x1p-10L);

    for (int64_t row = 0; row < c->rows * per_row; row++) {
        const real r = bounds_mean_rsqrt(x + row * n, n, (real)params->eps);

        for (int64_t i = 0; i < n; i++) {
            const real exact = (real)x[row * n + i] * r * (real)w[i];

            bounds_stored(c, 0, (uint64_t)(row * n + i), exact, fabsl(exact) * factor);
        }
    }
}

void bounds_row_rms(bounds_case *c)
{
    const iso_norm_params *params = (const void *)c->call.params;
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t n = desc->extent[1] * desc->extent[2] * desc->extent[3];
    const double *x = bounds_decode(c, 0);

    for (int64_t t = 0; t < c->rows; t++) {
        const real r = bounds_mean_rsqrt(x + t * n, n, (real)params->eps);

        bounds_stored(c, 0, (uint64_t)t, r, r * bounds_mean_rsqrt_error(n));
    }
}

void bounds_rope(bounds_case *c)
{
    const iso_rope_params *params = (const void *)c->call.params;
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t n = iso_desc_last(desc), heads = desc->rank == 3 ? desc->extent[1] : 1;
    const int64_t pairs = bounds_extent(c, 1, 1), first = n - 2 * pairs;
    const double *x = bounds_decode(c, 0), *angles = bounds_decode(c, 1);
    const real sign = params->inverse != 0 ? -1.0L : 1.0L, g = bounds_gamma(2);

    for (int64_t i = 0; i < c->rows * heads * n; i++) {
        const int64_t lane = i % n, pair = (lane - first) / 2, even = i - (lane - first) % 2;
        real cosine, sine, a, b;

        if (lane < first) {
            bounds_same_bits(c, 0, (uint64_t)i, ((const uint16_t *)c->in[0])[i]);
            continue;
        }
        cosine = (real)angles[(i / n / heads * pairs + pair) * 2];
        sine = sign * (real)angles[(i / n / heads * pairs + pair) * 2 + 1];
        a = (real)x[even];
        b = (real)x[even + 1];
        if (i == even)
            bounds_stored(c, 0, (uint64_t)i, a * cosine - b * sine,
                          g * (fabsl(a * cosine) + fabsl(b * sine)));
        else
            bounds_stored(c, 0, (uint64_t)i, a * sine + b * cosine,
                          g * (fabsl(a * sine) + fabsl(b * cosine)));
    }
}

/* Half an ulp of binary32 at x; the values are normal. */
static real half_ulp(real x)
{
    int exponent;

    if (x == 0.0L)
        return 0.0L;
    frexpl(x, &exponent);
    return ldexpl(1.0L, exponent - 25);
}

void bounds_rope_angles(bounds_case *c)
{
    const int64_t pairs = bounds_extent(c, 1, 0);

    for (int64_t i = 0; i < c->rows * pairs; i++) {
        const float position = (float)bounds_int(c, 0, (uint64_t)(i / pairs));
        const float freq = (float)bounds_in(c, 1, (uint64_t)(i % pairs));
        const real angle = (real)(float)((double)position * (double)freq);
        const real cosine = cosl(angle), sine = sinl(angle);

        bounds_near(c, 0, (uint64_t)(2 * i), cosine, half_ulp(cosine));
        bounds_near(c, 0, (uint64_t)(2 * i + 1), sine, half_ulp(sine));
    }
}
