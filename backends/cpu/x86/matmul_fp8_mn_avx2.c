/* matmul_fp8 with AVX2. Operands are e4m3 times a power of two, so every product is exact and a
 * power of two may go with either operand (numerics 5, 6.4): the scales of both sides are
 * multiplied into the 32 inputs that share them. Scales for which `clean` could change an
 * operand, or that are no number, take the way of the reference, operand by operand. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/e4m3_rows.h"
#include "ggml-style-ops/args.h"

enum { X, XS, W, WS, Y };

static e4m3_weights weights_of(const panel_job *job, const panel_block *b)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint32_t shift = e4m3_shift(a->tile);
    const uint64_t tiles = ((a->k - 1) >> shift) + 1;

    return (e4m3_weights){job->at[W], (const uint8_t *)job->at[WS] + (b->n >> shift) * tiles, a->k,
                          shift};
}

static const uint8_t *input_scales(const panel_job *job, uint64_t t)
{
    const iso_matmul_fp8_args *a = job->args;

    return (const uint8_t *)job->at[XS] + t * (((a->k - 1) >> e4m3_shift(a->group)) + 1);
}

static uint32_t weights(const panel_job *job, const panel_block *b, float *wt)
{
    const e4m3_weights w = weights_of(job, b);

    return e4m3_decode(&w, b, wt);
}

/* `count` codes, 32 at most, times `scale`; +0 behind them up to 32. */
static void step(const uint8_t *code, uint32_t count, __m256 scale, float *x)
{
    uint8_t copy[E4M3_STEP];

    if (count < E4M3_STEP) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, code, count);
        code = copy;
    }
    e4m3_row(code, scale, x);
}

static uint32_t inputs(const panel_job *job, const panel_block *b, uint64_t t, float *x)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *code = (const uint8_t *)job->at[X] + t * a->k, *scale = input_scales(job, t);
    uint32_t flags = 0;

    for (uint32_t i = 0, k = b->begin; i < b->count; i++, k++)
        x[i] = e4m3_operand(code[k], scale[k >> e4m3_shift(a->group)], &flags);
    return flags;
}

static void halves(const panel_job *job, const panel_block *b, __m256i *half)
{
    const e4m3_weights w = weights_of(job, b);

    e4m3_halves(&w, b, half);
}

static bool line(const panel_job *job, const panel_block *b, uint64_t t, uint32_t begin,
                 uint32_t count, float *x)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *code = (const uint8_t *)job->at[X] + t * a->k;
    const uint8_t *scale = input_scales(job, t);
    const e4m3_weights w = weights_of(job, b);
    const uint32_t shift = e4m3_shift(a->group);

    for (uint32_t i = 0; i < PANEL_LINE; i += E4M3_STEP) {
        const uint32_t left = i < count ? count - i : 0, at = begin + (left != 0 ? i : 0);
        const uint32_t xs = scale[at >> shift], ws = w.scale[at >> w.shift];

        if (!e4m3_scale_is_plain(xs) || !e4m3_scale_is_plain(ws))
            return false;
        /* 2^(172 - 254) .. 2^(336 - 254), and 2^16 for the two conversions: far inside f32 */
        step(code + at, left < E4M3_STEP ? left : E4M3_STEP,
             e4m3_power(xs + ws, 16 - 127), x + i);
    }
    return true;
}

static bool direct(const panel_job *job, const panel_block *b, uint64_t t, panel_sum *sum)
{
    const e4m3_weights w = weights_of(job, b);

    return e4m3_direct(job, &w, b, t, sum);
}

static uint32_t store(const panel_job *job, const panel_block *b, uint64_t t, const float *y)
{
    const iso_matmul_fp8_args *a = job->args;

    return panel_store_bf16((uint16_t *)job->at[Y] + t * a->n + b->n, b, y);
}

void iso_cpu_matmul_fp8_mn_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_fp8_args *a = args;
    const panel_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, direct,
                           store, halves, line};

    iso_flags_raise(tensors->flags, panel_run(&job, units));
}
