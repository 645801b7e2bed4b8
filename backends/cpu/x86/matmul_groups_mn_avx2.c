/* matmul_groups with AVX2: bf16 activations, e4m3 weights times a power of two. Products are exact
 * and the power of two may go with either operand (numerics 5, 6.4): it is multiplied into the 32
 * inputs that share it. Scales for which `clean` could change an operand, and inputs
 * outside the domain, take the way of the reference, operand by operand. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/e4m3_rows.h"
#include "ggml-style-ops/args.h"

enum { X, W, WS, Y };

static e4m3_weights weights_of(const panel_job *job, const panel_block *b)
{
    const iso_matmul_groups_args *a = job->args;
    const uint32_t shift = e4m3_shift(a->tile);
    const uint64_t tiles = ((a->k - 1) >> shift) + 1;

    return (e4m3_weights){job->at[W], (const uint8_t *)job->at[WS] + (b->n >> shift) * tiles, a->k,
                          shift};
}

/* Row t of the block's group. */
static const uint16_t *input_row(const panel_job *job, const panel_block *b, uint64_t t)
{
    const iso_matmul_groups_args *a = job->args;

    return (const uint16_t *)job->at[X] + (t * a->groups + b->part) * a->k;
}

static uint32_t weights(const panel_job *job, const panel_block *b, float *wt)
{
    const e4m3_weights w = weights_of(job, b);

    return e4m3_decode(&w, b, wt);
}

static uint32_t inputs(const panel_job *job, const panel_block *b, uint64_t t, float *x)
{
    panel_bf16_row(input_row(job, b, t) + b->begin, b->count, x);
    return 0;
}

static void halves(const panel_job *job, const panel_block *b, __m256i *half)
{
    const e4m3_weights w = weights_of(job, b);

    e4m3_halves(&w, b, half);
}

/* Set in the lanes of inputs whose magnitude is not 0 and not in [2^-50, 2^50). */
static inline __m256i is_outside(const uint16_t *half)
{
    const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)half);
    const __m256i a = _mm256_and_si256(u, _mm256_set1_epi16(0x7fff));
    const __m256i above = _mm256_sub_epi16(a, _mm256_set1_epi16(LANE_CLEAN_MIN >> 16));
    const __m256i range = _mm256_set1_epi16((LANE_CLEAN_MAX - LANE_CLEAN_MIN) >> 16);
    const __m256i is_far = _mm256_cmpeq_epi16(_mm256_max_epu16(above, range), above);

    return _mm256_andnot_si256(_mm256_cmpeq_epi16(a, _mm256_setzero_si256()), is_far);
}

static bool line(const panel_job *job, const panel_block *b, uint64_t t, uint32_t begin,
                 uint32_t count, float *x)
{
    const e4m3_weights w = weights_of(job, b);
    const uint16_t *half = input_row(job, b, t) + begin;
    uint16_t copy[PANEL_LINE];
    __m256i bad = _mm256_setzero_si256();

    if (count < PANEL_LINE) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, half, count * sizeof *half);
        half = copy;
    }
    for (uint32_t i = 0; i < PANEL_LINE; i += E4M3_STEP, half += E4M3_STEP, x += E4M3_STEP) {
        const uint32_t byte = w.scale[(begin + (i < count ? i : 0)) >> w.shift];
        /* 2^-50 .. 2^50 times 2^(86 - 127 + 8) .. 2^(168 - 127 + 8): far inside f32 */
        const __m256 scale = e4m3_power(byte, 8);

        if (!e4m3_scale_is_plain(byte))
            return false;
        bad = _mm256_or_si256(bad, _mm256_or_si256(is_outside(half), is_outside(half + 16)));
        for (uint32_t k = 0; k < E4M3_STEP; k += 8)
            _mm256_store_ps(x + k, _mm256_mul_ps(lane8_load_bf16(half + k), scale));
    }
    return lane8_flags(bad) == 0;
}

static bool direct(const panel_job *job, const panel_block *b, uint64_t t, panel_sum *sum)
{
    const e4m3_weights w = weights_of(job, b);

    return e4m3_direct(job, &w, b, t, sum);
}

static uint32_t store(const panel_job *job, const panel_block *b, uint64_t t, const float *y)
{
    const iso_matmul_groups_args *a = job->args;

    return panel_store_bf16((uint16_t *)job->at[Y] + t * a->groups * a->n + b->n, b, y);
}

void iso_cpu_matmul_groups_mn_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_groups_args *a = args;
    const panel_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, inputs, direct,
                           store, halves, line};

    iso_flags_raise(tensors->flags, panel_run(&job, units));
}
