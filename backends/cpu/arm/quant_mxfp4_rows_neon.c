/* quant_mxfp4: a group of 32 elements at a time as 16-bit integers. */
#include "backends/cpu/arm/quant_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { X, CODE, SCALE };
enum { GROUP = 32 };

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, uint32_t *flags)
{
    /* 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 */
    static const uint16_t limit[7] = {0x3e80, 0x3f40 - 1, 0x3fa0, 0x3fe0 - 1,
                                      0x4020, 0x4060 - 1, 0x40a0};
    uint16x8_t value[4], code16[4], max = vdupq_n_u16(0);
    uint32_t magnitude;
    int32_t k;

    for (uint32_t i = 0; i < 4; i++) {
        value[i] = vld1q_u16(x + 8 * i);
        max = vmaxq_u16(max, quant_magnitude(value[i]));
    }
    magnitude = vmaxvq_u16(max);
    *flags |= magnitude >= ISO_BF16_OUTSIDE ? LANE_RANGE : 0;
    k = iso_scale_exponent(magnitude, 129, 64, -41);
    for (uint32_t i = 0; i < 4; i++)
        code16[i] = quant_e2m1(value[i], quant_scaled(quant_magnitude(value[i]), k), limit);
    vst1_u8(code, quant_e2m1_pack(code16[0], code16[1]));
    vst1_u8(code + 8, quant_e2m1_pack(code16[2], code16[3]));
    return (uint8_t)(k + 127);
}

void iso_cpu_quant_mxfp4_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_mxfp4_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint64_t groups = a->dim / GROUP;
    uint32_t flags = 0;

    for (uint64_t g = units.begin * groups; g < units.end * groups; g++)
        scale[g] = quantise_group(code + g * (GROUP / 2), x + g * GROUP, &flags);
    iso_flags_raise(tensors->flags, flags);
}
