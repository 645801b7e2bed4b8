#include "core/cpuinfo.h"

/* The compiler's run-time support asks the processor, and the system for the register state. */
uint32_t iso_isa_detect(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1u << ISO_ISA_avx2
                                                                           : 0;
}
