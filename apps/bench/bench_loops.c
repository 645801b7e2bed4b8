#include "apps/bench/bench_loops.h"

#include "core/cpuinfo.h"

#include <string.h>

static const bench_loops *const sets[] = {
    &bench_loops_base,
#if ISO_BUILD_X86
    &bench_loops_avx2,
#ifndef ISO_SIMDE
    &bench_loops_avx512,
#endif
#endif
};

/* A set that isa.def does not name is not there. */
static bool is_there(const bench_loops *loops)
{
    for (iso_isa isa = 0; isa < ISO_ISA_COUNT; isa++)
        if (strcmp(iso_isa_name(isa), loops->isa) == 0)
            return (iso_isa_available() & 1u << isa) != 0;
    return false;
}

const bench_loops *bench_loops_at(uint32_t index)
{
    for (size_t i = 0; i < ISO_COUNT_OF(sets); i++)
        if (is_there(sets[i]) && index-- == 0)
            return sets[i];
    return NULL;
}
