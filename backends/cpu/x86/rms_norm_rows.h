/* rms_norm_rows: row by row, channels as lanes; the sum in the 32 lanes of numerics 7. A file
 * includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_RMS_NORM_ROWS_H
#define ISO_CPU_X86_RMS_NORM_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/row_sum_vec.h"
#include "ggml-style-ops/args.h"

enum { X, W, Y };

static inline void scale_pair(const uint16_t *x, const uint16_t *w, vec_pair r, uint16_t *y,
                           uint32_t count, veci *bad)
{
    const vec_pair t = vec_pair_mul(vec_pair_load_bf16_n(x, count), r);

    vec_pair_store_bf16_n(y, count, vec_pair_mul(t, vec_pair_load_bf16_n(w, count)), bad);
}

void VEC_KERNEL(rms_norm_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rms_norm_args *a = args;
    const uint16_t *w = tensors->at[W];
    veci bad = VECS(setzero)();

    for (uint64_t row = units.begin; row < units.end; row++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + row * a->dim;
        uint16_t *y = (uint16_t *)tensors->at[Y] + row * a->dim;
        const vec_pair r = vec_pair_set1(iso_mean_rsqrt_vec(x, a->dim, a->eps));
        uint32_t i = 0;

        for (; i + VEC_PAIR <= a->dim; i += VEC_PAIR)
            scale_pair(x + i, w + i, r, y + i, VEC_PAIR, &bad);
        if (i < a->dim)
            scale_pair(x + i, w + i, r, y + i, a->dim - i, &bad);
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}

#endif
