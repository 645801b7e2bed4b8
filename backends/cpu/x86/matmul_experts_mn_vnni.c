/* matmul_experts with AVX-512 VNNI. */
#define VEC_KERNEL(name) iso_cpu_##name##_vnni
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/fp4_dot_vnni.h"

#include "backends/cpu/x86/matmul_experts_mn.h"
