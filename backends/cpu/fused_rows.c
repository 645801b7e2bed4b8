/* Row by row: the kernels of the parts one after the other on the same few rows, while these are
 * in the cache. */
#include "backends/cpu/fused.h"

/* State operators move input 1, all others work on input 0. */
static bool is_row_link(const iso_fused_call *call, uint32_t k)
{
    const uint32_t input = (call->part[k]->op->flags & ISO_OP_UPDATE) != 0 ? 1 : 0;

    for (uint32_t i = 0; i < call->part[k]->op->input_count; i++)
        if ((call->link[k][i].part != 0) != (i == input))
            return false;
    return true;
}

static const char *refuse(const iso_fused_call *call)
{
    uint64_t fewest = UINT64_MAX;

    for (uint32_t k = 0; k < call->fusion->part_count; k++) {
        const uint64_t units = iso_cpu_part_units(call->part[k]);

        fewest = units < fewest ? units : fewest;
        if (k != 0 && !is_row_link(call, k))
            return "a part reads the one before it by another input";
    }
    for (uint32_t k = 0; k < call->fusion->part_count && fewest != 0; k++)
        if (iso_cpu_part_units(call->part[k]) % fewest != 0)
            return "units that do not divide each other";
    return NULL;
}

static uint64_t units_of(const iso_cpu_fused *fused)
{
    uint64_t fewest = UINT64_MAX;

    for (uint32_t k = 0; k < fused->part_count; k++)
        fewest = fused->part[k].units < fewest ? fused->part[k].units : fewest;
    return fewest;
}

static void run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_cpu_fused *fused = args;
    const uint64_t all = units_of(fused);

    (void)tensors;
    for (uint32_t k = 0; k < fused->part_count && units.begin < units.end; k++) {
        const uint64_t each = fused->part[k].units / all;

        iso_cpu_part_run(&fused->part[k], units.begin * each, units.end * each);
    }
}

const iso_cpu_form iso_cpu_form_rows = {"fused/cpu/rows", refuse, units_of, run};
