/* e4m3_rows: eight rows of e4m3 codes turned so that lanes are rows. For files that are compiled
 * with the AVX2 and F16C flags only.
 *
 * The code's sign, exponent and mantissa, put at the top of an f16, are 2^-8 times its value, also
 * for subnormal codes; vcvtph2ps is exact and no flush mode reaches it (numerics 2.1, 3). The 2^8
 * is made good in the scale, which is a power of two (numerics 6.4). */
#ifndef ISO_CPU_X86_E4M3_ROWS_H
#define ISO_CPU_X86_E4M3_ROWS_H

#include "backends/cpu/x86/panel.h"
#include "ggml-style-ops/lane/fp8.h"

enum {
    E4M3_STEP = 32,                      /* k per step; scales are per 32 or 128 k */
    E4M3_BYTE_MIN = 86,                  /* no code but zero is below 2^-50: 2^(86-127-9) */
    E4M3_BYTE_MAX = 168                  /* no code reaches 2^50: 480 * 2^(168-127) < 2^50 */
};

/* Scales for which `clean` changes no operand. Others go through lane_clean. */
static inline bool e4m3_scale_is_plain(uint32_t byte)
{
    return byte - E4M3_BYTE_MIN <= E4M3_BYTE_MAX - E4M3_BYTE_MIN;
}

/* The operand of the reference: exact dequantised value, cleaned. */
static inline float e4m3_operand(uint32_t code, uint32_t scale, uint32_t *flags)
{
    return lane_clean(lane_e4m3_f32(code) * lane_ue8m0_f32(scale), flags);
}

/* 32 codes of eight rows as f16: out[j * stride] holds k = j of the eight rows in its lower half,
 * k = j + 16 in its upper half. A code, as a signed byte, times 128 has its sign twice on top. */
static inline void e4m3_turn(const uint8_t *const row[8], uint64_t at, __m256i *out,
                             uint32_t stride)
{
    const __m256i keep = _mm256_set1_epi16((int16_t)0xbf80);     /* not the copy of the sign */
    const __m256i first = _mm256_set1_epi16(0x0080), second = _mm256_set1_epi16((int16_t)0x8000);
    __m256i a[8], b[8];

    for (uint32_t i = 0; i < 4; i++) {
        const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)(row[2 * i] + at));
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(row[2 * i + 1] + at));

        a[i] = _mm256_unpacklo_epi16(u, v);
        a[i + 4] = _mm256_unpackhi_epi16(u, v);
    }
    for (uint32_t i = 0; i < 4; i++) {           /* rows 0 .. 3 to b[0 .. 3], 4 .. 7 behind */
        const uint32_t rows = i / 2, side = i % 2;
        const __m256i u = a[4 * side + 2 * rows], v = a[4 * side + 2 * rows + 1];

        b[4 * rows + 2 * side] = _mm256_unpacklo_epi32(u, v);
        b[4 * rows + 2 * side + 1] = _mm256_unpackhi_epi32(u, v);
    }
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t high = 0; high < 2; high++) {
            const __m256i pair = high != 0 ? _mm256_unpackhi_epi64(b[i], b[i + 4])
                                           : _mm256_unpacklo_epi64(b[i], b[i + 4]);
            const __m256i even = _mm256_maddubs_epi16(first, pair);
            const __m256i odd = _mm256_maddubs_epi16(second, pair);
            __m256i *to = out + (4 * i + 2 * high) * stride;

            _mm256_store_si256(to, _mm256_and_si256(even, keep));
            _mm256_store_si256(to + stride, _mm256_and_si256(odd, keep));
        }
}

/* 2^(byte + shift - 127), for 1 <= byte + shift <= 254. */
static inline __m256 e4m3_power(uint32_t byte, int32_t shift)
{
    return lane8_const((byte + (uint32_t)shift) << 23);
}

