/* attend with AVX-512. */
#include "backends/cpu/x86/vec16.h"

#include "backends/cpu/x86/attend_heads.h"
