/* hc_expand, token by token, channels as lanes; the old streams are read once for the four new
 * ones. The coefficients are f32: never fused (13.3). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/arm/lane_neon.h"
#include "ggml-style-ops/args.h"

enum { U, X, POST, COMB, Y };
enum { STREAMS = 4 };

typedef struct token {
    const uint16_t *u, *x;
    const float *post, *comb;
    uint16_t *y;
    uint32_t dim;
} token;

static inline void expand8(const token *t, uint32_t d, uint32_t count, uint32x4_t *bad)
{
    const lane8 u = lane8_load_bf16_n(t->u + d, count);
    lane8 x[STREAMS];

    for (uint32_t i = 0; i < STREAMS; i++)
        x[i] = lane8_load_bf16_n(t->x + i * t->dim + d, count);
    for (uint32_t j = 0; j < STREAMS; j++) {
        lane8 sum = lane8_mul(lane8_set1(t->comb[j]), x[0]);

        for (uint32_t i = 1; i < STREAMS; i++)
            sum = lane8_add(sum, lane8_mul(lane8_set1(t->comb[STREAMS * i + j]), x[i]));
        sum = lane8_add(lane8_mul(lane8_set1(t->post[j]), u), sum);
        lane8_store_bf16_n(t->y + j * t->dim + d, count, sum, bad);
    }
}

void iso_cpu_hc_expand_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_expand_args *a = args;
    uint32x4_t bad = vdupq_n_u32(0);

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

        for (; d + 8 <= a->dim; d += 8)
            expand8(&t, d, 8, &bad);
        if (d < a->dim)
            expand8(&t, d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
