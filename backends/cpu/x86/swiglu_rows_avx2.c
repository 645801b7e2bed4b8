/* swiglu with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/swiglu_rows.h"
