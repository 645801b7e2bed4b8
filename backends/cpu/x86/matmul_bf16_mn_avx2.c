/* matmul_bf16 with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/matmul_bf16_mn.h"
