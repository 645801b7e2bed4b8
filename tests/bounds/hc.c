/* Hyper-connections.
 *
 * z: mix' = mix r has error u |mix r| (and t where it is cleaned away), its product with scale and
 * the sum with base round once each. pre, post: the sigmoid is monotone, so the interval of z gives
 * one of sigmoid; its own error is 2.41 ulp (numerics 9.3); + eps rounds once.
 * comb: the softmax by intervals, in logarithms of the entries. A step divides by (sum + eps): in
 * logarithms, e'[i] = e[i] - sum_j w[j] e[j] with w = entry / (sum + eps), plus u for the division
 * and g(3) common to the four entries for their sum. The derivative of one result by all errors
 * before it follows by running the steps backwards (adjoint), so every local error is multiplied by
 * what it really does to the result; 40 B^2 bounds the terms of second order of a total B. No entry
 * is above 1, so 1 bounds every error. collapse: a term meets 4 roundings, expand: 5. */
#include "tests/bounds/bounds.h"

enum { STREAMS = 4, ENTRIES = 16, MIXES = 24, STEPS_MAX = 64 };

typedef struct interval {
    real exact, error;
} interval;

/* ---- z, pre, post ---- */

static interval mixing_value(const bounds_case *c, uint64_t t, uint32_t o)
{
    const real mix = (real)bounds_in(c, 0, t * MIXES + o), r = (real)bounds_in(c, 1, t);
    const real scale = (real)bounds_in(c, 2, o < 4 ? 0 : o < 8 ? 1 : 2);
    const real base = (real)bounds_in(c, 3, o), m = mix * r;
    real error = BOUNDS_U * fabsl(m);
    interval z;

    if (fabsl(m) - error < BOUNDS_TAU)
        error += BOUNDS_TAU;
    error = error * fabsl(scale) + BOUNDS_U * (fabsl(m) + error) * fabsl(scale);
    z.exact = m * scale + base;
    z.error = error + BOUNDS_U * (fabsl(z.exact) + error);
    return z;
}

static interval sigmoid_of(interval z)
{
    const real s = bounds_sigmoid(z.exact), high = bounds_sigmoid(z.exact + z.error) - s;
    const real low = s - bounds_sigmoid(z.exact - z.error), spread = high > low ? high : low;

    return (interval){s, spread + BOUNDS_ULPS(2.41L) * (s + spread) + 0x1p-126L};
}

/* ---- comb ---- */

typedef struct sinkhorn {
    real entry[STEPS_MAX + 1][ENTRIES];          /* before each step; the last: the result */
    real error[ENTRIES];                         /* logarithmic, of entry[0] */
    uint32_t steps;                              /* even: columns, odd: rows */
} sinkhorn;

/* Index of element `i` of line `line` in a step over columns or rows. */
static uint32_t at(uint32_t step, uint32_t line, uint32_t i)
{
    return step % 2 == 0 ? i * STREAMS + line : line * STREAMS + i;
}

/* exp(z_k - max) / sum + eps of one row, as interval. */
static void softmax_row(const interval *z, real eps, real *entry, real *error)
{
    real max = z[0].exact, max_error = 0.0L, sum = 0.0L, low_sum = 0.0L, high_sum = 0.0L;
    real low[STREAMS], high[STREAMS];
    const real f = BOUNDS_ULPS(0.71L), g = bounds_gamma(2);

    for (uint32_t k = 0; k < STREAMS; k++) {
        max = z[k].exact > max ? z[k].exact : max;
        max_error = z[k].error > max_error ? z[k].error : max_error;
    }
    for (uint32_t k = 0; k < STREAMS; k++) {
        const real d = z[k].exact - max, moved = z[k].error + max_error;
        const real spread = moved + BOUNDS_U * (fabsl(d) + moved);

        entry[k] = expl(d);
        low[k] = expl(d - spread) * (1.0L - f) - 0x1p-126L;
        low[k] = low[k] > 0.0L ? low[k] : 0.0L;
        high[k] = (d + spread < 0.0L ? expl(d + spread) : 1.0L) * (1.0L + f) + 0x1p-126L;
        sum += entry[k];
        low_sum += low[k] * (1.0L - g);
        high_sum += high[k] * (1.0L + g);
    }
    for (uint32_t k = 0; k < STREAMS; k++) {
        const real smallest = low[k] / high_sum + eps;
        const real up = high[k] / (low_sum > 1.0L - f ? low_sum : 1.0L - f) + eps;

        entry[k] = entry[k] / sum + eps;
        error[k] = logl(up / entry[k]);
        if (logl(entry[k] / smallest) > error[k])
            error[k] = logl(entry[k] / smallest);
        error[k] += bounds_gamma(2);
    }
}

