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

/* ISO_SIMDE: the files of the wider sets are compiled for AVX2, so they run where that is. */
static bool has_avx512(void)
{
#ifdef ISO_SIMDE
    return true;
#else
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
}

static bool has_vnni(void)
{
#ifdef ISO_SIMDE
    return true;
#else
    return __builtin_cpu_supports("avx512vnni");
#endif
}

/* Each set is offered with all weaker ones only. */
uint32_t iso_isa_detect(void)
{
    uint32_t there = 0;

    if (!has_avx2())
        return there;
    there |= 1u << ISO_ISA_avx2;
    if (!has_avx512())
        return there;
    there |= 1u << ISO_ISA_avx512;
    return has_vnni() ? there | 1u << ISO_ISA_vnni : there;
}
