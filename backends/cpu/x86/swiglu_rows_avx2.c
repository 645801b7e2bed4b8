/* swiglu, row by row, channels as lanes. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_avx2.h"
#include "ggml-style-ops/args.h"

enum { G, U, W, Y };

/* min and max return their second operand for NaN, as the comparisons of the reference do. */
static inline __m256 activate8(__m256 g, __m256 u, float limit, float w)
{
    const __m256 most = _mm256_set1_ps(limit), least = _mm256_set1_ps(-limit);
    const __m256 gate = _mm256_min_ps(most, g);
    const __m256 up = _mm256_max_ps(least, _mm256_min_ps(most, u));

    return _mm256_mul_ps(_mm256_set1_ps(w), _mm256_mul_ps(lane8_silu(gate), up));
}

typedef struct row {
    const uint16_t *g, *u;
    uint16_t *y;
    float limit, w;
} row;

static inline void activate16(const row *r, uint32_t i, uint32_t count, __m256i *bad)
{
    const lane16 g = lane16_load_bf16_n(r->g + i, count), u = lane16_load_bf16_n(r->u + i, count);
    const lane16 value = {activate8(g.even, u.even, r->limit, r->w),
                          activate8(g.odd, u.odd, r->limit, r->w)};

    lane16_store_bf16_n(r->y + i, count, value, bad);
}

void iso_cpu_swiglu_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_swiglu_args *a = args;
    const float *w = tensors->at[W];
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const row r = {
            .g = (const uint16_t *)tensors->at[G] + unit * a->dim,
            .u = (const uint16_t *)tensors->at[U] + unit * a->dim,
            .y = (uint16_t *)tensors->at[Y] + unit * a->dim,
            .limit = a->limit,
            .w = w != NULL ? w[unit] : 1.0f,     /* a product with 1 is exact */
        };
        uint32_t i = 0;

        for (; i + 16 <= a->dim; i += 16)
            activate16(&r, i, 16, &bad);
        if (i < a->dim)
            activate16(&r, i, a->dim - i, &bad);
    }
    iso_flags_raise(tensors->flags, lane8_flags(bad));
}
