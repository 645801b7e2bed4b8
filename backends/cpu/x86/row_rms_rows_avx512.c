/* row_rms with AVX-512. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/row_rms_rows.h"
