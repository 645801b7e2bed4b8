/* Two operators side by side: one list of pieces for both, so that no thread waits between them. */
#include "backends/cpu/fused.h"

static const char *refuse(const iso_fused_call *call)
{
    if (call->fusion->part_count != 2 || iso_cpu_has_link(call, 1))
        return "parts that depend on each other";
    return NULL;
}

static uint64_t units_of(const iso_cpu_fused *fused)
{
    return fused->part[0].units + fused->part[1].units;
}

static void run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_cpu_fused *fused = args;
    const uint64_t first = fused->part[0].units;

    (void)tensors;
    if (units.begin < first)
        iso_cpu_part_run(&fused->part[0], units.begin, units.end < first ? units.end : first);
    if (units.end > first)
        iso_cpu_part_run(&fused->part[1], units.begin > first ? units.begin - first : 0,
                         units.end - first);
}

const iso_cpu_form iso_cpu_form_pair = {"fused/cpu/pair", refuse, units_of, run};
