/* quant_mxfp4: a group of 32 elements at a time as 16-bit integers. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/quant_avx2.h"
#include "ggml-style-ops/args.h"

enum { X, CODE, SCALE };
enum { GROUP = 32 };

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, const __m256i limit[7],
                              uint32_t *flags)
{
    const __m256i first = quant_load(x), second = quant_load(x + 16);
    const __m256i a = quant_magnitude(first), b = quant_magnitude(second);
    const uint32_t magnitude = quant_max(_mm256_max_epu16(a, b));
    const int32_t k = iso_scale_exponent(magnitude, 129, 64, -41);
    const __m256i low = quant_e2m1(quant_scaled(a, k), limit);
    const __m256i high = quant_e2m1(quant_scaled(b, k), limit);

    *flags |= magnitude >= ISO_BF16_OUTSIDE ? LANE_RANGE : 0;
    _mm_storeu_si128((void *)code,
                     quant_e2m1_pack(_mm256_or_si256(low, quant_e2m1_sign(first)),
                                     _mm256_or_si256(high, quant_e2m1_sign(second))));
    return (uint8_t)(k + 127);
}

void iso_cpu_quant_mxfp4_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_mxfp4_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint64_t groups = a->dim / GROUP;
    /* 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 */
    const __m256i limit[7] = {
        _mm256_set1_epi16(0x3e80), _mm256_set1_epi16(0x3f40 - 1), _mm256_set1_epi16(0x3fa0),
        _mm256_set1_epi16(0x3fe0 - 1), _mm256_set1_epi16(0x4020), _mm256_set1_epi16(0x4060 - 1),
        _mm256_set1_epi16(0x40a0)};
    uint32_t flags = 0;

    for (uint64_t g = units.begin * groups; g < units.end * groups; g++)
        scale[g] = quantise_group(code + g * (GROUP / 2), x + g * GROUP, limit, &flags);
    iso_flags_raise(tensors->flags, flags);
}
