/* matmul_bf16_avx2: what the kernels of matmul_bf16 share: inputs and results. For files that are
 * compiled with the AVX2 and F16C flags only. */
#ifndef ISO_CPU_X86_MATMUL_BF16_AVX2_H
#define ISO_CPU_X86_MATMUL_BF16_AVX2_H

#include "backends/cpu/x86/panel.h"
#include "ggml-style-ops/args.h"

enum { BF16_X, BF16_W, BF16_BIAS, BF16_Y };

/* f32 of the lower and of the upper halves of eight words. */
static inline __m256 bf16_even(__m256i pair) { return lane8_float(_mm256_slli_epi32(pair, 16)); }

static inline __m256 bf16_odd(__m256i pair)
{
    return lane8_float(_mm256_and_si256(pair, lane8_u32(0xffff0000u)));
}

/* panel_inputs_fn */
static inline uint32_t bf16_inputs(const panel_job *job, const panel_block *b, uint64_t t,
                                   float *x)
{
    panel_bf16_row((const uint16_t *)job->at[BF16_X] + t * job->k + b->begin, b->count, x);
    return 0;
}

/* panel_store_fn */
static inline uint32_t bf16_store(const panel_job *job, const panel_block *b, uint64_t t,
                                  const float *y)
{
    const iso_matmul_bf16_args *a = job->args;
    const uint16_t *bias = job->at[BF16_BIAS];
    const uint64_t at = t * a->n + b->n;
    __m256i bad = _mm256_setzero_si256();
    float out[PANEL_LANES];

    memcpy(out, y, sizeof out);
    if (a->has_bias != 0) {
        uint16_t half[PANEL_LANES];

        for (uint32_t j = 0; j < PANEL_LANES; j++)
            half[j] = bias[panel_feature(b, j)];
        for (uint32_t j = 0; j < PANEL_LANES; j += 8) {
            const __m256 v = lane8_clean(_mm256_loadu_ps(out + j), &bad);

            _mm256_storeu_ps(out + j, _mm256_add_ps(v, lane8_load_bf16(half + j)));
        }
    }
    if (a->out_f32 == 0)
        return panel_store_bf16((uint16_t *)job->at[BF16_Y] + at, b, out) | lane8_flags(bad);
    for (uint32_t j = 0; j < PANEL_LANES; j += 8)
        _mm256_storeu_ps(out + j, lane8_clean(_mm256_loadu_ps(out + j), &bad));
    memcpy((float *)job->at[BF16_Y] + at, out, b->lanes * sizeof *out);
    return lane8_flags(bad);
}

#endif
