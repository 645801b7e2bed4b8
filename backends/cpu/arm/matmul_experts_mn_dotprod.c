/* matmul_experts with sdot: sums of four products of eight bits at once. */
#include "backends/cpu/arm/experts_neon.h"
#include "backends/cpu/kernels.h"

static inline int32x4_t digit_sum(experts_codes c, const int8_t *digit)
{
    const int32x4_t sum = vdotq_s32(vdupq_n_s32(0), c.even, vld1q_s8(digit));

    return vdotq_s32(sum, c.odd, vld1q_s8(digit + EXPERTS_BLOCK / 2));
}

static inline int32x4_t block_sum(experts_codes c, const experts_digits *x)
{
    const int32x4_t low = digit_sum(c, x->digit[0]), middle = digit_sum(c, x->digit[1]);
    const int32x4_t high = digit_sum(c, x->digit[2]);

    return vaddq_s32(low, vaddq_s32(vshlq_n_s32(middle, 7), vshlq_n_s32(high, 14)));
}

void iso_cpu_matmul_experts_mn_dotprod(const void *args, const iso_tensors *tensors,
                                       iso_range units)
{
    iso_flags_raise(tensors->flags, experts_run(args, tensors, units, block_sum));
}
