/* rms_norm, row by row, channels as lanes; the sum in the 32 lanes of numerics 7. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/row_sum_avx2.h"
#include "ggml-style-ops/args.h"

enum { X, W, Y };

static inline void scale16(const uint16_t *x, const uint16_t *w, lane16 r, uint16_t *y,
                           uint32_t count, __m256i *bad)
{
    const lane16 t = lane16_mul(lane16_load_bf16_n(x, count), r);

    lane16_store_bf16_n(y, count, lane16_mul(t, lane16_load_bf16_n(w, count)), bad);
}

void iso_cpu_rms_norm_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rms_norm_args *a = args;
    const uint16_t *w = tensors->at[W];
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t row = units.begin; row < units.end; row++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + row * a->dim;
        uint16_t *y = (uint16_t *)tensors->at[Y] + row * a->dim;
        const lane16 r = lane16_set1(iso_mean_rsqrt_avx2(x, a->dim, a->eps));
        uint32_t i = 0;

        for (; i + 16 <= a->dim; i += 16)
            scale16(x + i, w + i, r, y + i, 16, &bad);
        if (i < a->dim)
            scale16(x + i, w + i, r, y + i, a->dim - i, &bad);
    }
    iso_flags_raise(tensors->flags, lane8_flags(bad));
}
