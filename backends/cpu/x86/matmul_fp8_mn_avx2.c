/* matmul_fp8 with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/matmul_fp8_mn.h"
