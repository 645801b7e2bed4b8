/* matmul_fp8 with NEON. Operands are e4m3 times a power of two, so every product is exact (numerics
 * 5, 6.4). */
#include "backends/cpu/arm/e4m3_neon.h"
#include "backends/cpu/arm/panel_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { X, XS, W, WS, Y };

static uint32_t weights(const iso_tile_job *job, uint64_t n, uint32_t begin, uint32_t count,
                        float *out)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *scale = (const uint8_t *)job->at[WS] + n / a->tile * ((a->k - 1) / a->tile + 1);

    return e4m3_operands((const uint8_t *)job->at[W] + n * a->k, scale, a->tile,
                         (iso_range){begin, begin + count}, out);
}

static uint32_t inputs(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t begin,
                       uint32_t count, float *out)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *scale = (const uint8_t *)job->at[XS] + t * ((a->k - 1) / a->group + 1);

    (void)n;
    return e4m3_operands((const uint8_t *)job->at[X] + t * a->k, scale, a->group,
                         (iso_range){begin, begin + count}, out);
}

static uint32_t store(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t count,
                      const float *y)
{
    const iso_matmul_fp8_args *a = job->args;

    return panel_store_bf16((uint16_t *)job->at[Y] + t * a->n + n, y, count);
}

void iso_cpu_matmul_fp8_mn_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_fp8_args *a = args;
    const iso_tile_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, store};

    iso_flags_raise(tensors->flags, panel_run(&job, units, true));
}
