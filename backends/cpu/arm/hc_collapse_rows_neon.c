/* hc_collapse, token by token, channels as lanes. The coefficients are f32: never fused (13.3). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/arm/lane_neon.h"
#include "ggml-style-ops/args.h"

enum { X, PRE, Y };
enum { STREAMS = 4 };

static inline void collapse8(const uint16_t *x, uint32_t dim, const float *pre, uint16_t *y,
                              uint32_t count, uint32x4_t *bad)
{
    lane8 sum = lane8_mul(lane8_set1(pre[0]), lane8_load_bf16_n(x, count));

    for (uint32_t i = 1; i < STREAMS; i++)
        sum = lane8_add(sum, lane8_mul(lane8_set1(pre[i]),
                                         lane8_load_bf16_n(x + i * dim, count)));
    lane8_store_bf16_n(y, count, sum, bad);
}

void iso_cpu_hc_collapse_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_collapse_args *a = args;
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint64_t t = units.begin; t < units.end; t++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + t * STREAMS * a->dim;
        const float *pre = (const float *)tensors->at[PRE] + t * STREAMS;
        uint16_t *y = (uint16_t *)tensors->at[Y] + t * a->dim;
        uint32_t d = 0;

        for (; d + 8 <= a->dim; d += 8)
            collapse8(x + d, a->dim, pre, y + d, 8, &bad);
        if (d < a->dim)
            collapse8(x + d, a->dim, pre, y + d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
