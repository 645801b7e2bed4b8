/* index_score with AVX2. */
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/fp4_dot_madd.h"

#include "backends/cpu/x86/index_score_rows.h"
