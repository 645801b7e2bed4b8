/* matmul_fp8_vec: what the kernels of matmul_fp8 share: scales, inputs and results. A file includes
 * vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_FP8_VEC_H
#define ISO_CPU_X86_MATMUL_FP8_VEC_H

#include "backends/cpu/x86/e4m3_rows.h"
#include "ggml-style-ops/args.h"

enum { FP8_X, FP8_XS, FP8_W, FP8_WS, FP8_Y };

static inline e4m3_weights fp8_weights_of(const panel_job *job, const panel_block *b)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint32_t shift = e4m3_shift(a->tile);
    const uint64_t tiles = ((a->k - 1) >> shift) + 1;
    const uint8_t *scales = job->at[FP8_WS];

    return (e4m3_weights){job->at[FP8_W], scales + (b->n >> shift) * tiles, a->k, shift};
}

static inline const uint8_t *fp8_input_scales(const panel_job *job, uint64_t t)
{
    const iso_matmul_fp8_args *a = job->args;

    return (const uint8_t *)job->at[FP8_XS] + t * (((a->k - 1) >> e4m3_shift(a->group)) + 1);
}

/* `count` codes, 32 at most, times `scale`; +0 behind them up to 32. */
static inline void fp8_step(const uint8_t *code, uint32_t count, vecf scale, float *x)
{
    uint8_t copy[E4M3_STEP];

    if (count < E4M3_STEP) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, code, count);
        code = copy;
    }
    e4m3_row(code, scale, x);
}

/* panel_inputs_fn */
static inline uint32_t fp8_inputs(const panel_job *job, const panel_block *b, uint64_t t,
                                  float *x)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *code = (const uint8_t *)job->at[FP8_X] + t * a->k;
    const uint8_t *scale = fp8_input_scales(job, t);
    uint32_t flags = 0;

    for (uint32_t i = 0, k = b->begin; i < b->count; i++, k++)
        x[i] = e4m3_operand(code[k], scale[k >> e4m3_shift(a->group)], &flags);
    return flags;
}

/* x [64] of row t from k = begin on, times its scale and, unless w is NULL, that of the weights;
 * the 2^8 of every conversion from f16 is made good. +0 from x[count] on. false: a scale is not
 * plain. */
static inline bool fp8_scaled(const panel_job *job, const e4m3_weights *w, uint64_t t,
                              uint32_t begin, uint32_t count, float *x)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *code = (const uint8_t *)job->at[FP8_X] + t * a->k;
    const uint8_t *scale = fp8_input_scales(job, t);
    const uint32_t shift = e4m3_shift(a->group);

    for (uint32_t i = 0; i < PANEL_LINE; i += E4M3_STEP) {
        const uint32_t left = i < count ? count - i : 0, at = begin + (left != 0 ? i : 0);
        const uint32_t xs = scale[at >> shift], ws = w != NULL ? w->scale[at >> w->shift] : 127;

        if (!e4m3_scale_is_plain(xs) || !e4m3_scale_is_plain(ws))
            return false;
        /* 2^(172 - 254) .. 2^(336 - 254), and 2^16 for two conversions: far inside f32 */
        fp8_step(code + at, left < E4M3_STEP ? left : E4M3_STEP,
                 e4m3_power(xs + ws, (w != NULL ? 16 : 8) - 127), x + i);
    }
    return true;
}

/* panel_line_fn */
static inline bool fp8_line(const panel_job *job, const panel_block *b, uint64_t t,
                            uint32_t begin, uint32_t count, float *x)
{
    const e4m3_weights w = fp8_weights_of(job, b);

    return fp8_scaled(job, &w, t, begin, count, x);
}

/* panel_store_fn */
static inline uint32_t fp8_store(const panel_job *job, const panel_block *b, uint64_t t,
                                 const float *y)
{
    const iso_matmul_fp8_args *a = job->args;

    return panel_store_bf16((uint16_t *)job->at[FP8_Y] + t * a->n + b->n, b, y);
}

#endif
