/* simd: the one door to vector intrinsics. Only kernels whose files are compiled for an instruction
 * set include it; an inline function compiled with other flags in two files would be a crash on
 * the older processor. */
#ifndef ISO_BACKENDS_CPU_SIMD_H
#define ISO_BACKENDS_CPU_SIMD_H

#if defined __aarch64__
#include <arm_neon.h>
#else
#include <immintrin.h>
#ifdef ISO_SIMDE_AVX512
#include "backends/cpu/x86/simde.h"
#endif
#endif

#endif
