/* hc_expand_rows: token by token, channels as lanes; the old streams are read once for the four new
 * ones. The coefficients are f32: never fused (13.3). A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_HC_EXPAND_ROWS_H
#define ISO_CPU_X86_HC_EXPAND_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

enum { U, X, POST, COMB, Y };
enum { STREAMS = 4 };

typedef struct token {
    const uint16_t *u, *x;
    const float *post, *comb;
    uint16_t *y;
    uint32_t dim;
} token;

static inline void expand_pair(const token *t, uint32_t d, uint32_t count, veci *bad)
{
    const vec_pair u = vec_pair_load_bf16_n(t->u + d, count);
    vec_pair x[STREAMS];

    for (uint32_t i = 0; i < STREAMS; i++)
        x[i] = vec_pair_load_bf16_n(t->x + i * t->dim + d, count);
    for (uint32_t j = 0; j < STREAMS; j++) {
        vec_pair sum = vec_pair_mul(vec_pair_set1(t->comb[j]), x[0]);

        for (uint32_t i = 1; i < STREAMS; i++)
            sum = vec_pair_add(sum, vec_pair_mul(vec_pair_set1(t->comb[STREAMS * i + j]), x[i]));
        sum = vec_pair_add(vec_pair_mul(vec_pair_set1(t->post[j]), u), sum);
        vec_pair_store_bf16_n(t->y + j * t->dim + d, count, sum, bad);
    }
}

void VEC_KERNEL(hc_expand_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_expand_args *a = args;
    veci bad = VECS(setzero)();

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

        for (; d + VEC_PAIR <= a->dim; d += VEC_PAIR)
            expand_pair(&t, d, VEC_PAIR, &bad);
        if (d < a->dim)
            expand_pair(&t, d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}

#endif
