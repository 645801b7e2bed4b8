/* quant_nvfp4: a group of 16 elements at a time as 16-bit integers. Limits times the scale are
 * exact bf16 numbers and take the place of the division (numerics 11). */
#include "backends/cpu/arm/quant_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"

enum { X, CODE, SCALE };
enum { GROUP = 16, MAGNITUDE_MIN = 0x3c40 };      /* 6 * 2^-9 as bf16 */

/* Limits of the codes for scale s >= 2^-9; those that belong to the upper code are one less. */
static inline void make_limits(float s, uint16_t limit[7])
{
    static const float t[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

    for (uint32_t i = 0; i < 7; i++)
        limit[i] = (uint16_t)((lane_bits(t[i] * s) >> 16) - i % 2);
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *values, uint32_t *flags)
{
    const uint16x8_t x = vld1q_u16(values), y = vld1q_u16(values + 8);
    const uint16x8_t a = quant_magnitude(x), b = quant_magnitude(y);
    const uint32_t magnitude = vmaxvq_u16(vmaxq_u16(a, b));
    const uint32_t m = magnitude < MAGNITUDE_MIN ? MAGNITUDE_MIN : magnitude;
    const uint32_t scale = lane_e4m3(lane_bf16_f32(m) / 6.0f, flags);
    uint16_t limit[7];

    *flags |= magnitude >= ISO_BF16_OUTSIDE ? LANE_RANGE : 0;
    make_limits(lane_e4m3_f32(scale), limit);
    vst1_u8(code, quant_e2m1_pack(quant_e2m1(x, a, limit), quant_e2m1(y, b, limit)));
    return (uint8_t)scale;
}

void iso_cpu_quant_nvfp4_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_nvfp4_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint64_t groups = a->dim / GROUP;
    uint32_t flags = 0;

    for (uint64_t g = units.begin * groups; g < units.end * groups; g++)
        scale[g] = quantise_group(code + g * (GROUP / 2), x + g * GROUP, &flags);
    iso_flags_raise(tensors->flags, flags);
}
