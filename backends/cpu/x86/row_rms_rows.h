/* row_rms_rows: row by row; the sum in the 32 lanes of numerics 7. A file includes vec8.h or
 * vec16.h first. */
#ifndef ISO_CPU_X86_ROW_RMS_ROWS_H
#define ISO_CPU_X86_ROW_RMS_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/row_sum_vec.h"
#include "ggml-style-ops/args.h"

enum { X, R };

void VEC_KERNEL(row_rms_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_row_rms_args *a = args;
    const uint16_t *x = tensors->at[X];
    float *r = tensors->at[R];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++)
        r[t] = lane_clean(iso_mean_rsqrt_vec(x + t * a->dim, a->dim, a->eps), &flags);
    iso_flags_raise(tensors->flags, flags);
}

#endif
