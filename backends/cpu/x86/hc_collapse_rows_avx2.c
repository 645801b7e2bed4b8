/* hc_collapse, token by token, channels as lanes. The coefficients are f32: never fused (13.3). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_avx2.h"
#include "ggml-style-ops/args.h"

enum { X, PRE, Y };
enum { STREAMS = 4 };

static inline void collapse16(const uint16_t *x, uint32_t dim, const float *pre, uint16_t *y,
                              uint32_t count, __m256i *bad)
{
    lane16 sum = lane16_mul(lane16_set1(pre[0]), lane16_load_bf16_n(x, count));

    for (uint32_t i = 1; i < STREAMS; i++)
        sum = lane16_add(sum, lane16_mul(lane16_set1(pre[i]),
                                         lane16_load_bf16_n(x + i * dim, count)));
    lane16_store_bf16_n(y, count, sum, bad);
}

void iso_cpu_hc_collapse_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_collapse_args *a = args;
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t t = units.begin; t < units.end; t++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + t * STREAMS * a->dim;
        const float *pre = (const float *)tensors->at[PRE] + t * STREAMS;
        uint16_t *y = (uint16_t *)tensors->at[Y] + t * a->dim;
        uint32_t d = 0;

        for (; d + 16 <= a->dim; d += 16)
            collapse16(x + d, a->dim, pre, y + d, 16, &bad);
        if (d < a->dim)
            collapse16(x + d, a->dim, pre, y + d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, lane8_flags(bad));
}
