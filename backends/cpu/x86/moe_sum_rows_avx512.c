/* moe_sum with AVX-512. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/moe_sum_rows.h"
