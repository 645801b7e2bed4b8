/* hc_expand, token by token, channels as lanes; the old streams are read once for the four new
 * ones. The coefficients are f32: never fused (13.3). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_avx2.h"
#include "ggml-style-ops/args.h"

enum { U, X, POST, COMB, Y };
enum { STREAMS = 4 };

typedef struct token {
    const uint16_t *u, *x;
    const float *post, *comb;
    uint16_t *y;
    uint32_t dim;
} token;

static inline void expand16(const token *t, uint32_t d, uint32_t count, __m256i *bad)
{
    const lane16 u = lane16_load_bf16_n(t->u + d, count);
    lane16 x[STREAMS];

    for (uint32_t i = 0; i < STREAMS; i++)
        x[i] = lane16_load_bf16_n(t->x + i * t->dim + d, count);
    for (uint32_t j = 0; j < STREAMS; j++) {
        lane16 sum = lane16_mul(lane16_set1(t->comb[j]), x[0]);

        for (uint32_t i = 1; i < STREAMS; i++)
            sum = lane16_add(sum, lane16_mul(lane16_set1(t->comb[STREAMS * i + j]), x[i]));
        sum = lane16_add(lane16_mul(lane16_set1(t->post[j]), u), sum);
        lane16_store_bf16_n(t->y + j * t->dim + d, count, sum, bad);
    }
}

void iso_cpu_hc_expand_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_expand_args *a = args;
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t row = units.begin; row < units.end; row++) {
        const token t = {
            .u = (const uint16_t *)tensors->at[U] + row * a->dim,
            .x = (const uint16_t *)tensors->at[X] + row * STREAMS * a->dim,
            .post = (const float *)tensors->at[POST] + row * STREAMS,
            .comb = (const float *)tensors->at[COMB] + row * STREAMS * STREAMS,
            .y = (uint16_t *)tensors->at[Y] + row * STREAMS * a->dim,
            .dim = a->dim,
        };
        uint32_t d = 0;

        for (; d + 16 <= a->dim; d += 16)
            expand16(&t, d, 16, &bad);
        if (d < a->dim)
            expand16(&t, d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, lane8_flags(bad));
}
