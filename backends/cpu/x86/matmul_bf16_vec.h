/* matmul_bf16_vec: what the kernels of matmul_bf16 share: inputs and results. A file includes
 * vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_BF16_VEC_H
#define ISO_CPU_X86_MATMUL_BF16_VEC_H

#include "backends/cpu/x86/panel.h"
#include "ggml-style-ops/args.h"

enum { BF16_X, BF16_W, BF16_BIAS, BF16_Y };

/* f32 of the lower and of the upper halves of words. */
static inline vecf bf16_even(veci pair) { return vec_float(VEC(slli_epi32)(pair, 16)); }

static inline vecf bf16_odd(veci pair)
{
    return vec_float(VECS(and)(pair, vec_u32(0xffff0000u)));
}

/* panel_inputs_fn */
static inline uint32_t bf16_inputs(const panel_job *job, const panel_block *b, uint64_t t,
                                   float *x)
{
    panel_bf16_row((const uint16_t *)job->at[BF16_X] + t * job->k + b->begin, b->count, x);
    return 0;
}

/* panel_store_fn */
static inline uint32_t bf16_store(const panel_job *job, const panel_block *b, uint64_t t,
                                  const float *y)
{
    const iso_matmul_bf16_args *a = job->args;
    const uint16_t *bias = job->at[BF16_BIAS];
    const uint64_t at = t * a->n + b->n;
    veci bad = VECS(setzero)();
    float out[PANEL_LANES];

    memcpy(out, y, sizeof out);
    if (a->has_bias != 0) {
        uint16_t half[PANEL_LANES];

        for (uint32_t j = 0; j < PANEL_LANES; j++)
            half[j] = bias[panel_feature(b, j)];
        for (uint32_t j = 0; j < PANEL_LANES; j += VEC_LANES) {
            const vecf v = vec_clean(VEC(loadu_ps)(out + j), &bad);

            VEC(storeu_ps)(out + j, VEC(add_ps)(v, vec_load_bf16(half + j)));
        }
    }
    if (a->out_f32 == 0)
        return panel_store_bf16((uint16_t *)job->at[BF16_Y] + at, b, out) | vec_flags(bad);
    for (uint32_t j = 0; j < PANEL_LANES; j += VEC_LANES)
        VEC(storeu_ps)(out + j, vec_clean(VEC(loadu_ps)(out + j), &bad));
    memcpy((float *)job->at[BF16_Y] + at, out, b->lanes * sizeof *out);
    return vec_flags(bad);
}

#endif
