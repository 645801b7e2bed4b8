/* Experts.
 *
 * route: l = logit / temperature has error u |l| (none at temperature 1; t where cleaned);
 * softplus has slope <= sigmoid, so its error is sigmoid(l + e) e + 1.71 ulp; a square root of
 * p +- e lies in [sqrt(p - e), sqrt(p + e)] and rounds once; a score below 2^-50 may be cleaned
 * away (t). The key adds the bias: one more rounding. The chosen set is right when no key that was
 * left out is above a chosen one by more than both errors, and of equal logits and biases the lower
 * is taken. Weights: score / (sum + tiny) * scale with g(k + 1) for the sum, u for the division, u
 * for the product; a weight is at most scale, so 1.01 scale bounds every error.
 * swiglu: sigmoid 2.41 ulp, three products. moe_sum: k adds, the first to +0: g(k) sum |y|. */
#include "tests/bounds/bounds.h"

typedef struct expert_score {
    real exact, error;
} expert_score;

static expert_score score_of(real logit, real temperature)
{
    const real l = logit / temperature;
    const real slip = (temperature != 1.0L ? BOUNDS_U * fabsl(l) : 0.0L)
                    + (fabsl(l) < 2.0L * BOUNDS_TAU ? BOUNDS_TAU : 0.0L);
    const real p = bounds_softplus(l);
    const real e = slip * bounds_sigmoid(l + slip) + BOUNDS_ULPS(1.71L) * p + 0x1p-126L;
    const real s = sqrtl(p), low = p > e ? sqrtl(p - e) : 0.0L;
    real error = fmaxl(sqrtl(p + e) - s, s - low);

    error += BOUNDS_U * (s + error);
    if (s - error < BOUNDS_TAU)
        error += BOUNDS_TAU;
    return (expert_score){s, error};
}

/* The bias row that a token uses: input 1, or 2 at an image position. */
static uint32_t bias_input(const bounds_case *c, int64_t t)
{
    return bounds_has(c, 3) && bounds_int(c, 3, (uint64_t)t) != 0 ? 2 : 1;
}

typedef struct candidate {
    real key, error;
    double logit, bias;
    bool is_chosen;
} candidate;

static void check_choice(bounds_case *c, int64_t t, const candidate *list, int64_t experts)
{
    for (int64_t a = 0; a < experts; a++)
        for (int64_t b = 0; b < experts && list[a].is_chosen; b++) {
            const bool is_equal = list[a].logit == list[b].logit && list[a].bias == list[b].bias;
            bool is_right;

            if (list[b].is_chosen)
                continue;
            is_right = is_equal ? a < b
                                : list[a].key + list[a].error >= list[b].key - list[b].error;
            c->score->same_values++;
            if (!is_right)
                bounds_close(c, (uint64_t)(t * experts + a), list[a].key, list[b].key, 0.0L);
        }
}

static void check_weights(bounds_case *c, int64_t t, const int32_t *ids, const expert_score *score)
{
    const iso_route_params *params = (const void *)c->call.params;
    const real scale = (real)params->scale, cap = 1.01L * scale;
    const int64_t k = params->count;
    real sum = (real)params->tiny, error = 0.0L;

    for (int64_t i = 0; i < k; i++) {
        sum += score[ids[i]].exact;
        error += score[ids[i]].error;
    }
    error += bounds_gamma((real)k) * (sum + error);
    for (int64_t i = 0; i < k; i++) {
        const real s = score[ids[i]].exact, exact = s / sum * scale;
        real e = cap;

        if (error < 0.5L * sum)
            e = (score[ids[i]].error + s / sum * error) / (sum - error) * scale;
        e += bounds_gamma(2) * (exact + e);
        bounds_stored(c, 1, (uint64_t)(t * k + i), exact, e < cap ? e : cap);
    }
}

void bounds_route(bounds_case *c)
{
    enum { EXPERTS_MAX = 1024 };
    const iso_route_params *params = (const void *)c->call.params;
    const int64_t experts = bounds_extent(c, 0, 1), k = params->count;
    static expert_score score[EXPERTS_MAX];
    static candidate list[EXPERTS_MAX];

    for (int64_t t = 0; t < c->rows; t++) {
        const int32_t *ids = (const int32_t *)c->out[0] + t * k;

        for (int64_t e = 0; e < experts; e++) {
            const double logit = bounds_in(c, 0, (uint64_t)(t * experts + e));
            const double bias = bounds_in(c, bias_input(c, t), (uint64_t)e);

            score[e] = score_of((real)logit, (real)params->temperature);
            list[e] = (candidate){score[e].exact + (real)bias, score[e].error, logit, bias, false};
            list[e].error += BOUNDS_U * (fabsl(list[e].key) + list[e].error);
            if (fabsl(list[e].key) - list[e].error < BOUNDS_TAU)
                list[e].error += BOUNDS_TAU;
        }
        for (int64_t i = 0; i < k; i++) {
            ISO_ASSERT(ids[i] >= 0 && ids[i] < experts && (i == 0 || ids[i] > ids[i - 1]));
            list[ids[i]].is_chosen = true;
        }
        check_choice(c, t, list, experts);
        check_weights(c, t, ids, score);
    }
}

void bounds_swiglu(bounds_case *c)
{
    const iso_swiglu_params *params = (const void *)c->call.params;
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t dim = iso_desc_last(desc);
    const int64_t per_row = desc->extent[0] != 0 ? iso_desc_rows(desc) / desc->extent[0] : 0;
    const real limit = (real)params->limit;

    for (int64_t i = 0; i < c->rows * per_row * dim; i++) {
        const real g = fminl((real)bounds_in(c, 0, (uint64_t)i), limit);
        const real u = fmaxl(fminl((real)bounds_in(c, 1, (uint64_t)i), limit), -limit);
        const real w = bounds_has(c, 2) ? (real)bounds_in(c, 2, (uint64_t)(i / dim)) : 1.0L;
        const real exact = w * g * bounds_sigmoid(g) * u;
        const real factor = (BOUNDS_ULPS(2.41L) + bounds_gamma(bounds_has(c, 2) ? 3 : 2))
                          * (1.0L + 0x1p-10L);

        bounds_stored(c, 0, (uint64_t)i, exact,
                      fabsl(exact) * factor + 0x1p-126L * fabsl(g * u * w));
    }
}

void bounds_moe_sum(bounds_case *c)
{
    const int64_t picks = bounds_extent(c, 0, 1), dim = bounds_extent(c, 0, 2);

    for (int64_t i = 0; i < c->rows * dim; i++) {
        const int64_t t = i / dim, d = i % dim;
        real sum = (real)bounds_in(c, 1, (uint64_t)i), size = fabsl(sum);

        for (int64_t e = 0; e < picks; e++) {
            const real y = (real)bounds_in(c, 0, (uint64_t)((t * picks + e) * dim + d));

            sum += y;
            size += fabsl(y);
        }
        bounds_stored(c, 0, (uint64_t)i, sum, bounds_gamma((real)picks) * size);
    }
}
