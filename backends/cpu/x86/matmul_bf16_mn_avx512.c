/* matmul_bf16 with AVX-512. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/matmul_bf16_mn.h"
