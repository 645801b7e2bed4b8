/* hc_collapse_rows: token by token, channels as lanes. The coefficients are f32: never fused
 * (13.3). A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_HC_COLLAPSE_ROWS_H
#define ISO_CPU_X86_HC_COLLAPSE_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

enum { X, PRE, Y };
enum { STREAMS = 4 };

static inline void collapse_pair(const uint16_t *x, uint32_t dim, const float *pre, uint16_t *y,
                              uint32_t count, veci *bad)
{
    vec_pair sum = vec_pair_mul(vec_pair_set1(pre[0]), vec_pair_load_bf16_n(x, count));

    for (uint32_t i = 1; i < STREAMS; i++)
        sum = vec_pair_add(sum, vec_pair_mul(vec_pair_set1(pre[i]),
                                         vec_pair_load_bf16_n(x + i * dim, count)));
    vec_pair_store_bf16_n(y, count, sum, bad);
}

void VEC_KERNEL(hc_collapse_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_collapse_args *a = args;
    veci bad = VECS(setzero)();

    for (uint64_t t = units.begin; t < units.end; t++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + t * STREAMS * a->dim;
        const float *pre = (const float *)tensors->at[PRE] + t * STREAMS;
        uint16_t *y = (uint16_t *)tensors->at[Y] + t * a->dim;
        uint32_t d = 0;

        for (; d + VEC_PAIR <= a->dim; d += VEC_PAIR)
            collapse_pair(x + d, a->dim, pre, y + d, VEC_PAIR, &bad);
        if (d < a->dim)
            collapse_pair(x + d, a->dim, pre, y + d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}

#endif
