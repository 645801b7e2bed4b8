/* row_rms, row by row; the sum in the 32 lanes of numerics 7. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/arm/row_sum_neon.h"
#include "ggml-style-ops/args.h"

enum { X, R };

void iso_cpu_row_rms_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_row_rms_args *a = args;
    const uint16_t *x = tensors->at[X];
    float *r = tensors->at[R];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++)
        r[t] = lane_clean(iso_mean_rsqrt_neon(x + t * a->dim, a->dim, a->eps), &flags);
    iso_flags_raise(tensors->flags, flags);
}
