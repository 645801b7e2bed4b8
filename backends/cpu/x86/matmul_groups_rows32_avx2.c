/* matmul_groups with AVX2, weights in layout ROWS32. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/matmul_groups_rows32.h"
