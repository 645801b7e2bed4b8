/* attend and compress_pool: softmax-weighted sums.
 *
 * attend, with m the exact maximum, w_j = exp(s_j - m), N = sum w_j V_j, D = sum w_j + w_sink:
 * the score has error e_j = scale g(n) sum |q K_j| + u |s_j| (n: dot depth; t where it is cleaned).
 * exp(s_j - max_b) exp(max_b - max) is exp(s_j - max) with relative error exp(e_j + u (max - s_j) +
 * 2 * 0.71 ulp) - 1; the common factor exp(m - max) cancels in N / D. Where a factor can fall below
 * 2^-50, clean may drop the whole term: 2 t. Numerator: bf16 weights v, at most 63 adds in a block,
 * the factor of the block, one add per further block; denominator: row_sum of 64 (6), the factor,
 * the blocks and the sink. Then |out - N/D| <= (dN + |N/D| dD) / (D - dD), the division u. Both are
 * sub-convex sums of the V_j, so 2 max |V_j| (1 + v) bounds every error.
 * compress_pool: the same with a plain sum and cleaned weights: w_i has relative error
 * exp(u |d_i| + 0.71 ulp) - 1 from e_i, the same of the largest for l, g(m) for the sum, u for the
 * division; y adds g(m + 1) sum |v w|. Where e_i or w_i can be cleaned away: t each. */
#include "tests/bounds/bounds.h"

enum { KEYS_MAX = 2048, BLOCK = 64 };

/* Beyond this distance from the maximum a weight is below 2^-52. */
#define FAR 36.1L
#define NEAR 34.0L

typedef struct key_list {
    const double *row[KEYS_MAX];
    int64_t count, blocks;
} key_list;

typedef struct tables {
    const double *q, *ring, *pend, *kv;
    int64_t dim;
} tables;

static double *scaled(bounds_case *c, uint32_t code, uint32_t scale, int64_t group)
{
    const int64_t count = bounds_has(c, code) ? iso_desc_elems(&c->call.in[code]) : 0;
    double *value = bounds_has(c, code) ? bounds_decode(c, code) : NULL;

    for (int64_t i = 0; i < count; i++)
        value[i] *= bounds_in(c, scale, (uint64_t)(i / group));
    return value;
}

/* Raw positions max(p - window + 1, 0) .. p, then the selected entries. */
static void gather(const bounds_case *c, const tables *v, int64_t t, key_list *keys)
{
    const iso_attend_params *params = (const void *)c->call.params;
    const int32_t *rows = c->in[9], *seq = (const int32_t *)c->in[10] + 4 * rows[2 * t];
    const int64_t p = rows[2 * t + 1], window = params->window;
    const int64_t lo = p - window + 1 > 0 ? p - window + 1 : 0;
    const int64_t picks = bounds_has(c, 8) ? bounds_extent(c, 8, 1) : 0;
    int64_t picked = 0;

    keys->count = 0;
    for (int64_t i = lo; i <= p; i++)
        keys->row[keys->count++] = i >= seq[1] ? v->pend + (seq[2] + i - seq[1]) * v->dim
                                               : v->ring + (seq[0] * window + i % window) * v->dim;
    for (; picked < picks && ((const int32_t *)c->in[8])[t * picks + picked] >= 0; picked++) {
        const int64_t entry = ((const int32_t *)c->in[8])[t * picks + picked];
        const int64_t page_rows = params->page_rows;
        const int64_t page = ((const int32_t *)c->in[7])[rows[2 * t] * bounds_extent(c, 7, 1)
                                                         + entry / page_rows];

        keys->row[keys->count++] = v->kv + (page * page_rows + entry % page_rows) * v->dim;
    }
    ISO_ASSERT(keys->count <= KEYS_MAX);
    keys->blocks = p / BLOCK - lo / BLOCK + 1 + (picked + BLOCK - 1) / BLOCK;
}

/* Of one head: scores, their errors, weights relative to the maximum and their errors. */
typedef struct weights {
    real s[KEYS_MAX], e[KEYS_MAX], w[KEYS_MAX], relative[KEYS_MAX], dropped[KEYS_MAX];
    real sink, sink_relative, sink_dropped;
    real max, max_error;
} weights;

