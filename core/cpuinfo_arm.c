#include "core/cpuinfo.h"

#include <sys/auxv.h>

/* Advanced SIMD is part of every AArch64 that a hosted system runs on; the system says in its
 * hardware words whether it is there and what stands beside it. */
uint32_t iso_isa_detect(void)
{
    const uint64_t words = getauxval(AT_HWCAP);
    uint32_t mask = 0;

    if ((words & HWCAP_ASIMD) != 0)
        mask |= 1u << ISO_ISA_neon;
    if ((words & HWCAP_ASIMD) != 0 && (words & HWCAP_ASIMDDP) != 0)
        mask |= 1u << ISO_ISA_dotprod;
    return mask;
}
