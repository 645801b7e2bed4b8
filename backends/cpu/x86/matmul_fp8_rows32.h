/* matmul_fp8_rows32: weights in layout ROWS32. With one row the scales of both sides go into the 32
 * inputs that share them; with more rows every operand has its own. Products are exact either way
 * (numerics 5, 6.4). Scales that are not plain take the way of the reference. A file includes
 * vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_FP8_ROWS32_H
#define ISO_CPU_X86_MATMUL_FP8_ROWS32_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/matmul_fp8_vec.h"
#include "backends/cpu/x86/tiles_e4m3.h"

static bool weights(const tiles_job *job, const tiles_block *b, float *wt)
{
    const e4m3_weights w = fp8_weights_of(&job->panel, &b->p);

    return tiles_e4m3_weights(&w, b, wt);
}

static uint32_t weights_exact(const tiles_job *job, const tiles_block *b, float *wt)
{
    const e4m3_weights w = fp8_weights_of(&job->panel, &b->p);

    return tiles_e4m3_exact(job, &w, b, wt);
}

static bool inputs(const tiles_job *job, const tiles_block *b, uint64_t t, float *x)
{
    for (uint32_t i = 0; i < b->p.count; i += PANEL_LINE) {
        const uint32_t left = b->p.count - i, count = left < PANEL_LINE ? left : PANEL_LINE;

        if (!fp8_scaled(&job->panel, NULL, t, b->p.begin + i, count, x + i))
            return false;
    }
    return true;
}

void VEC_KERNEL(matmul_fp8_rows32)(const void *args, const iso_tensors *tensors,
                                    iso_range units)
{
    const iso_matmul_fp8_args *a = args;
    const tiles_job job = {
        .panel = {a, tensors->at, a->rows.count, a->k, a->n, NULL, fp8_inputs, NULL, fp8_store,
                  NULL, fp8_line},
        .packed = tensors->at[FP8_W],
        .tile_bytes = (uint64_t)a->k * PANEL_LANES,
        .is_split = true,
        .weights = weights,
        .inputs = inputs,
        .direct = tiles_e4m3_direct,
        .few = tiles_e4m3_few,
        .weights_exact = weights_exact,
    };

    iso_flags_raise(tensors->flags, tiles_run(&job, units));
}

#endif
