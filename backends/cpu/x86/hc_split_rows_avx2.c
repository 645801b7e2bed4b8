/* hc_split, token by token. The eight values of pre and post are one register; the 4 x 4 matrix is
 * two, rows 0 1 and 2 3, a row in each half. Sums of four by two swaps have the bits of
 * (a + b) + (c + d) in every lane, because addition commutes; divisions are native (9.1). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

enum { MIX, R, SCALE, BASE, PRE, POST, COMB };
enum { STREAMS = 4, MIXES = 24 };

typedef struct matrix {
    __m256 rows01, rows23;
} matrix;

/* The coefficients of the 24 values of z, in three registers. */
typedef struct affine {
    __m256 scale[3], base[3];
} affine;

static inline __m256 swap_neighbours(__m256 x) { return _mm256_permute_ps(x, 0xb1); }
static inline __m256 swap_pairs(__m256 x) { return _mm256_permute_ps(x, 0x4e); }
static inline __m256 swap_halves(__m256 x) { return _mm256_permute2f128_ps(x, x, 1); }

static inline __m256 row_sums(__m256 x)
{
    const __m256 pair = _mm256_add_ps(x, swap_neighbours(x));

    return _mm256_add_ps(pair, swap_pairs(pair));
}

/* Row softmax (+ eps) of two rows. */
static inline __m256 softmax_rows(__m256 x, __m256 eps)
{
    __m256 max = _mm256_max_ps(x, swap_neighbours(x)), e;

    max = _mm256_max_ps(max, swap_pairs(max));
    e = vec_exp_nonpositive(_mm256_sub_ps(x, max));
    return _mm256_add_ps(_mm256_div_ps(e, row_sums(e)), eps);
}

static inline void column_step(matrix *c, __m256 eps)
{
    const __m256 sum01 = _mm256_add_ps(c->rows01, swap_halves(c->rows01));
    const __m256 sum23 = _mm256_add_ps(c->rows23, swap_halves(c->rows23));
    const __m256 sum = _mm256_add_ps(_mm256_add_ps(sum01, sum23), eps);

    c->rows01 = _mm256_div_ps(c->rows01, sum);
    c->rows23 = _mm256_div_ps(c->rows23, sum);
}

static inline void row_step(matrix *c, __m256 eps)
{
    c->rows01 = _mm256_div_ps(c->rows01, _mm256_add_ps(row_sums(c->rows01), eps));
    c->rows23 = _mm256_div_ps(c->rows23, _mm256_add_ps(row_sums(c->rows23), eps));
}

/* z of one register: mix * r is cleaned, the rest rounds step by step (13.1). */
static inline __m256 mix8(const affine *z, uint32_t v, const float *mix, __m256 r, __m256i *bad)
{
    const __m256 mixed = vec_clean(_mm256_mul_ps(_mm256_loadu_ps(mix + 8 * v), r), bad);

    return _mm256_add_ps(_mm256_mul_ps(mixed, z->scale[v]), z->base[v]);
}

/* sigmoid + eps in the lower half, 2 sigmoid in the upper. */
static inline void split_gates(__m256 z, float eps, float *pre, float *post, __m256i *bad)
{
    const __m256 s = vec_sigmoid(z);
    const __m256 first = _mm256_add_ps(s, _mm256_set1_ps(eps));
    const __m256 second = _mm256_mul_ps(_mm256_set1_ps(2.0f), s);
    const __m256 gates = vec_clean(_mm256_blend_ps(first, second, 0xf0), bad);

    _mm_storeu_ps(pre, _mm256_castps256_ps128(gates));
    _mm_storeu_ps(post, _mm256_extractf128_ps(gates, 1));
}

void iso_cpu_hc_split_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_split_args *a = args;
    const float *mix = tensors->at[MIX], *r = tensors->at[R];
    const float *scale = tensors->at[SCALE], *base = tensors->at[BASE];
    float *pre = tensors->at[PRE], *post = tensors->at[POST], *comb = tensors->at[COMB];
    const __m256 eps = _mm256_set1_ps(a->eps);
    const affine z = {
        {_mm256_set_m128(_mm_set1_ps(scale[1]), _mm_set1_ps(scale[0])), _mm256_set1_ps(scale[2]),
         _mm256_set1_ps(scale[2])},
        {_mm256_loadu_ps(base), _mm256_loadu_ps(base + 8), _mm256_loadu_ps(base + 16)},
    };
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t t = units.begin; t < units.end; t++) {
        const __m256 rt = _mm256_set1_ps(r[t]);
        float *out = comb + t * STREAMS * STREAMS;
        matrix c;

        split_gates(mix8(&z, 0, mix + t * MIXES, rt, &bad), a->eps, pre + t * STREAMS,
                    post + t * STREAMS, &bad);
        c.rows01 = softmax_rows(mix8(&z, 1, mix + t * MIXES, rt, &bad), eps);
        c.rows23 = softmax_rows(mix8(&z, 2, mix + t * MIXES, rt, &bad), eps);
        column_step(&c, eps);
        for (uint32_t i = 1; i < a->iterations; i++) {
            row_step(&c, eps);
            column_step(&c, eps);
        }
        _mm256_storeu_ps(out, vec_clean(c.rows01, &bad));
        _mm256_storeu_ps(out + 8, vec_clean(c.rows23, &bad));
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}
