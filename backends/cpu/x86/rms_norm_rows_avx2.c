/* rms_norm with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/rms_norm_rows.h"
