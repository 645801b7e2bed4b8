/* matmul_groups, any number of rows, by tiles that stay inside one group. Weights are e4m3 times a
 * power of two, activations bf16: products are exact (numerics 5, 6.4). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/tile.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"

enum { X, W, WS, Y };

static uint32_t weights(const iso_tile_job *job, uint64_t n, uint32_t begin, uint32_t count,
                        float *out)
{
    const iso_matmul_groups_args *a = job->args;
    const uint8_t *scales = (const uint8_t *)job->at[WS]
                          + n / a->tile * ((a->k - 1) / a->tile + 1);

    iso_tile_e4m3((const uint8_t *)job->at[W] + n * a->k + begin, count, out);
    for (uint32_t i = 0; i < count;) {
        const uint32_t left = a->tile - (begin + i) % a->tile;
        const uint32_t end = left < count - i ? i + left : count;
        const float s = lane_ue8m0_f32(scales[(begin + i) / a->tile]);

        for (; i < end; i++)
            out[i] = out[i] * s;
    }
    return iso_tile_clean(out, count);
}

static uint32_t inputs(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t begin,
                       uint32_t count, float *out)
{
    const iso_matmul_groups_args *a = job->args;

    iso_tile_bf16((const uint16_t *)job->at[X] + (t * a->groups + n / a->n) * a->k + begin, count,
                  out);
    return 0;
}

static uint32_t store(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t count,
                      const float *y)
{
    const iso_matmul_groups_args *a = job->args;
    uint16_t *out = (uint16_t *)job->at[Y] + t * a->groups * a->n + n;
    uint32_t flags = 0;

    for (uint32_t i = 0; i < count; i++)
        out[i] = (uint16_t)lane_bf16(y[i], &flags);
    return flags;
}

void iso_cpu_matmul_groups_mn_portable(const void *args, const iso_tensors *tensors,
                                       iso_range units)
{
    const iso_matmul_groups_args *a = args;
    const iso_tile_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, store};

    iso_flags_raise(tensors->flags, iso_tile_run(&job, units));
}
