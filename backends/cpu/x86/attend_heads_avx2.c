/* attend with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/attend_heads.h"