static void score_keys(const key_list *keys, const double *q, int64_t dim, real scale, weights *w)
{
    const real g = bounds_gamma(bounds_dot_depth(dim));

    for (int64_t j = 0; j < keys->count; j++) {
        real sum = 0.0L, size = 0.0L;

        for (int64_t i = 0; i < dim; i++) {
            sum += (real)(q[i] * keys->row[j][i]);
            size += (real)fabs(q[i] * keys->row[j][i]);
        }
        w->s[j] = sum * scale;
        w->e[j] = scale * g * size * (1.0L + BOUNDS_U) + BOUNDS_U * fabsl(w->s[j]);
        if (fabsl(w->s[j]) - w->e[j] < BOUNDS_TAU)
            w->e[j] += BOUNDS_TAU;
        w->max = j == 0 || w->s[j] > w->max ? w->s[j] : w->max;
        w->max_error = j == 0 || w->e[j] > w->max_error ? w->e[j] : w->max_error;
    }
}

/* exp(-distance) with a logarithmic error: the relative part, or what clean may drop. */
static real weight_of(real distance, real error, real *relative, real *dropped)
{
    *relative = *dropped = 0.0L;
    if (distance - error > FAR) {
        *dropped = 2.0L * BOUNDS_TAU;
        return expl(-distance);
    }
    *relative = error < 50.0L ? expm1l(error) : 0x1p80L;
    if (distance + error > NEAR)
        *dropped = 2.0L * BOUNDS_TAU;
    return expl(-distance);
}

static void weigh_keys(const key_list *keys, const double *sink, weights *w)
{
    const real f = BOUNDS_ULPS(0.71L) * (1.0L + 0x1p-10L);

    if (sink != NULL && (real)*sink > w->max)
        w->max = (real)*sink;
    for (int64_t j = 0; j < keys->count; j++) {
        const real distance = w->max - w->s[j];
        const real error = w->e[j] + BOUNDS_U * (distance + 2.0L * w->max_error) + 2.0L * f;

        w->w[j] = weight_of(distance, error, &w->relative[j], &w->dropped[j]);
    }
    w->sink = w->sink_relative = w->sink_dropped = 0.0L;
    if (sink != NULL)
        w->sink = weight_of(w->max - (real)*sink,
                            BOUNDS_U * (w->max - (real)*sink + w->max_error) + f,
                            &w->sink_relative, &w->sink_dropped);
}

/* D and its error; the sums of numerics 12.2. */
static real denominator(const key_list *keys, const weights *w, real unit, real *error)
{
    const real g = bounds_gamma(6 + 1 + (real)keys->blocks);
    real sum = w->sink;

    *error = w->sink * (w->sink_relative + bounds_gamma(1)) + w->sink_dropped * unit;
    for (int64_t j = 0; j < keys->count; j++) {
        sum += w->w[j];
        *error += w->w[j] * (w->relative[j] + g * (1.0L + w->relative[j]));
        *error += w->dropped[j] * unit;
    }
    return sum;
}

static void check_channel(bounds_case *c, uint64_t index, const key_list *keys, const weights *w,
                          int64_t channel, const real d[3])
{
    const real rounded = BOUNDS_V + bounds_gamma(63 + 1 + (real)keys->blocks) * (1.0L + BOUNDS_V);
    real sum = 0.0L, error = BOUNDS_TAU * (real)keys->blocks * d[2], size = 0.0L, exact;

    for (int64_t j = 0; j < keys->count; j++) {
        const real value = (real)keys->row[j][channel];

        sum += w->w[j] * value;
        error += w->w[j] * fabsl(value) * (w->relative[j] + rounded * (1.0L + w->relative[j]));
        error += w->dropped[j] * d[2] * fabsl(value);
        size = fabsl(value) > size ? fabsl(value) : size;
    }
    exact = sum / d[0];
    error = d[1] < 0.5L * d[0] ? (error + fabsl(exact) * d[1]) / (d[0] - d[1])
                               : 2.0L * size * (1.0L + BOUNDS_V);
    if (!(error < 2.0L * size * (1.0L + BOUNDS_V)))
        error = 2.0L * size * (1.0L + BOUNDS_V);
    bounds_stored(c, 0, index, exact, error + BOUNDS_U * (fabsl(exact) + error));
}

