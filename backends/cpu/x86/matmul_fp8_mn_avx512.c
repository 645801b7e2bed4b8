/* matmul_fp8 with AVX-512. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/matmul_fp8_mn.h"
