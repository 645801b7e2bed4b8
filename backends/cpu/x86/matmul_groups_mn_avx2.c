/* matmul_groups with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/matmul_groups_mn.h"