/* 32 codes in a row times `scale`, which includes the 2^8; out is aligned to 32. */
static inline void e4m3_row(const uint8_t *code, __m256 scale, float *out)
{
    const __m256i keep = _mm256_set1_epi16((int16_t)0xbf80);     /* not the copy of the sign */

    for (uint32_t i = 0; i < E4M3_STEP; i += 16) {
        const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(code + i));
        const __m256i h = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(c), 7), keep);
        const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(h));
        const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));

        _mm256_store_ps(out + i, _mm256_mul_ps(low, scale));
        _mm256_store_ps(out + i + 8, _mm256_mul_ps(high, scale));
    }
}

/* Weights of a block: row-major codes and the scales of the block's tile row. */
typedef struct e4m3_weights {
    const uint8_t *code, *scale;         /* of the operand; of tile row n / tile */
    uint32_t k, shift;                   /* a scale is for 2^shift k */
} e4m3_weights;

static inline uint32_t e4m3_shift(uint32_t tile) { return tile == 32 ? 5 : 7; }

static inline void e4m3_row_pointers(const e4m3_weights *w, const panel_block *b,
                                     const uint8_t *row[PANEL_LANES])
{
    for (uint32_t j = 0; j < PANEL_LANES; j++)
        row[j] = w->code + panel_feature(b, j) * w->k;
}

/* What is left of the rows behind the last full step or line, with zero codes behind it. */
typedef struct e4m3_tail {
    uint8_t code[PANEL_LANES][PANEL_LINE];
} e4m3_tail;

static inline void e4m3_take_tail(e4m3_tail *tail, const uint8_t *row[PANEL_LANES], uint64_t at,
                                  uint32_t count)
{
    memset(tail, 0, sizeof *tail);
    for (uint32_t j = 0; j < PANEL_LANES; j++) {
        memcpy(tail->code[j], row[j] + at, count);
        row[j] = tail->code[j];
    }
}

/* panel_weights_fn of both operators, operand by operand. */
static inline uint32_t e4m3_decode(const e4m3_weights *w, const panel_block *b, float *wt)
{
    const uint8_t *row[PANEL_LANES];
    uint32_t flags = 0;

    e4m3_row_pointers(w, b, row);
    for (uint32_t k = b->begin; k < b->begin + b->count; k++, wt += PANEL_LANES)
        for (uint32_t j = 0; j < PANEL_LANES; j++)
            wt[j] = e4m3_operand(row[j][k], w->scale[k >> w->shift], &flags);
    return flags;
}

/* panel_halves_fn of both operators: the f16 lack 2^8 and the scales. Groups of rows are the outer
 * loop: rows that lie a multiple of 1 KiB apart share few places of the first cache, so a group
 * uses up its lines at once. */
static inline void e4m3_halves(const e4m3_weights *w, const panel_block *b, __m256i *half)
{
    const uint64_t ahead = panel_ahead(b->begin, w->k, LANE_CHUNK);
    const uint32_t full = b->count / E4M3_STEP, rest = b->count % E4M3_STEP;
    const uint8_t *row[PANEL_LANES], *end[PANEL_LANES];
    e4m3_tail tail;

    e4m3_row_pointers(w, b, row);
    memcpy(end, row, sizeof end);
    if (rest != 0)
        e4m3_take_tail(&tail, end, b->begin + full * E4M3_STEP, rest);
    for (uint32_t g = 0; g < PANEL_VECTORS; g++) {
        for (uint32_t j = 8 * g; j < 8 * g + 8; j++) {
            _mm_prefetch((const char *)row[j] + b->begin + ahead, _MM_HINT_T1);
            _mm_prefetch((const char *)row[j] + b->begin + ahead + 64, _MM_HINT_T1);
        }
        for (uint32_t s = 0; s < full; s++)
            e4m3_turn(row + 8 * g, b->begin + s * E4M3_STEP, half + s * 16 * PANEL_VECTORS + g,
                      PANEL_VECTORS);
        if (rest != 0)
            e4m3_turn(end + 8 * g, 0, half + full * 16 * PANEL_VECTORS + g, PANEL_VECTORS);
    }
}

