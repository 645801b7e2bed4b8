/* moe_sum_rows: token by token, channels as lanes; experts are added in their order (numerics 14).
 * A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MOE_SUM_ROWS_H
#define ISO_CPU_X86_MOE_SUM_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

enum { ROUTED, SHARED, OUT };

typedef struct token {
    const uint16_t *routed, *shared;
    uint16_t *out;
    uint32_t picks, dim;
} token;

static inline void sum_pair(const token *t, uint32_t d, uint32_t count, veci *bad)
{
    vec_pair sum = vec_pair_set1(0.0f);

    for (uint32_t i = 0; i < t->picks; i++)
        sum = vec_pair_add(sum,
                           vec_pair_load_bf16_n(t->routed + (uint64_t)i * t->dim + d, count));
    sum = vec_pair_add(sum, vec_pair_load_bf16_n(t->shared + d, count));
    vec_pair_store_bf16_n(t->out + d, count, sum, bad);
}

void VEC_KERNEL(moe_sum_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_moe_sum_args *a = args;
    veci bad = VECS(setzero)();

    for (uint64_t row = units.begin; row < units.end; row++) {
        const token t = {
            .routed = (const uint16_t *)tensors->at[ROUTED] + row * a->picks * a->dim,
            .shared = (const uint16_t *)tensors->at[SHARED] + row * a->dim,
            .out = (uint16_t *)tensors->at[OUT] + row * a->dim,
            .picks = a->picks,
            .dim = a->dim,
        };
        uint32_t d = 0;

        for (; d + VEC_PAIR <= a->dim; d += VEC_PAIR)
            sum_pair(&t, d, VEC_PAIR, &bad);
        if (d < a->dim)
            sum_pair(&t, d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}

#endif
