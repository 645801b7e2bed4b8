/* rope, head by head, pairs as lanes: a word of 32 bits is a pair. Products are rounded separately
 * (numerics 10.3). */
#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { X, ANGLES, Y };

/* Four pairs; `flip` is the sign bit where the rotation is inverse. */
static inline void rotate4(const uint16_t *x, const float *angle, uint32x4_t flip, uint16_t *y,
                           uint32x4_t *bad)
{
    const uint32x4_t word = vreinterpretq_u32_u16(vld1q_u16(x));
    const float32x4_t a = lane4_float(vshlq_n_u32(word, 16));
    const float32x4_t b = lane4_float(vandq_u32(word, vdupq_n_u32(0xffff0000u)));
    const float32x4x2_t t = vld2q_f32(angle);                    /* cosines, sines */
    const float32x4_t c = t.val[0], s = lane4_float(veorq_u32(lane4_bits(t.val[1]), flip));
    const float32x4_t y0 = vsubq_f32(vmulq_f32(a, c), vmulq_f32(b, s));
    const float32x4_t y1 = vaddq_f32(vmulq_f32(a, s), vmulq_f32(b, c));
    const uint32x4_t low = vshrq_n_u32(lane4_bf16(y0, bad), 16), high = lane4_bf16(y1, bad);

    vst1q_u16(y, vreinterpretq_u16_u32(vsliq_n_u32(low, vshrq_n_u32(high, 16), 16)));
}

/* The pairs at the end of a head: lanes without one are zero. */
static void rotate_part(const uint16_t *x, const float *angle, uint32x4_t flip, uint16_t *y,
                        uint32_t pairs, uint32x4_t *bad)
{
    uint16_t from[8] = {0}, to[8];
    float angles[8] = {0};

    memcpy(from, x, 2 * pairs * sizeof *from);
    memcpy(angles, angle, 2 * pairs * sizeof *angles);
    rotate4(from, angles, flip, to, bad);
    memcpy(y, to, 2 * pairs * sizeof *to);
}

void iso_cpu_rope_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rope_args *a = args;
    const uint32_t first = a->dim - 2 * a->pairs;
    const uint32x4_t flip = vdupq_n_u32(a->inverse != 0 ? 0x80000000u : 0);
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + unit * a->dim;
        const float *angle = (const float *)tensors->at[ANGLES] + unit / a->heads * a->pairs * 2;
        uint16_t *y = (uint16_t *)tensors->at[Y] + unit * a->dim;
        uint32_t i = 0;

        memcpy(y, x, first * sizeof *y);
        for (; i + 4 <= a->pairs; i += 4)
            rotate4(x + first + 2 * i, angle + 2 * i, flip, y + first + 2 * i, &bad);
        if (i < a->pairs)
            rotate_part(x + first + 2 * i, angle + 2 * i, flip, y + first + 2 * i, a->pairs - i,
                        &bad);
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
