/* rms_norm, row by row, channels as lanes; the sum in the 32 lanes of numerics 7. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/arm/row_sum_neon.h"
#include "ggml-style-ops/args.h"

enum { X, W, Y };

static inline void scale8(const uint16_t *x, const uint16_t *w, lane8 r, uint16_t *y,
                           uint32_t count, uint32x4_t *bad)
{
    const lane8 t = lane8_mul(lane8_load_bf16_n(x, count), r);

    lane8_store_bf16_n(y, count, lane8_mul(t, lane8_load_bf16_n(w, count)), bad);
}

void iso_cpu_rms_norm_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rms_norm_args *a = args;
    const uint16_t *w = tensors->at[W];
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint64_t row = units.begin; row < units.end; row++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + row * a->dim;
        uint16_t *y = (uint16_t *)tensors->at[Y] + row * a->dim;
        const lane8 r = lane8_set1(iso_mean_rsqrt_neon(x, a->dim, a->eps));
        uint32_t i = 0;

        for (; i + 8 <= a->dim; i += 8)
            scale8(x + i, w + i, r, y + i, 8, &bad);
        if (i < a->dim)
            scale8(x + i, w + i, r, y + i, a->dim - i, &bad);
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
