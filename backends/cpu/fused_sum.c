/* Slices of the model's features: the experts' last matmul and the sum over the experts of one
 * slice by one thread. The sum's kernel reads experts that lie one behind the other, so the slice
 * is gathered first. */
#include "backends/cpu/fused.h"
#include "ggml-style-ops/args.h"

#include <string.h>

enum { SLICE = 128, PICKS_MAX = 16 };
enum { DOWN, SUM, PARTS };
enum { ROUTED, SHARED, OUT };

static const char *refuse(const iso_fused_call *call)
{
    const iso_tensor_desc *y = &call->part[DOWN]->out[0];

    if (call->fusion->part_count != PARTS || strcmp(call->part[SUM]->op->name, "moe_sum") != 0)
        return "other parts";
    if (!iso_cpu_is_link(call, SUM, ROUTED, DOWN))
        return "parts that hang together otherwise";
    if (iso_cpu_part_units(call->part[DOWN]) != (uint64_t)iso_desc_last(y))
        return "units that are no features";
    return y->extent[1] <= PICKS_MAX ? NULL : "more than 16 experts";
}

static uint64_t units_of(const iso_cpu_fused *fused)
{
    return (fused->part[DOWN].units + SLICE - 1) / SLICE;
}

/* Channels [begin, begin + count) of token t. */
static void add(const iso_cpu_part *part, uint64_t t, uint64_t begin, uint32_t count)
{
    iso_moe_sum_args args;
    _Alignas(64) uint16_t experts[PICKS_MAX * SLICE];
    const uint16_t *routed = part->tensors.at[ROUTED];
    uint64_t dim;
    void *slice[3];
    const iso_tensors tensors = {slice, part->tensors.block, part->tensors.flags};

    memcpy(&args, part->args, sizeof args);
    dim = args.dim;
    for (uint64_t p = 0; p < args.picks; p++)
        memcpy(experts + p * count, routed + (t * args.picks + p) * dim + begin,
               count * sizeof *experts);
    args.rows = (iso_live){.count = 1};
    args.dim = count;
    slice[ROUTED] = experts;
    slice[SHARED] = (uint16_t *)part->tensors.at[SHARED] + t * dim + begin;
    slice[OUT] = (uint16_t *)part->tensors.at[OUT] + t * dim + begin;
    part->kernel(&args, &tensors, (iso_range){0, 1});
}

static void run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_cpu_fused *fused = args;
    const uint64_t n = fused->part[DOWN].units;

    (void)tensors;
    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint64_t begin = unit * SLICE, end = n - begin < SLICE ? n : begin + SLICE;

        iso_cpu_part_run(&fused->part[DOWN], begin, end);
        for (uint64_t t = 0; t < fused->part[SUM].units; t++)
            add(&fused->part[SUM], t, begin, (uint32_t)(end - begin));
    }
}

const iso_cpu_form iso_cpu_form_sum = {"fused/cpu/sum", refuse, units_of, run};
