/* Slices of an expert's hidden features: both matmuls, the activation and the quantiser of one
 * slice by one thread. Activation and quantiser see a slice of a row as a row of its own, which is
 * what it is to them: the one works value by value, the other group by group. */
#include "backends/cpu/fused.h"
#include "ggml-style-ops/args.h"

#include <string.h>

/* A multiple of every group, and of what the packed kernels take at once. */
enum { SLICE = 128 };
enum { GATE, UP, SWIGLU, QUANT, PARTS };
enum { G, U, W, Y };
enum { X, CODE, SCALE };

static const char *refuse(const iso_fused_call *call)
{
    const iso_tensor_desc *g = &call->part[GATE]->out[0], *u = &call->part[UP]->out[0];
    const uint64_t n = (uint64_t)iso_desc_last(g);
    iso_quant_fp8_args quant;

    if (call->fusion->part_count != PARTS || strcmp(call->part[SWIGLU]->op->name, "swiglu") != 0
        || strcmp(call->part[QUANT]->op->name, "quant_fp8") != 0)
        return "other parts";
    if (iso_cpu_has_link(call, UP) || call->link[SWIGLU][G].part != GATE + 1
        || call->link[SWIGLU][U].part != UP + 1 || call->link[SWIGLU][W].part != 0
        || !iso_cpu_is_link(call, QUANT, X, SWIGLU))
        return "parts that hang together otherwise";
    if (!iso_desc_equal(g, u) || iso_cpu_part_units(call->part[GATE]) != n
        || iso_cpu_part_units(call->part[UP]) != n)
        return "units that are no features";
    call->part[QUANT]->op->fill(call->part[QUANT], &quant);
    if (quant.dim != n || SLICE % quant.group != 0)
        return "groups that do not fit slices of 128";
    return NULL;
}

static uint64_t units_of(const iso_cpu_fused *fused)
{
    return (fused->part[GATE].units + SLICE - 1) / SLICE;
}

static void *at(const iso_cpu_part *part, uint32_t i, uint64_t bytes)
{
    return (unsigned char *)part->tensors.at[i] + bytes;
}

/* Channels [begin, begin + count) of one row, as a row. */
static void activate(const iso_cpu_part *part, uint64_t row, uint64_t begin, uint32_t count)
{
    iso_swiglu_args args;
    uint64_t values;
    void *slice[4];
    const iso_tensors tensors = {slice, part->tensors.block, part->tensors.flags};

    memcpy(&args, part->args, sizeof args);
    values = row * args.dim + begin;
    args.rows = (iso_live){.count = 1};
    args.per_row = 1;
    args.dim = count;
    slice[G] = at(part, G, 2 * values);
    slice[U] = at(part, U, 2 * values);
    slice[W] = part->tensors.at[W] == NULL ? NULL : at(part, W, 4 * row);
    slice[Y] = at(part, Y, 2 * values);
    part->kernel(&args, &tensors, (iso_range){0, 1});
}

static void quantise(const iso_cpu_part *part, uint64_t row, uint64_t begin, uint32_t count)
{
    iso_quant_fp8_args args;
    uint64_t values, groups;
    void *slice[3];
    const iso_tensors tensors = {slice, part->tensors.block, part->tensors.flags};

    memcpy(&args, part->args, sizeof args);
    values = row * args.dim + begin;
    groups = row * ((args.dim + args.group - 1) / args.group) + begin / args.group;
    args.rows = (iso_live){.count = 1};
    args.per_row = 1;
    args.dim = count;
    slice[X] = at(part, X, 2 * values);
    slice[CODE] = at(part, CODE, values);
    slice[SCALE] = at(part, SCALE, groups);
    part->kernel(&args, &tensors, (iso_range){0, 1});
}

static void run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_cpu_fused *fused = args;
    const uint64_t n = fused->part[GATE].units;

    (void)tensors;
    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint64_t begin = unit * SLICE, end = n - begin < SLICE ? n : begin + SLICE;

        iso_cpu_part_run(&fused->part[GATE], begin, end);
        iso_cpu_part_run(&fused->part[UP], begin, end);
        for (uint64_t row = 0; row < fused->part[SWIGLU].units; row++) {
            activate(&fused->part[SWIGLU], row, begin, (uint32_t)(end - begin));
            quantise(&fused->part[QUANT], row, begin, (uint32_t)(end - begin));
        }
    }
}

const iso_cpu_form iso_cpu_form_gate = {"fused/cpu/gate", refuse, units_of, run};
