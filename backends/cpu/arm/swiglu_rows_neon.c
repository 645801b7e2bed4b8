/* swiglu, row by row, channels as lanes. */
#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { G, U, W, Y };

/* Comparisons are false for NaN, as those of the reference: it stays. */
static inline float32x4_t at_most(float32x4_t x, float32x4_t most)
{
    return vbslq_f32(vcgtq_f32(x, most), most, x);
}

static inline float32x4_t at_least(float32x4_t x, float32x4_t least)
{
    return vbslq_f32(vcltq_f32(x, least), least, x);
}

static inline float32x4_t activate4(float32x4_t g, float32x4_t u, float limit, float w)
{
    const float32x4_t most = vdupq_n_f32(limit), least = vdupq_n_f32(-limit);
    const float32x4_t up = at_least(at_most(u, most), least);

    return vmulq_n_f32(vmulq_f32(lane4_silu(at_most(g, most)), up), w);
}

typedef struct row {
    const uint16_t *g, *u;
    uint16_t *y;
    float limit, w;
} row;

static inline void activate8(const row *r, uint32_t i, uint32_t count, uint32x4_t *bad)
{
    const lane8 g = lane8_load_bf16_n(r->g + i, count), u = lane8_load_bf16_n(r->u + i, count);
    const lane8 value = {activate4(g.low, u.low, r->limit, r->w),
                         activate4(g.high, u.high, r->limit, r->w)};

    lane8_store_bf16_n(r->y + i, count, value, bad);
}

void iso_cpu_swiglu_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_swiglu_args *a = args;
    const float *w = tensors->at[W];
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const row r = {
            .g = (const uint16_t *)tensors->at[G] + unit * a->dim,
            .u = (const uint16_t *)tensors->at[U] + unit * a->dim,
            .y = (uint16_t *)tensors->at[Y] + unit * a->dim,
            .limit = a->limit,
            .w = w != NULL ? w[unit] : 1.0f,     /* a product with 1 is exact */
        };
        uint32_t i = 0;

        for (; i + 8 <= a->dim; i += 8)
            activate8(&r, i, 8, &bad);
        if (i < a->dim)
            activate8(&r, i, a->dim - i, &bad);
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
