/* swiglu_rows: row by row, channels as lanes. A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_SWIGLU_ROWS_H
#define ISO_CPU_X86_SWIGLU_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

enum { G, U, W, Y };

/* min and max return their second operand for NaN, as the comparisons of the reference do. */
static inline vecf activate_vec(vecf g, vecf u, float limit, float w)
{
    const vecf most = VEC(set1_ps)(limit), least = VEC(set1_ps)(-limit);
    const vecf gate = VEC(min_ps)(most, g);
    const vecf up = VEC(max_ps)(least, VEC(min_ps)(most, u));

    return VEC(mul_ps)(VEC(set1_ps)(w), VEC(mul_ps)(vec_silu(gate), up));
}

typedef struct row {
    const uint16_t *g, *u;
    uint16_t *y;
    float limit, w;
} row;

static inline void activate_pair(const row *r, uint32_t i, uint32_t count, veci *bad)
{
    const vec_pair g = vec_pair_load_bf16_n(r->g + i, count);
    const vec_pair u = vec_pair_load_bf16_n(r->u + i, count);
    const vec_pair value = {activate_vec(g.even, u.even, r->limit, r->w),
                          activate_vec(g.odd, u.odd, r->limit, r->w)};

    vec_pair_store_bf16_n(r->y + i, count, value, bad);
}

void VEC_KERNEL(swiglu_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_swiglu_args *a = args;
    const float *w = tensors->at[W];
    veci bad = VECS(setzero)();

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const row r = {
            .g = (const uint16_t *)tensors->at[G] + unit * a->dim,
            .u = (const uint16_t *)tensors->at[U] + unit * a->dim,
            .y = (uint16_t *)tensors->at[Y] + unit * a->dim,
            .limit = a->limit,
            .w = w != NULL ? w[unit] : 1.0f,     /* a product with 1 is exact */
        };
        uint32_t i = 0;

        for (; i + VEC_PAIR <= a->dim; i += VEC_PAIR)
            activate_pair(&r, i, VEC_PAIR, &bad);
        if (i < a->dim)
            activate_pair(&r, i, a->dim - i, &bad);
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}

#endif
