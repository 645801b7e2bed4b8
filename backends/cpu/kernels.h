/* kernels: the rows of kernels.def as declarations and as a table. */
#ifndef ISO_BACKENDS_CPU_KERNELS_H
#define ISO_BACKENDS_CPU_KERNELS_H

#include "backends/select.h"

/* Rows of another architecture do not exist in this build: KERNEL_IF_<isa> keeps or drops one. */
#define KERNEL_IF_portable(...) __VA_ARGS__
#if ISO_BUILD_X86
#define KERNEL_IF_avx2(...) __VA_ARGS__
#define KERNEL_IF_avx512(...) __VA_ARGS__
#define KERNEL_IF_vnni(...) __VA_ARGS__
#else
#define KERNEL_IF_avx2(...)
#define KERNEL_IF_avx512(...)
#define KERNEL_IF_vnni(...)
#endif
#if ISO_BUILD_ARM
#define KERNEL_IF_neon(...) __VA_ARGS__
#define KERNEL_IF_dotprod(...) __VA_ARGS__
#else
#define KERNEL_IF_neon(...)
#define KERNEL_IF_dotprod(...)
#endif

#define KERNEL(op, form, isa, layout, accepts, grain)                                             \
    KERNEL_IF_##isa(DECLARE_KERNEL(op, form, isa))
#define DECLARE_KERNEL(op, form, isa)                                                             \
    void iso_cpu_##op##_##form##_##isa(const void *args, const iso_tensors *tensors,              \
                                       iso_range units);
#include "backends/cpu/kernels.def"
#undef KERNEL
#undef DECLARE_KERNEL

/* Rows 0 .. count - 1; index `count` means the operator's reference. */
uint32_t iso_cpu_kernel_count(void);
const iso_select_row *iso_cpu_kernel_rows(void);
iso_kernel_fn *iso_cpu_kernel_function(uint32_t index);      /* index < count */
uint64_t iso_cpu_kernel_grain(uint32_t index);               /* index < count; units */
const char *iso_cpu_reference_name(const iso_op *op);        /* "rms_norm/cpu/reference" */

#endif
