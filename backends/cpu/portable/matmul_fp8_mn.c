/* matmul_fp8, any number of rows: exact operands from codes and scales, then the tile. Operands are
 * e4m3 times a power of two, so every product is exact (numerics 5, 6.4). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/tile.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"

enum { X, XS, W, WS, Y };

/* Codes [0, count) from element `begin` of a row on, with one scale per `group` elements. */
static uint32_t operands(const uint8_t *code, const uint8_t *scale, uint32_t begin,
                         uint32_t count, uint32_t group, float *out)
{
    iso_tile_e4m3(code + begin, count, out);
    for (uint32_t i = 0; i < count;) {
        const uint32_t left = group - (begin + i) % group;
        const uint32_t end = left < count - i ? i + left : count;
        const float s = lane_ue8m0_f32(scale[(begin + i) / group]);

        for (; i < end; i++)
            out[i] = out[i] * s;
    }
    return iso_tile_clean(out, count);
}

static uint32_t weights(const iso_tile_job *job, uint64_t n, uint32_t begin, uint32_t count,
                        float *out)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *scales = (const uint8_t *)job->at[WS]
                          + n / a->tile * ((a->k - 1) / a->tile + 1);

    return operands((const uint8_t *)job->at[W] + n * a->k, scales, begin, count, a->tile, out);
}

static uint32_t inputs(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t begin,
                       uint32_t count, float *out)
{
    const iso_matmul_fp8_args *a = job->args;
    const uint8_t *scales = (const uint8_t *)job->at[XS] + t * ((a->k - 1) / a->group + 1);

    (void)n;
    return operands((const uint8_t *)job->at[X] + t * a->k, scales, begin, count, a->group, out);
}

static uint32_t store(const iso_tile_job *job, uint64_t t, uint64_t n, uint32_t count,
                      const float *y)
{
    const iso_matmul_fp8_args *a = job->args;
    uint16_t *out = (uint16_t *)job->at[Y] + t * a->n + n;
    uint32_t flags = 0;

    for (uint32_t i = 0; i < count; i++)
        out[i] = (uint16_t)lane_bf16(y[i], &flags);
    return flags;
}

void iso_cpu_matmul_fp8_mn_portable(const void *args, const iso_tensors *tensors,
                                    iso_range units)
{
    const iso_matmul_fp8_args *a = args;
    const iso_tile_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, store};

    iso_flags_raise(tensors->flags, iso_tile_run(&job, units));
}