static void run_sinkhorn(sinkhorn *s, real eps)
{
    for (uint32_t step = 0; step < s->steps; step++)
        for (uint32_t line = 0; line < STREAMS; line++) {
            real sum = eps;

            for (uint32_t i = 0; i < STREAMS; i++)
                sum += s->entry[step][at(step, line, i)];
            for (uint32_t i = 0; i < STREAMS; i++)
                s->entry[step + 1][at(step, line, i)] = s->entry[step][at(step, line, i)] / sum;
        }
}

/* Bound of the logarithmic error of result `out`. */
static real comb_error(const sinkhorn *s, uint32_t out, real eps)
{
    real g[ENTRIES] = {0}, bound = 0.0L;

    g[out] = 1.0L;
    for (uint32_t step = s->steps; step-- > 0;)
        for (uint32_t line = 0; line < STREAMS; line++) {
            real sum = eps, all = 0.0L;

            for (uint32_t i = 0; i < STREAMS; i++) {
                sum += s->entry[step][at(step, line, i)];
                all += g[at(step, line, i)];
                bound += fabsl(g[at(step, line, i)]) * BOUNDS_U;
            }
            bound += fabsl(all) * bounds_gamma(3);
            for (uint32_t i = 0; i < STREAMS; i++)
                g[at(step, line, i)] -= s->entry[step][at(step, line, i)] / sum * all;
        }
    for (uint32_t i = 0; i < ENTRIES; i++)
        bound += fabsl(g[i]) * s->error[i];
    return bound + 40.0L * bound * bound;
}

static void check_comb(bounds_case *c, uint64_t t, const interval *z)
{
    const iso_hc_params *params = (const void *)c->call.params;
    const real eps = (real)params->eps;
    sinkhorn s = {.steps = 2 * params->iterations - 1};

    ISO_ASSERT(s.steps <= STEPS_MAX);
    for (uint32_t j = 0; j < STREAMS; j++)
        softmax_row(z + j * STREAMS, eps, s.entry[0] + j * STREAMS, s.error + j * STREAMS);
    run_sinkhorn(&s, eps);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const real exact = s.entry[s.steps][i], bound = comb_error(&s, i, eps);

        bounds_stored(c, 2, t * ENTRIES + i, exact, bound < 0.5L ? exact * expm1l(bound) : 1.0L);
    }
}

void bounds_hc_split(bounds_case *c)
{
    const iso_hc_params *params = (const void *)c->call.params;
    const real eps = (real)params->eps;

    for (uint64_t t = 0; t < c->rows; t++) {
        interval z[MIXES];

        for (uint32_t o = 0; o < MIXES; o++)
            z[o] = mixing_value(c, t, o);
        for (uint32_t j = 0; j < STREAMS; j++) {
            const interval pre = sigmoid_of(z[j]), post = sigmoid_of(z[STREAMS + j]);
            const real sum = pre.exact + eps;

            bounds_stored(c, 0, t * STREAMS + j, sum,
                          pre.error + BOUNDS_U * (sum + pre.error));
            bounds_stored(c, 1, t * STREAMS + j, 2.0L * post.exact, 2.0L * post.error);
        }
        check_comb(c, t, z + 2 * STREAMS);
    }
}

/* ---- collapse, expand ---- */

void bounds_hc_collapse(bounds_case *c)
{
    const int64_t dim = bounds_extent(c, 0, 2);
    const double *x = bounds_decode(c, 0), *pre = bounds_decode(c, 1);

    for (int64_t i = 0; i < c->rows * dim; i++) {
        const int64_t t = i / dim, d = i % dim;
        real sum = 0.0L, size = 0.0L;

        for (int64_t s = 0; s < STREAMS; s++) {
            const real term = (real)pre[t * STREAMS + s] * (real)x[(t * STREAMS + s) * dim + d];

            sum += term;
            size += fabsl(term);
        }
        bounds_stored(c, 0, (uint64_t)i, sum, bounds_gamma(4) * size);
    }
}

void bounds_hc_expand(bounds_case *c)
{
    const int64_t dim = bounds_extent(c, 0, 1);
    const double *u = bounds_decode(c, 0), *x = bounds_decode(c, 1);
    const double *post = bounds_decode(c, 2), *comb = bounds_decode(c, 3);

    for (int64_t i = 0; i < c->rows * STREAMS * dim; i++) {
        const int64_t t = i / dim / STREAMS, j = i / dim % STREAMS, d = i % dim;
        const real own = (real)post[t * STREAMS + j] * (real)u[t * dim + d];
        real sum = own, error = bounds_gamma(2) * fabsl(own);

        for (int64_t s = 0; s < STREAMS; s++) {
            const real term = (real)comb[(t * STREAMS + s) * STREAMS + j]
                            * (real)x[(t * STREAMS + s) * dim + d];

            sum += term;
            error += bounds_gamma(5) * fabsl(term);
        }
        bounds_stored(c, 0, (uint64_t)i, sum, error);
    }
}
