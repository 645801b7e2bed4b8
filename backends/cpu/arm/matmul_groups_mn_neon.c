/* matmul_groups with NEON: bf16 activations, e4m3 weights times a power of two; products are exact
 * (numerics 5, 6.4) for activations in the domain, and are rounded for others. */
#include "backends/cpu/arm/e4m3_neon.h"
#include "backends/cpu/arm/panel_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { X, W, WS, Y };

static uint32_t weights(const iso_tile_job *job, uint64_t n, uint32_t begin, uint32_t count,
                        float *out)
{
    const iso_matmul_groups_args *a = job->args;
    const uint8_t *scale = (const uint8_t *)job->at[WS] + n / a->tile * ((a->k - 1) / a->tile + 1);

    return e4m3_operands((const uint8_t *)job->at[W] + n * a->k, scale, a->tile,
                         (iso_range){begin, begin + count}, out);
}

static uint32_t inputs(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t begin,
                       uint32_t count, float *out)
{
    const iso_matmul_groups_args *a = job->args;
    const uint16_t *x = (const uint16_t *)job->at[X] + (t * a->groups + n / a->n) * a->k + begin;
    uint32_t bad = 0;

    panel_bf16_row(x, count, out);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t magnitude = x[i] & 0x7fffu;

        bad |= magnitude >= LANE_CLEAN_MAX >> 16 ? PANEL_ROUND : 0u;
    }
    return bad;
}

static uint32_t store(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t count,
                      const float *y)
{
    const iso_matmul_groups_args *a = job->args;

    return panel_store_bf16((uint16_t *)job->at[Y] + t * a->groups * a->n + n, y, count);
}

void iso_cpu_matmul_groups_mn_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_groups_args *a = args;
    const iso_tile_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, store};

    iso_flags_raise(tensors->flags, panel_run(&job, units, true));
}
