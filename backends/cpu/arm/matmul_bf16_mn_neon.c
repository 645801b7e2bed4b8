/* matmul_bf16 with NEON; products of bf16 values are exact (numerics 5). */
#include "backends/cpu/arm/panel_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"

enum { X, W, BIAS, Y };

static uint32_t weights(const iso_tile_job *job, uint64_t n, uint32_t begin, uint32_t count,
                        float *out)
{
    panel_bf16_row((const uint16_t *)job->at[W] + n * job->k + begin, count, out);
    return 0;
}

static uint32_t inputs(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t begin,
                       uint32_t count, float *out)
{
    (void)n;
    panel_bf16_row((const uint16_t *)job->at[X] + t * job->k + begin, count, out);
    return 0;
}

static uint32_t store(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t count,
                      const float *y)
{
    const iso_matmul_bf16_args *a = job->args;
    const uint16_t *bias = job->at[BIAS];
    const uint64_t at = t * a->n + n;
    float value[PANEL_LANES];
    uint32_t flags = 0;

    memcpy(value, y, sizeof value);
    for (uint32_t i = 0; a->has_bias != 0 && i < count; i++)
        value[i] = lane_clean(y[i], &flags) + lane_bf16_f32(bias[n + i]);
    if (a->out_f32 == 0)
        return flags | panel_store_bf16((uint16_t *)job->at[Y] + at, value, count);
    for (uint32_t i = 0; i < count; i++)
        ((float *)job->at[Y])[at + i] = lane_clean(value[i], &flags);
    return flags;
}

void iso_cpu_matmul_bf16_mn_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_bf16_args *a = args;
    const iso_tile_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, store};

    iso_flags_raise(tensors->flags, panel_run(&job, units, true));
}
