/* hc_collapse with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/hc_collapse_rows.h"
