/* moe_sum with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/moe_sum_rows.h"
