#include "core/cpuinfo.h"

#include <cpuid.h>

/* The compilers' run-time support knows the system's register state too; not all of them know
 * F16C by name, which cpuid leaf 1 tells. */
static bool has_avx2(void)
{
    enum { F16C = 1 << 29 };
    unsigned a, b, c = 0, d;

    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
        && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & F16C) != 0;
}

uint32_t iso_isa_detect(void) { return has_avx2() ? 1u << ISO_ISA_avx2 : 0; }
