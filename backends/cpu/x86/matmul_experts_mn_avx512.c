/* matmul_experts with AVX-512. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/fp4_dot_madd.h"

#include "backends/cpu/x86/matmul_experts_mn.h"
