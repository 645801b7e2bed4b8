/* matmul_f32 with NEON. Products are rounded before they are added: the weights are f32, so no step
 * here is fused (numerics 6.3). */
#include "backends/cpu/arm/panel_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { X, W, Y };

static uint32_t weights(const iso_tile_job *job, uint64_t n, uint32_t begin, uint32_t count,
                        float *out)
{
    memcpy(out, (const float *)job->at[W] + n * job->k + begin, count * sizeof *out);
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
    const iso_matmul_f32_args *a = job->args;
    float *out = (float *)job->at[Y] + t * a->n + n;
    uint32_t flags = 0;

    for (uint32_t i = 0; i < count; i++)
        out[i] = lane_clean(y[i], &flags);
    return flags;
}

void iso_cpu_matmul_f32_mn_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_f32_args *a = args;
    const iso_tile_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, store};

    iso_flags_raise(tensors->flags, panel_run(&job, units, false));
}
