/* rope, head by head, pairs as lanes: a word of 32 bits is a pair. Products are rounded separately
 * (numerics 10.3). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

enum { X, ANGLES, Y };

/* Eight pairs; `flip` is the sign bit where the rotation is inverse. */
static inline void rotate8(const uint16_t *x, const float *angle, __m256 flip, uint16_t *y,
                           __m256i *bad)
{
    const __m256i word = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256 a = vec_float(_mm256_slli_epi32(word, 16));
    const __m256 b = vec_float(_mm256_and_si256(word, vec_u32(0xffff0000u)));
    const __m256 low = _mm256_loadu_ps(angle), high = _mm256_loadu_ps(angle + 8);
    /* Pairs 0 1 4 5 | 2 3 6 7 of both, then in order. */
    const __m256d cosines = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    const __m256d sines = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0xdd));
    const __m256 c = _mm256_castpd_ps(_mm256_permute4x64_pd(cosines, 0xd8));
    const __m256 s = _mm256_xor_ps(_mm256_castpd_ps(_mm256_permute4x64_pd(sines, 0xd8)), flip);
    const __m256 y0 = _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s));
    const __m256 y1 = _mm256_add_ps(_mm256_mul_ps(a, s), _mm256_mul_ps(b, c));
    const __m256i out = _mm256_or_si256(vec_bf16(y0, bad),
                                        _mm256_slli_epi32(vec_bf16(y1, bad), 16));

    _mm256_storeu_si256((__m256i *)(void *)y, out);
}

/* The pairs at the end of a head: lanes without one are zero. */
static void rotate_part(const uint16_t *x, const float *angle, __m256 flip, uint16_t *y,
                        uint32_t pairs, __m256i *bad)
{
    uint16_t from[16] = {0}, to[16];
    float angles[16] = {0};

    memcpy(from, x, 2 * pairs * sizeof *from);
    memcpy(angles, angle, 2 * pairs * sizeof *angles);
    rotate8(from, angles, flip, to, bad);
    memcpy(y, to, 2 * pairs * sizeof *to);
}

void iso_cpu_rope_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rope_args *a = args;
    const uint32_t first = a->dim - 2 * a->pairs;
    const __m256 flip = vec_const(a->inverse != 0 ? 0x80000000u : 0);
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint16_t *x = (const uint16_t *)tensors->at[X] + unit * a->dim;
        const float *angle = (const float *)tensors->at[ANGLES] + unit / a->heads * a->pairs * 2;
        uint16_t *y = (uint16_t *)tensors->at[Y] + unit * a->dim;
        uint32_t i = 0;

        memcpy(y, x, first * sizeof *y);
        for (; i + 8 <= a->pairs; i += 8)
            rotate8(x + first + 2 * i, angle + 2 * i, flip, y + first + 2 * i, &bad);
        if (i < a->pairs)
            rotate_part(x + first + 2 * i, angle + 2 * i, flip, y + first + 2 * i, a->pairs - i,
                        &bad);
    }
    iso_flags_raise(tensors->flags, vec_flags(bad));
}
