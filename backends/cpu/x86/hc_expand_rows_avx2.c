/* hc_expand with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/hc_expand_rows.h"
