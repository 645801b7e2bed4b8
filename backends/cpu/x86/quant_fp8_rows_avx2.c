/* quant_fp8: 32 elements at a time as 16-bit integers. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/quant_avx2.h"
#include "ggml-style-ops/args.h"

enum { X, CODE, SCALE };
enum { STEP = 32 };

/* Codes of scaled values below 2^-6, multiples of 2^-9: how many middles lie below; a middle whose
 * even neighbour is the upper one is given as the number before it. */
static inline __m256i small_codes(__m256i a)
{
    static const int16_t limit[8] = {
        0x3a80, 0x3b40 - 1, 0x3ba0, 0x3be0 - 1, 0x3c10, 0x3c30 - 1, 0x3c50, 0x3c70 - 1};
    __m256i code = _mm256_setzero_si256();

    for (int i = 0; i < 8; i++)
        code = _mm256_sub_epi16(code, _mm256_cmpgt_epi16(a, _mm256_set1_epi16(limit[i])));
    return code;
}

/* The rule of numerics 2.4 on the upper halves; the lower ones are zero. */
static inline __m256i codes_of(__m256i x, int32_t k)
{
    const __m256i a = _mm256_min_epu16(quant_scaled(quant_magnitude(x), k),
                                       _mm256_set1_epi16(0x43e0));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(a, 4), _mm256_set1_epi16(1));
    const __m256i up = _mm256_add_epi16(_mm256_add_epi16(a, _mm256_set1_epi16(7)), odd);
    const __m256i sign = _mm256_slli_epi16(_mm256_srli_epi16(x, 15), 7);
    const __m256i is_small = _mm256_cmpgt_epi16(_mm256_set1_epi16(0x3c80), a);
    __m256i code = _mm256_sub_epi16(_mm256_srli_epi16(up, 4), _mm256_set1_epi16(960));

    if (!_mm256_testz_si256(is_small, is_small))
        code = _mm256_blendv_epi8(code, small_codes(a), is_small);
    return _mm256_or_si256(code, sign);
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, uint32_t n, uint32_t *flags)
{
    __m256i max = _mm256_setzero_si256();
    uint32_t magnitude;
    int32_t k;

    for (uint32_t i = 0; i < n; i += STEP)
        max = _mm256_max_epu16(max, _mm256_max_epu16(quant_magnitude(quant_load(x + i)),
                                                     quant_magnitude(quant_load(x + i + 16))));
    magnitude = quant_max(max);
    *flags |= magnitude >= ISO_BF16_OUTSIDE ? LANE_RANGE : 0;
    k = iso_scale_exponent(magnitude, 135, 96, -22);
    for (uint32_t i = 0; i < n; i += STEP) {
        const __m256i bytes = _mm256_packus_epi16(codes_of(quant_load(x + i), k),
                                                  codes_of(quant_load(x + i + 16), k));

        _mm256_storeu_si256((void *)(code + i), _mm256_permute4x64_epi64(bytes, 0xd8));
    }
    return (uint8_t)(k + 127);
}

void iso_cpu_quant_fp8_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
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
