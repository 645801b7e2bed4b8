/* matmul_groups with AVX-512, weights in layout ROWS32. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/matmul_groups_rows32.h"
