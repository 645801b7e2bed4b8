/* hc_split, token by token. A row of the 4 x 4 matrix is a vector. Pairwise sums have the order
 * (a + b) + (c + d) in every lane; divisions are native (9.1). */
#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"

enum { MIX, R, SCALE, BASE, PRE, POST, COMB };
enum { STREAMS = 4, MIXES = 24, VECTORS = MIXES / 4 };

static inline float32x4_t row_sums(float32x4_t x)
{
    const float32x4_t pair = vpaddq_f32(x, x);

    return vpaddq_f32(pair, pair);
}

/* Row softmax (+ eps). */
static inline float32x4_t softmax_row(float32x4_t x, float32x4_t eps)
{
    const float32x4_t e = lane4_exp_nonpositive(vsubq_f32(x, vdupq_n_f32(vmaxvq_f32(x))));

    return vaddq_f32(vdivq_f32(e, row_sums(e)), eps);
}

static inline void column_step(float32x4_t c[STREAMS], float32x4_t eps)
{
    const float32x4_t sum = vaddq_f32(vaddq_f32(vaddq_f32(c[0], c[1]), vaddq_f32(c[2], c[3])),
                                      eps);

    for (uint32_t j = 0; j < STREAMS; j++)
        c[j] = vdivq_f32(c[j], sum);
}

static inline void row_step(float32x4_t c[STREAMS], float32x4_t eps)
{
    for (uint32_t j = 0; j < STREAMS; j++)
        c[j] = vdivq_f32(c[j], vaddq_f32(row_sums(c[j]), eps));
}

/* z: mix * r is cleaned, the rest rounds step by step (13.1). */
static inline void make_z(const float *mix, float r, const float *scale, const float *base,
                          float32x4_t z[VECTORS], uint32x4_t *bad)
{
    for (uint32_t v = 0; v < VECTORS; v++) {
        const float32x4_t mixed = lane4_clean(vmulq_n_f32(vld1q_f32(mix + 4 * v), r), bad);

        z[v] = vaddq_f32(vmulq_n_f32(mixed, scale[v < 2 ? v : 2]), vld1q_f32(base + 4 * v));
    }
}

void iso_cpu_hc_split_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_split_args *a = args;
    const float *mix = tensors->at[MIX], *r = tensors->at[R];
    float *pre = tensors->at[PRE], *post = tensors->at[POST], *comb = tensors->at[COMB];
    const float32x4_t eps = vdupq_n_f32(a->eps);
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint64_t t = units.begin; t < units.end; t++) {
        float32x4_t z[VECTORS], *c = z + 2;

        make_z(mix + t * MIXES, r[t], tensors->at[SCALE], tensors->at[BASE], z, &bad);
        vst1q_f32(pre + t * STREAMS, lane4_clean(vaddq_f32(lane4_sigmoid(z[0]), eps), &bad));
        vst1q_f32(post + t * STREAMS, lane4_clean(vmulq_n_f32(lane4_sigmoid(z[1]), 2.0f), &bad));
        for (uint32_t j = 0; j < STREAMS; j++)
            c[j] = softmax_row(c[j], eps);
        column_step(c, eps);
        for (uint32_t i = 1; i < a->iterations; i++) {
            row_step(c, eps);
            column_step(c, eps);
        }
        for (uint32_t j = 0; j < STREAMS; j++)
            vst1q_f32(comb + (t * STREAMS + j) * STREAMS, lane4_clean(c[j], &bad));
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
