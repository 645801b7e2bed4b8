/* matmul_experts with NEON: products of eight bits in sums of sixteen. */
#include "backends/cpu/arm/experts_neon.h"
#include "backends/cpu/kernels.h"

/* One digit: |each of four products in a lane| <= 12 * 64, so a lane is at most 3072. */
static inline int32x4_t digit_sum(experts_codes c, const int8_t *digit)
{
    const int8x16_t even = vld1q_s8(digit), odd = vld1q_s8(digit + EXPERTS_BLOCK / 2);
    int16x8_t sum = vmull_s8(vget_low_s8(c.even), vget_low_s8(even));

    sum = vmlal_high_s8(sum, c.even, even);
    sum = vmlal_s8(sum, vget_low_s8(c.odd), vget_low_s8(odd));
    sum = vmlal_high_s8(sum, c.odd, odd);
    return vpaddlq_s16(sum);
}

static inline int32x4_t block_sum(experts_codes c, const experts_digits *x)
{
    const int32x4_t low = digit_sum(c, x->digit[0]), middle = digit_sum(c, x->digit[1]);
    const int32x4_t high = digit_sum(c, x->digit[2]);

    return vaddq_s32(low, vaddq_s32(vshlq_n_s32(middle, 7), vshlq_n_s32(high, 14)));
}

void iso_cpu_matmul_experts_mn_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    iso_flags_raise(tensors->flags, experts_run(args, tensors, units, block_sum));
}
