/* kernels: the rows of kernels.def as declarations and as a table. */
#ifndef ISO_BACKENDS_CPU_KERNELS_H
#define ISO_BACKENDS_CPU_KERNELS_H

#include "backends/select.h"

#define KERNEL(op, form, isa, layout, accepts, grain)                                             \
    void iso_cpu_##op##_##form##_##isa(const void *args, const iso_tensors *tensors,              \
                                       iso_range units);
#include "backends/cpu/kernels.def"
#undef KERNEL

/* Rows 0 .. count - 1; index `count` means the operator's reference. */
uint32_t iso_cpu_kernel_count(void);
const iso_select_row *iso_cpu_kernel_rows(void);
iso_kernel_fn *iso_cpu_kernel_function(uint32_t index);      /* index < count */
uint64_t iso_cpu_kernel_grain(uint32_t index);               /* index < count; units */
const char *iso_cpu_reference_name(const iso_op *op);        /* "rms_norm/cpu/reference" */

#endif
