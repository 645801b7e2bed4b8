/* engram_gate with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/engram_gate_rows.h"
