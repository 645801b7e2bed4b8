/* dequant: 16 elements at a time as bf16 patterns. Values are exact (numerics 2.8): a power-of-two
 * scale is added to the exponent field, and the eight magnitudes of e2m1 times a scale are a table
 * that a byte shuffle reads. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/fp8.h"

enum { CODE, SCALE, Y };
enum { STEP = 16, BYTE_MIN = 64, BYTE_MAX = 168 };

/* e4m3 codes of one group, scale 2^shift; *bad gathers NaN codes, *any nonzero ones. */
static inline __m256i e4m3_values(__m256i codes, int32_t shift, __m256i *bad, __m256i *any)
{
    const __m256i small_low = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0, -128, -64, 0, 32, 64, 96, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i small_high = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0x3b, 0x3b, 0x3b, 0x3c, 0x3c, 0x3c, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i a = _mm256_and_si256(codes, _mm256_set1_epi16(0x7f));
    const __m256i is_nan = _mm256_cmpeq_epi16(a, _mm256_set1_epi16(0x7f));
    const __m256i is_zero = _mm256_cmpeq_epi16(a, _mm256_setzero_si256());
    const __m256i small = _mm256_or_si256(
        _mm256_shuffle_epi8(small_low, a),
        _mm256_slli_epi16(_mm256_shuffle_epi8(small_high, a), 8));
    const __m256i normal = _mm256_add_epi16(_mm256_slli_epi16(a, 4), _mm256_set1_epi16(0x3c00));
    const __m256i is_small = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), a);
    const __m256i value = _mm256_add_epi16(_mm256_blendv_epi8(normal, small, is_small),
                                           _mm256_set1_epi16((int16_t)(shift * 128)));
    /* In [0x1b80, 0x5860] where it counts; below 2^-50 = 0x2680 it is +0. */
    const __m256i keep = _mm256_cmpgt_epi16(value, _mm256_set1_epi16(0x267f));
    const __m256i sign = _mm256_slli_epi16(_mm256_srli_epi16(codes, 7), 15);

    *bad = _mm256_or_si256(*bad, is_nan);
    *any = _mm256_or_si256(*any, a);
    return _mm256_andnot_si256(_mm256_or_si256(is_nan, is_zero),
                               _mm256_and_si256(keep, _mm256_or_si256(value, sign)));
}

/* bf16 patterns of the eight magnitudes times s, in both halves. */
static inline __m256i e2m1_table(float s, __m256i *bad)
{
    const __m256 value = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    const __m256i word = vec_bf16(_mm256_mul_ps(value, _mm256_set1_ps(s)), bad);
    const __m256i packed = _mm256_packus_epi32(word, word);

    return _mm256_permute4x64_epi64(packed, 0x88);
}

static inline __m256i load_nibbles(const uint8_t *codes)
{
    const __m128i byte = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)codes));
    const __m128i both = _mm_or_si128(byte, _mm_slli_epi16(byte, 4));

    return _mm256_cvtepu8_epi16(_mm_and_si128(both, _mm_set1_epi8(15)));
}

static inline __m256i e2m1_values(__m256i codes, __m256i table, __m256i *any)
{
    const __m256i m = _mm256_and_si256(codes, _mm256_set1_epi16(7));
    /* Bytes 2 m and 2 m + 1. */
    const __m256i at = _mm256_add_epi16(_mm256_mullo_epi16(m, _mm256_set1_epi16(0x0202)),
                                        _mm256_set1_epi16(0x0100));
    const __m256i value = _mm256_shuffle_epi8(table, at);
    const __m256i sign = _mm256_slli_epi16(_mm256_srli_epi16(codes, 3), 15);
    const __m256i is_zero = _mm256_cmpeq_epi16(value, _mm256_setzero_si256());

    *any = _mm256_or_si256(*any, m);
    return _mm256_xor_si256(value, _mm256_andnot_si256(is_zero, sign));
}

/* The value of a scale byte, +0 if it is not legal. */
static inline float scale_value(uint32_t byte, bool is_e4m3, bool *is_legal)
{
    *is_legal = is_e4m3 ? (byte & 0x7fu) != 0x7fu : byte >= BYTE_MIN && byte <= BYTE_MAX;
    if (!*is_legal)
        return 0.0f;
    return is_e4m3 ? lane_e4m3_f32(byte) : lane_ue8m0_f32(byte);
}

static uint32_t e2m1_group(const iso_dequant_args *a, const uint8_t *code, uint32_t byte,
                           uint16_t *y)
{
    __m256i any = _mm256_setzero_si256(), bad = any, table;
    bool is_legal;

    table = e2m1_table(scale_value(byte, a->is_e4m3_scale != 0, &is_legal), &bad);
    for (uint32_t i = 0; i < a->group; i += STEP)
        _mm256_storeu_si256((void *)(y + i),
                            e2m1_values(load_nibbles(code + i / 2), table, &any));
    if (!is_legal && (a->is_e4m3_scale != 0 || !_mm256_testz_si256(any, any)))
        return LANE_RANGE;
    return vec_flags(bad);
}

static uint32_t e4m3_group(const iso_dequant_args *a, const uint8_t *code, uint32_t byte,
                           uint16_t *y)
{
    const bool is_legal = byte >= BYTE_MIN && byte <= BYTE_MAX;
    const __m256i keep = _mm256_set1_epi16(is_legal ? -1 : 0);
    __m256i any = _mm256_setzero_si256(), bad = any;

    for (uint32_t i = 0; i < a->group; i += STEP) {
        const __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(code + i)));
        const __m256i value = e4m3_values(codes, is_legal ? (int32_t)byte - 127 : 0, &bad, &any);

        _mm256_storeu_si256((void *)(y + i), _mm256_and_si256(value, keep));
    }
    if (!is_legal && !_mm256_testz_si256(any, any))
        return LANE_RANGE;
    return vec_flags(bad);
}

void iso_cpu_dequant_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
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
