/* matmul_groups with AVX2: bf16 activations, e4m3 weights times a power of two. Products are exact
 * and the power of two may go with either operand (numerics 5, 6.4): it is multiplied into the 32
 * inputs that share it. Scales for which `clean` could change an operand, and inputs
 * outside the domain, take the way of the reference, operand by operand. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/matmul_groups_avx2.h"

static uint32_t weights(const panel_job *job, const panel_block *b, float *wt)
{
    const e4m3_weights w = groups_weights_of(job, b);

    return e4m3_decode(&w, b, wt);
}

static void halves(const panel_job *job, const panel_block *b, __m256i *half)
{
    const e4m3_weights w = groups_weights_of(job, b);

    e4m3_halves(&w, b, half);
}

static bool direct(const panel_job *job, const panel_block *b, uint64_t t, panel_sum *sum)
{
    const e4m3_weights w = groups_weights_of(job, b);

    return e4m3_direct(job, &w, b, t, sum);
}

void iso_cpu_matmul_groups_mn_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_groups_args *a = args;
    const panel_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights,
                           groups_inputs, direct, groups_store, halves, groups_line};

    iso_flags_raise(tensors->flags, panel_run(&job, units));
}
