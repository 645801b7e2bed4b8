/* matmul_groups_mn: bf16 activations, e4m3 weights times a power of two. Products are exact and the
 * power of two may go with either operand (numerics 5, 6.4): it is multiplied into the 32 inputs
 * that share it. Scales for which `clean` could change an operand, and inputs outside the domain,
 * take the way of the reference, operand by operand. A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_GROUPS_MN_H
#define ISO_CPU_X86_MATMUL_GROUPS_MN_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/matmul_groups_vec.h"

static uint32_t weights(const panel_job *job, const panel_block *b, float *wt)
{
    const e4m3_weights w = groups_weights_of(job, b);

    return e4m3_decode(&w, b, wt);
}

static void halves(const panel_job *job, const panel_block *b, veci *half)
{
    const e4m3_weights w = groups_weights_of(job, b);

    e4m3_halves(&w, b, half);
}

static bool direct(const panel_job *job, const panel_block *b, uint64_t t, panel_sum *sum)
{
    const e4m3_weights w = groups_weights_of(job, b);

    return e4m3_direct(job, &w, b, t, sum);
}

void VEC_KERNEL(matmul_groups_mn)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_groups_args *a = args;
    const panel_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights,
                           groups_inputs, direct, groups_store, halves, groups_line};

    iso_flags_raise(tensors->flags, panel_run(&job, units));
}

#endif
