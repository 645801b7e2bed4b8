/* quant_fp8: 8 elements at a time as 16-bit integers. */
#include "backends/cpu/arm/quant_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { X, CODE, SCALE };
enum { STEP = 8 };

/* Codes of scaled values below 2^-6, multiples of 2^-9: how many middles lie below; a middle whose
 * even neighbour is the upper one is given as the number before it. */
static inline uint16x8_t small_codes(uint16x8_t a)
{
    static const uint16_t limit[8] = {0x3a80, 0x3b40 - 1, 0x3ba0, 0x3be0 - 1,
                                      0x3c10, 0x3c30 - 1, 0x3c50, 0x3c70 - 1};
    uint16x8_t code = vdupq_n_u16(0);

    for (int i = 0; i < 8; i++)
        code = vsubq_u16(code, vcgtq_u16(a, vdupq_n_u16(limit[i])));
    return code;
}

/* The rule of numerics 2.4 on the upper halves; the lower ones are zero. */
static inline uint8x8_t codes_of(uint16x8_t x, int32_t k)
{
    const uint16x8_t a = vminq_u16(quant_scaled(quant_magnitude(x), k), vdupq_n_u16(0x43e0));
    const uint16x8_t odd = vandq_u16(vshrq_n_u16(a, 4), vdupq_n_u16(1));
    const uint16x8_t up = vaddq_u16(vaddq_u16(a, vdupq_n_u16(7)), odd);
    const uint16x8_t sign = vshlq_n_u16(vshrq_n_u16(x, 15), 7);
    const uint16x8_t is_small = vcltq_u16(a, vdupq_n_u16(0x3c80));
    uint16x8_t code = vsubq_u16(vshrq_n_u16(up, 4), vdupq_n_u16(960));

    if (vmaxvq_u16(is_small) != 0)
        code = vbslq_u16(is_small, small_codes(a), code);
    return vmovn_u16(vorrq_u16(code, sign));
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, uint32_t n, uint32_t *flags)
{
    uint16x8_t max = vdupq_n_u16(0);
    uint32_t magnitude;
    int32_t k;

    for (uint32_t i = 0; i < n; i += STEP)
        max = vmaxq_u16(max, quant_magnitude(vld1q_u16(x + i)));
    magnitude = vmaxvq_u16(max);
    *flags |= magnitude >= ISO_BF16_OUTSIDE ? LANE_RANGE : 0;
    k = iso_scale_exponent(magnitude, 135, 96, -22);
    for (uint32_t i = 0; i < n; i += STEP)
        vst1_u8(code + i, codes_of(vld1q_u16(x + i), k));
    return (uint8_t)(k + 127);
}

void iso_cpu_quant_fp8_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_fp8_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint64_t groups = (a->dim + a->group - 1) / a->group;
    uint32_t flags = 0;

    for (uint64_t row = units.begin; row < units.end; row++)
        for (uint64_t g = 0; g < groups; g++) {
            const uint64_t begin = g * a->group, at = row * a->dim + begin;
            const uint32_t left = (uint32_t)(a->dim - begin);

            scale[row * groups + g] = quantise_group(
                code + at, x + at, left < a->group ? left : a->group, &flags);
        }
    iso_flags_raise(tensors->flags, flags);
}
