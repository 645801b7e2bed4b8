/* dequant: 16 elements at a time. Values are exact (numerics 2.8): clean drops what is below 2^-50
 * and the sign of a zero, and rounding to bf16 changes nothing. */
#include "backends/cpu/arm/e2m1_neon.h"
#include "backends/cpu/arm/e4m3_neon.h"
#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { CODE, SCALE, Y };
enum { STEP = 16, BYTE_MIN = 64, BYTE_MAX = 168 };

/* The value of a scale byte, +0 if it is not legal. */
static inline float scale_value(uint32_t byte, bool is_e4m3, bool *is_legal)
{
    *is_legal = is_e4m3 ? (byte & 0x7fu) != 0x7fu : byte >= BYTE_MIN && byte <= BYTE_MAX;
    if (!*is_legal)
        return 0.0f;
    return is_e4m3 ? lane_e4m3_f32(byte) : lane_ue8m0_f32(byte);
}

static inline void store16(const float *value, uint16_t *y, uint32x4_t *bad)
{
    for (uint32_t i = 0; i < STEP; i += 8) {
        const lane8 v = {vld1q_f32(value + i), vld1q_f32(value + i + 4)};

        lane8_store_bf16_n(y + i, 8, v, bad);
    }
}

static uint32_t e2m1_group(const iso_dequant_args *a, const uint8_t *code, uint32_t byte,
                           uint16_t *y)
{
    uint8x8_t any = vdup_n_u8(0);
    uint32x4_t bad = vdupq_n_u32(0);
    float value[STEP];
    bool is_legal;
    const float scale = scale_value(byte, a->is_e4m3_scale != 0, &is_legal) * 0.5f;

    for (uint32_t i = 0; i < a->group; i += STEP) {
        any = vorr_u8(any, vand_u8(vld1_u8(code + i / 2), vdup_n_u8(0x77)));
        e2m1_sixteen(code + i / 2, scale, value);
        store16(value, y + i, &bad);
    }
    if (!is_legal && (a->is_e4m3_scale != 0 || vmaxv_u8(any) != 0))
        return LANE_RANGE;
    return lane4_flags(bad);
}

/* A NaN code gives +0, as every code does under a scale that is not legal. */
static uint32_t e4m3_group(const iso_dequant_args *a, const uint8_t *code, uint32_t byte,
                           uint16_t *y)
{
    const bool is_legal = byte >= BYTE_MIN && byte <= BYTE_MAX;
    uint8x16_t max = vdupq_n_u8(0);
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint32_t i = 0; i < a->group; i += STEP) {
        const uint8x16_t c = vld1q_u8(code + i), m = vandq_u8(c, vdupq_n_u8(0x7f));
        const uint8x16_t is_nan = vceqq_u8(m, vdupq_n_u8(0x7f));
        const uint8x16_t keep = is_legal ? vmvnq_u8(is_nan) : vdupq_n_u8(0);
        uint8_t kept[E4M3_STEP] = {0};
        float value[E4M3_STEP];

        max = vmaxq_u8(max, m);
        vst1q_u8(kept, vandq_u8(c, keep));
        e4m3_step(kept, is_legal ? byte : 127, value);
        store16(value, y + i, &bad);
    }
    if (vmaxvq_u8(max) == 0x7f || (!is_legal && vmaxvq_u8(max) != 0))
        return LANE_RANGE;
    return lane4_flags(bad);
}

void iso_cpu_dequant_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_dequant_args *a = args;
    const uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint64_t groups = a->dim / a->group;           /* rows are dense */
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t g = units.begin * groups; g < units.end * groups; g++) {
        const uint64_t at = g * a->group;

        flags |= a->is_e2m1 != 0 ? e2m1_group(a, code + at / 2, scale[g], y + at)
                                 : e4m3_group(a, code + at, scale[g], y + at);
    }
    iso_flags_raise(tensors->flags, flags);
}