enum { E4M3_AHEAD = 512, E4M3_HALVES = 32 * PANEL_VECTORS };

/* Eight k of a line for one row of inputs: sums[g] += x[k] * w[k], k = 8 part .. 8 part + 7. half
 * is [2][16][4] vectors as of e4m3_turn; the f16 are 2^-8 of their code, and x makes it good. */
static inline void e4m3_part(const __m256i *half, uint32_t part, const float *x,
                             __m256 sums[PANEL_VECTORS])
{
    const uint32_t at = part / 4 * 16 + part % 2 * 8;
    const __m128i *h = (const __m128i *)(const void *)(half + at * PANEL_VECTORS) + part / 2 % 2;
    __m256 s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];

    x += 8 * part;
    for (uint32_t k = 0; k < 8; k++, h += 2 * PANEL_VECTORS) {
        const __m256 a = _mm256_broadcast_ss(x + k);

        s0 = panel_add(s0, a, _mm256_cvtph_ps(_mm_load_si128(h)), PANEL_HALF);
        s1 = panel_add(s1, a, _mm256_cvtph_ps(_mm_load_si128(h + 2)), PANEL_HALF);
        s2 = panel_add(s2, a, _mm256_cvtph_ps(_mm_load_si128(h + 4)), PANEL_HALF);
        s3 = panel_add(s3, a, _mm256_cvtph_ps(_mm_load_si128(h + 6)), PANEL_HALF);
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* panel_direct_fn, but for w. A line of 64 k is turned in eight parts between the sums of
 * the line before it: the sums wait for their own latency, and the turns fill the time. Each group
 * of eight rows uses up a cache line at once (see e4m3_halves). */
static inline bool e4m3_direct(const panel_job *job, const e4m3_weights *w, const panel_block *b,
                               uint64_t t, panel_sum *sum)
{
    const uint32_t lines = (w->k - 1) / PANEL_LINE + 1;
    _Alignas(64) __m256i half[2][E4M3_HALVES];
    _Alignas(32) float x[2][PANEL_LINE];
    __m256 sums[PANEL_VECTORS] = {0};
    const uint8_t *row[PANEL_LANES];
    e4m3_tail tail;

    e4m3_row_pointers(w, b, row);
    for (uint32_t i = 0; i <= lines; i++) {
        const uint32_t begin = i * PANEL_LINE, left = w->k - begin;
        const uint64_t ahead = begin + panel_ahead(begin, w->k, E4M3_AHEAD);
        uint64_t at = begin;

        if (i < lines
            && !job->line(job, b, t, begin, left < PANEL_LINE ? left : PANEL_LINE, x[i % 2]))
            return false;
        if (i + 1 == lines && left < PANEL_LINE) {
            e4m3_take_tail(&tail, row, begin, left);
            at = 0;
        }
        for (uint32_t part = 0; part < 8; part++) {
            const uint32_t g = part / 2, step = part % 2;

            if (i < lines) {
                for (uint32_t j = 0; j < 4; j++)
                    _mm_prefetch((const char *)row[4 * part + j] + ahead, _MM_HINT_T1);
                e4m3_turn(row + 8 * g, at + step * E4M3_STEP,
                          half[i % 2] + step * 16 * PANEL_VECTORS + g, PANEL_VECTORS);
            }
            if (i > 0)
                e4m3_part(half[(i - 1) % 2], part, x[(i - 1) % 2], sums);
        }
        if (i % 2 == 0 ? i > 0 : i == lines)             /* two lines are a chunk */
            for (uint32_t v = 0; v < PANEL_VECTORS; v++) {
                panel_push(sum, (i - 1) / 2, v, sums[v]);
                sums[v] = _mm256_setzero_ps();
            }
    }
    return true;
}

#endif
