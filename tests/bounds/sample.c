/* argmax and sample: equal to a naive implementation of numerics 17 and 18 that sorts.
 *
 * The integer weights come from s_exp, written here from the listing of 9.2; each is also compared
 * with the exponential: the difference and its product with 1 / T round once each, which moves the
 * exponent by 2 u |x|, s_exp has 0.71 ulp, and truncation takes less than 1 from 2^31 exp(x). */
#include "tests/bounds/bounds.h"

#include "core/alloc.h"
#include "ggml-style-ops/sample.h"

__extension__ typedef unsigned __int128 wide;

void bounds_argmax(bounds_case *c)
{
    const int64_t dim = bounds_extent(c, 0, 1);

    for (int64_t row = 0; row < c->rows; row++) {
        int64_t best = dim - 1;

        for (int64_t i = dim - 1; i-- > 0;)
            if (bounds_in(c, 0, (uint64_t)(row * dim + i))
                >= bounds_in(c, 0, (uint64_t)(row * dim + best)))
                best = i;
        bounds_same(c, 0, (uint64_t)row, best);
    }
}

static float f32(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* Listing 9.2 for x <= 0. */
static float listed_exp(float x)
{
    static const uint32_t constant[6] = {0x3ab743ce, 0x3c088908, 0x3d2aa9c1, 0x3e2aaaaa, 0x3f000000,
                                         0};
    const uint32_t a = bits(x) & 0x7fffffffu;
    const float xc = a > 0x42cfffffu ? 0.0f : x;
    const float km = xc * f32(0x3fb8aa3b) + f32(0x4b400000), kf = km - f32(0x4b400000);
    const float high = xc - kf * f32(0x3f318000), low = kf * f32(0xb95e8083), r = high - low;
    float p = f32(0x39506967), q, h, e;

    for (int i = 0; constant[i] != 0; i++)
        p = p * r + f32(constant[i]);
    q = p * (r * r);
    h = 1.0f + r;
    e = (high - (h - 1.0f)) - low;
    if (a > 0x42aeac4fu)
        return 0.0f;
    return f32(bits(h + (e + q)) + ((bits(km) - 0x4b400000u) << 23));
}

static uint64_t philox(uint64_t seed, uint32_t position)
{
    uint32_t counter[4] = {position, 0, 0, 0}, key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * counter[0];
        const uint64_t b = (uint64_t)0xcd9e8d57u * counter[2];

        counter[0] = (uint32_t)(b >> 32) ^ counter[1] ^ key[0];
        counter[1] = (uint32_t)b;
        counter[2] = (uint32_t)(a >> 32) ^ counter[3] ^ key[1];
        counter[3] = (uint32_t)a;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return (uint64_t)counter[1] << 32 | counter[0];
}

/* ---- one row ---- */

typedef struct row {
    bounds_ranked *best;             /* tokens, best first */
    uint64_t *weight;
    int64_t dim;
} row;

static void weigh(bounds_case *c, const row *r, int64_t index, float inv)
{
    const float max = (float)r->best[0].score;

    for (int64_t i = 0; i < r->dim; i++) {
        const float logit = (float)bounds_in(c, 0, (uint64_t)(index * r->dim + i));
        const real x = ((real)logit - (real)max) * (real)inv;
        const real moved = expm1l(2.0L * BOUNDS_U * fminl(-x, 200.0L) + BOUNDS_ULPS(0.71L));

        r->weight[i] = (uint64_t)((real)listed_exp((logit - max) * inv) * 0x1p31L);
        bounds_close(c, (uint64_t)i, (real)r->weight[i], expl(x) * 0x1p31L,
                     1.0L + expl(x) * 0x1p31L * moved);
    }
}

static uint64_t total(const row *r)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < r->dim; i++)
        sum += r->weight[i];
    return sum;
}

static void filter(const row *r, uint32_t top_k, uint32_t top_p, uint32_t min_p)
{
    uint64_t sum = 0, target;

    for (int64_t i = top_k; top_k != 0 && i < r->dim; i++)
        r->weight[r->best[i].index] = 0;
    target = (uint64_t)((wide)top_p * total(r) >> 32);
    target = target == 0 ? 1 : target;
    for (int64_t i = 0; top_p != 0 && i < r->dim; i++) {
        if (sum >= target)
            r->weight[r->best[i].index] = 0;
        sum += r->weight[r->best[i].index];
    }
    for (int64_t i = 0; i < r->dim; i++)
        if (r->weight[i] < min_p)
            r->weight[i] = 0;
}

static int64_t pick(const row *r, uint64_t random)
{
    const uint64_t bound = (uint64_t)((wide)random * total(r) >> 64);
    uint64_t sum = 0;

    for (int64_t i = 0; i < r->dim; i++) {
        sum += r->weight[i];
        if (sum > bound)
            return i;
    }
    return -1;
}

static int64_t sample_row(bounds_case *c, const row *r, int64_t index)
{
    const uint32_t *p = (const uint32_t *)c->in[1] + index * ISO_SAMPLE_WORDS;
    const uint64_t seed = (uint64_t)p[ISO_SAMPLE_SEED_HIGH] << 32 | p[ISO_SAMPLE_SEED_LOW];

    for (int64_t i = 0; i < r->dim; i++)
        r->best[i] = (bounds_ranked){bounds_in(c, 0, (uint64_t)(index * r->dim + i)), i};
    bounds_sort_best(r->best, (size_t)r->dim);
    if ((p[ISO_SAMPLE_FLAGS] & ISO_SAMPLE_GREEDY) != 0)
        return r->best[0].index;
    weigh(c, r, index, f32(p[ISO_SAMPLE_INV_T]));
    filter(r, p[ISO_SAMPLE_TOP_K], p[ISO_SAMPLE_TOP_P], p[ISO_SAMPLE_MIN_P]);
    return pick(r, philox(seed, p[ISO_SAMPLE_POSITION]));
}

void bounds_sample(bounds_case *c)
{
    const int64_t dim = bounds_extent(c, 0, 1);
    row r = {.dim = dim};

    r.best = iso_alloc_zero((size_t)dim, sizeof *r.best, "bounds tokens");
    r.weight = iso_alloc_zero((size_t)dim, sizeof *r.weight, "bounds weights");
    ISO_ASSERT(r.best != NULL && r.weight != NULL);
    for (int64_t index = 0; index < c->rows; index++)
        bounds_same(c, 0, (uint64_t)index, sample_row(c, &r, index));
    iso_release(r.best, (size_t)dim * sizeof *r.best);
    iso_release(r.weight, (size_t)dim * sizeof *r.weight);
}