void bounds_attend(bounds_case *c)
{
    const iso_attend_params *params = (const void *)c->call.params;
    const int64_t heads = bounds_extent(c, 0, 1), dim = bounds_extent(c, 0, 2);
    const tables v = {bounds_decode(c, 0), scaled(c, 1, 2, 32), scaled(c, 3, 4, 32),
                      scaled(c, 5, 6, 16), dim};
    const double *sink = bounds_has(c, 11) ? bounds_decode(c, 11) : NULL;
    static key_list keys;
    static weights w;

    for (int64_t t = 0; t < c->rows; t++) {
        gather(c, &v, t, &keys);
        for (int64_t h = 0; h < heads; h++) {
            const int64_t unit = t * heads + h;
            real d[3];                            /* D, its error, exp(max - m) at most */

            score_keys(&keys, v.q + unit * dim, dim, (real)params->scale, &w);
            weigh_keys(&keys, sink != NULL ? sink + h : NULL, &w);
            d[2] = w.max_error < 1.0L ? expl(w.max_error) : 0x1p80L;
            d[0] = denominator(&keys, &w, d[2], &d[1]);
            for (int64_t i = 0; i < dim; i++)
                check_channel(c, (uint64_t)(unit * dim + i), &keys, &w, i, d);
        }
    }
}

/* ---- compress_pool ---- */

/* Element `channel` of member i of a group, v (inputs 0, 2) or g (1, 3). */
static real member(const bounds_case *c, uint32_t group, uint32_t i, uint32_t which,
                   int64_t channel)
{
    const iso_pool_params *params = (const void *)c->call.params;
    const int32_t *g = (const int32_t *)c->in[4] + 2 * group;
    const int32_t *seq = (const int32_t *)c->in[5] + 4 * g[0];
    const int64_t m = params->ratio, position = g[1] * m + i, dim = bounds_extent(c, 0, 1);
    const bool is_own = position >= seq[1];
    const int64_t row = is_own ? seq[2] + position - seq[1] : seq[0] * m + position % m;

    return (real)bounds_in(c, which + (is_own ? 0 : 2), (uint64_t)(row * dim + channel));
}

static void check_pool(bounds_case *c, uint32_t group, int64_t channel)
{
    enum { MEMBERS_MAX = 128 };
    const iso_pool_params *params = (const void *)c->call.params;
    const uint32_t m = params->ratio;
    real w[MEMBERS_MAX], relative[MEMBERS_MAX], dropped[MEMBERS_MAX];
    real max = -INFINITY, sum = 0.0L, sum_error = 0.0L, y = 0.0L, size = 0.0L, error = 0.0L;

    for (uint32_t i = 0; i < m; i++)
        max = fmaxl(max, member(c, group, i, 1, channel));
    for (uint32_t i = 0; i < m; i++) {
        const real distance = max - member(c, group, i, 1, channel);
        const real e = BOUNDS_U * distance + BOUNDS_ULPS(0.71L) * (1.0L + 0x1p-10L);

        w[i] = weight_of(distance, e, &relative[i], &dropped[i]);
        sum += w[i];
        sum_error += w[i] * relative[i] + dropped[i];
    }
    sum_error += bounds_gamma(m) * (sum + sum_error);
    for (uint32_t i = 0; i < m; i++) {
        const real v = member(c, group, i, 0, channel), exact = w[i] / sum;
        const real w_error = (w[i] * relative[i] + dropped[i] + exact * sum_error)
                           / (sum - sum_error);
        const real all = w_error + BOUNDS_U * (exact + w_error)
                       + (exact - w_error < 2.0L * BOUNDS_TAU ? BOUNDS_TAU : 0.0L);

        y += v * exact;
        error += fabsl(v) * all;
        size += fabsl(v) * (exact + all);
    }
    bounds_stored(c, 0, (uint64_t)(group * bounds_extent(c, 0, 1) + channel), y,
                  error + bounds_gamma(m + 1) * size);
}

void bounds_compress_pool(bounds_case *c)
{
    for (uint32_t group = 0; group < c->rows; group++)
        for (int64_t channel = 0; channel < bounds_extent(c, 0, 1); channel++)
            check_pool(c, group, channel);
}
