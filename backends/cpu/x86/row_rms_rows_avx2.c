/* row_rms with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/row_rms_rows.h"
