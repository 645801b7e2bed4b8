/* sincos: correctly rounded sine and cosine of a binary32 angle (numerics 10.2). Host only: it uses
 * binary64 + - * / without contraction, and no libm. C, not the common subset of the dialects.
 *
 * A polynomial with error below 2^-49 decides almost every result. If a rounding boundary lies
 * within that bound, a double-double series with error below 2^-60 decides; if that does not decide
 * either, the caller is told. Any other method that rounds correctly gives the same bits. */
#ifndef ISO_LANE_SINCOS_H
#define ISO_LANE_SINCOS_H

#include "ggml-style-ops/lane/lane.h"

_Static_assert(DBL_MANT_DIG == 53, "double has to be binary64");

/* A value high + low with |low| <= ulp(high) / 2. */
typedef struct lane_dd {
    double high, low;
} lane_dd;

static inline lane_dd lane_two_sum(double a, double b)           /* exact */
{
    const double s = a + b, t = s - a;

    return (lane_dd){s, (a - (s - t)) + (b - t)};
}

static inline lane_dd lane_fast_two_sum(double a, double b)      /* exact if |a| >= |b| */
{
    const double s = a + b;

    return (lane_dd){s, b - (s - a)};
}

static inline lane_dd lane_two_mul(double a, double b)           /* exact: split at 27 bits */
{
    const double p = a * b, t = a * 134217729.0, u = b * 134217729.0;
    const double ah = t - (t - a), bh = u - (u - b), al = a - ah, bl = b - bh;

    return (lane_dd){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static inline lane_dd lane_dd_add(lane_dd a, lane_dd b)
{
    const lane_dd t = lane_two_sum(a.low, b.low);
    lane_dd s = lane_two_sum(a.high, b.high);

    s = lane_fast_two_sum(s.high, s.low + t.high);
    return lane_fast_two_sum(s.high, s.low + t.low);
}

static inline lane_dd lane_dd_mul(lane_dd a, lane_dd b)
{
    const lane_dd p = lane_two_mul(a.high, b.high);

    return lane_fast_two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static inline lane_dd lane_dd_div(lane_dd a, double b)           /* b: a small integer */
{
    const double q = a.high / b;
    const lane_dd p = lane_two_mul(q, b);

    return lane_fast_two_sum(q, ((a.high - p.high) - p.low + a.low) / b);
}

/* a - n * pi/2 with n the nearest integer; pi/2 in parts of 33, 33 and 53 bits. |a| <= 2^20. */
static inline lane_dd lane_reduce(double a, int *quadrant)
{
    const double n = (a * 0x1.45f306dc9c883p-1 + 0x1.8p+52) - 0x1.8p+52;
    const double r = a - n * 0x1.921fb544p+0;                    /* exact */
    const lane_dd t = lane_two_sum(r, -(n * 0x1.0b4611a6p-34));  /* exact product and sum */

    *quadrant = (int)n & 3;
    return lane_fast_two_sum(t.high, t.low - n * 0x1.3198a2e037073p-69);
}

/* Taylor polynomials: |error| < 2^-49 of the result, for |r| <= pi/4. */
static inline double lane_sin_fast(lane_dd r)
{
    const double z = r.high * r.high;
    double p = -0x1.ae7f3e733b81fp-41;                           /* -1/15! */

    p = p * z + 0x1.6124613a86d09p-33;                           /*  1/13! */
    p = p * z - 0x1.ae64567f544e4p-26;                           /* -1/11! */
    p = p * z + 0x1.71de3a556c734p-19;                           /*  1/9!  */
    p = p * z - 0x1.a01a01a01a01ap-13;                           /* -1/7!  */
    p = p * z + 0x1.1111111111111p-7;                            /*  1/5!  */
    p = p * z - 0x1.5555555555555p-3;                            /* -1/3!  */
    return r.high + (r.high * (z * p) + r.low * (1.0 - 0.5 * z));
}

static inline double lane_cos_fast(lane_dd r)
{
    const double z = r.high * r.high;
    const lane_dd one = lane_two_sum(1.0, -0.5 * z);
    double p = 0x1.ae7f3e733b81fp-45;                            /*  1/16! */

    p = p * z - 0x1.93974a8c07c9dp-37;                           /* -1/14! */
    p = p * z + 0x1.1eed8eff8d898p-29;                           /*  1/12! */
    p = p * z - 0x1.27e4fb7789f5cp-22;                           /* -1/10! */
    p = p * z + 0x1.a01a01a01a01ap-16;                           /*  1/8!  */
    p = p * z - 0x1.6c16c16c16c17p-10;                           /* -1/6!  */
    p = p * z + 0x1.5555555555555p-5;                            /*  1/4!  */
    return one.high + (one.low + (z * z * p - r.high * r.low));
}

/* Taylor series in double-double: sine (odd) or cosine, |error| < 2^-60 of the result. */
static inline lane_dd lane_series(lane_dd r, bool is_sine)
{
    const lane_dd z = lane_dd_mul(r, r);
    const int first = is_sine ? 2 : 1;
    lane_dd term = is_sine ? r : (lane_dd){1.0, 0.0}, sum = term;

    for (int k = first; k < first + 26; k += 2) {
        term = lane_dd_mul(term, z);
        term = lane_dd_div(term, -(double)(k * (k + 1)));
        sum = lane_dd_add(sum, term);
    }
    return sum;
}

/* Rounds v to binary32 and proves it: v has to be further than |v| * error from a midpoint. */
static inline bool lane_decide(lane_dd v, double error, float *out)
{
    const float nearest = (float)v.high;
    const double d = v.high - (double)nearest;
    const double e = v.high < 0 ? -v.high * error : v.high * error;
    float next;
    double middle, t;

    *out = nearest;
    if (d == 0.0)
        return true;                              /* in the middle of the rounding interval */
    next = lane_float(lane_bits(nearest) + ((d > 0) == (nearest > 0) ? 1u : 0xffffffffu));
    middle = 0.5 * ((double)nearest + (double)next);
    t = (v.high - middle) + v.low;                /* the difference is exact */
    if (t >= -e && t <= e)
        return false;
    if ((t > 0) == (d > 0))
        *out = next;
    return true;
}

/* One rounded result; adds 1 to *slow when the series was needed; false if nothing decided. */
static inline bool lane_sin_or_cos(lane_dd r, bool is_sine, bool negate, float *out, int *slow)
{
    const double fast = is_sine ? lane_sin_fast(r) : lane_cos_fast(r);

    if (!lane_decide((lane_dd){fast, 0.0}, 0x1p-49, out)) {
        *slow += 1;
        if (!lane_decide(lane_series(r, is_sine), 0x1p-60, out))
            return false;
    }
    if (negate)
        *out = -*out;
    return true;
}

/* Both results, correctly rounded, for a = 0 or 2^-50 <= |a| <= 2^20. *slow (set) counts results
 * that took the series. False if the rounding could not be proved: never seen. */
static inline bool lane_sincos(float a, float *sine, float *cosine, int *slow)
{
    int q;
    const lane_dd r = lane_reduce((double)a, &q);

    *slow = 0;
    return lane_sin_or_cos(r, q % 2 == 0, (q & 2) != 0, sine, slow)
        && lane_sin_or_cos(r, q % 2 != 0, ((q + 1) & 2) != 0, cosine, slow);
}

#endif
