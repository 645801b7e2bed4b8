/* quant_nvfp4: a group of 16 elements at a time as 16-bit integers. Limits times the scale are
 * exact bf16 numbers and take the place of the division (numerics 11). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/quant_avx2.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"

enum { X, CODE, SCALE };
enum { GROUP = 16, MAGNITUDE_MIN = 0x3c40 };      /* 6 * 2^-9 as bf16 */

/* Limits of the codes for scale s >= 2^-9; those that belong to the upper code are one less. */
static inline void make_limits(float s, __m256i limit[7])
{
    const __m256 t = _mm256_setr_ps(0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 0.0f);
    const __m256i upper = _mm256_setr_epi32(0, 1, 0, 1, 0, 1, 0, 0);
    const __m256i product = _mm256_castps_si256(_mm256_mul_ps(t, _mm256_set1_ps(s)));
    const __m256i words = _mm256_sub_epi32(_mm256_srli_epi32(product, 16), upper);
    int32_t word[8];

    _mm256_storeu_si256((void *)word, words);
    for (int i = 0; i < 7; i++)
        limit[i] = _mm256_set1_epi16((int16_t)word[i]);
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *values, uint32_t *flags)
{
    const __m256i x = quant_load(values), a = quant_magnitude(x);
    const uint32_t magnitude = quant_max(a);
    const uint32_t m = magnitude < MAGNITUDE_MIN ? MAGNITUDE_MIN : magnitude;
    const uint32_t scale = lane_e4m3(lane_bf16_f32(m) / 6.0f, flags);
    __m256i limit[7], codes;

    *flags |= magnitude >= ISO_BF16_OUTSIDE ? LANE_RANGE : 0;
    make_limits(lane_e4m3_f32(scale), limit);
    codes = _mm256_or_si256(quant_e2m1(a, limit), quant_e2m1_sign(x));
    _mm_storel_epi64((void *)code, quant_e2m1_pack(codes, codes));
    return (uint8_t)scale;
}

void iso_cpu_quant_nvfp4_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
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
