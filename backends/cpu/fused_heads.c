/* Head by head: a matmul makes the features of one head for all rows, then the other parts work on
 * that head of every row. */
#include "backends/cpu/fused.h"

static const char *refuse(const iso_fused_call *call)
{
    const iso_tensor_desc *out = &call->part[0]->out[0];
    const uint64_t rows = (uint64_t)out->extent[0], heads = (uint64_t)out->extent[1];

    if (out->rank != 3 || heads == 0
        || iso_cpu_part_units(call->part[0]) != heads * (uint64_t)out->extent[2])
        return "the features are no heads";
    for (uint32_t k = 1; k < call->fusion->part_count; k++) {
        if (!iso_cpu_is_link(call, k, 0, k - 1))
            return "a part reads the one before it by another input";
        if (iso_cpu_part_units(call->part[k]) != rows * heads)
            return "a part whose units are not heads";
    }
    return NULL;
}

static uint64_t units_of(const iso_cpu_fused *fused)
{
    const uint64_t rows = fused->part[1].live;

    return rows == 0 ? 0 : fused->part[1].units / rows;
}

static void run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_cpu_fused *fused = args;
    const uint64_t heads = units_of(fused), rows = fused->part[1].live;
    const uint64_t features = heads == 0 ? 0 : fused->part[0].units / heads;

    (void)tensors;
    for (uint64_t h = units.begin; h < units.end; h++) {
        iso_cpu_part_run(&fused->part[0], h * features, (h + 1) * features);
        for (uint32_t k = 1; k < fused->part_count; k++)
            for (uint64_t t = 0; t < rows; t++)
                iso_cpu_part_run(&fused->part[k], t * heads + h, t * heads + h + 1);
    }
}

const iso_cpu_form iso_cpu_form_heads = {"fused/cpu/heads", refuse, units_of, run};
