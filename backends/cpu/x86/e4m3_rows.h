/* e4m3_rows: rows of e4m3 codes turned so that lanes are rows. A file includes vec8.h or vec16.h
 * first.
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

/* 32 codes of VEC_LANES rows as f16: out[j * stride] holds k = j of the rows in its lower half, k =
 * j + 16 in its upper half. A code, as a signed byte, times 128 has its sign twice on top. */
static inline void e4m3_turn(const uint8_t *const row[VEC_LANES], uint64_t at, veci *out,
                             uint32_t stride)
{
    const veci keep = VEC(set1_epi16)((int16_t)0xbf80);     /* not the copy of the sign */
    const veci first = VEC(set1_epi16)(0x0080), second = VEC(set1_epi16)((int16_t)0x8000);
    veci a[8], b[8];

    for (uint32_t i = 0; i < 4; i++) {
        const veci u = vec_load_eighths(row + 2 * i, at);
        const veci v = vec_load_eighths(row + 2 * i + 1, at);

        a[i] = VEC(unpacklo_epi16)(u, v);
        a[i + 4] = VEC(unpackhi_epi16)(u, v);
    }
    for (uint32_t i = 0; i < 4; i++) {           /* rows 0 .. 3 to b[0 .. 3], 4 .. 7 behind */
        const uint32_t rows = i / 2, side = i % 2;
        const veci u = a[4 * side + 2 * rows], v = a[4 * side + 2 * rows + 1];

        b[4 * rows + 2 * side] = VEC(unpacklo_epi32)(u, v);
        b[4 * rows + 2 * side + 1] = VEC(unpackhi_epi32)(u, v);
    }
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t high = 0; high < 2; high++) {
            const veci pair = high != 0 ? VEC(unpackhi_epi64)(b[i], b[i + 4])
                                           : VEC(unpacklo_epi64)(b[i], b[i + 4]);
            const veci even = VEC(maddubs_epi16)(first, pair);
            const veci odd = VEC(maddubs_epi16)(second, pair);
            veci *to = out + (4 * i + 2 * high) * stride;

            VECS(store)(to, VECS(and)(even, keep));
            VECS(store)(to + stride, VECS(and)(odd, keep));
        }
}

/* 2^(byte + shift - 127), for 1 <= byte + shift <= 254. */
static inline vecf e4m3_power(uint32_t byte, int32_t shift)
{
    return vec_const((byte + (uint32_t)shift) << 23);
}

/* 32 codes in a row times `scale`, which includes the 2^8; out is aligned to 64. */
static inline void e4m3_row(const uint8_t *code, vecf scale, float *out)
{
    const veci keep = VEC(set1_epi16)((int16_t)0xbf80);     /* not the copy of the sign */

    for (uint32_t i = 0; i < E4M3_STEP; i += 2 * VEC_LANES) {
        const vech c = VECH(loadu)((const void *)(code + i));
        const veci h = VECS(and)(VEC(slli_epi16)(VEC(cvtepi8_epi16)(c), 7), keep);
        const vecf low = VEC(cvtph_ps)(vec_low(h));
        const vecf high = VEC(cvtph_ps)(vec_high(h));

        VEC(store_ps)(out + i, VEC(mul_ps)(low, scale));
        VEC(store_ps)(out + i + VEC_LANES, VEC(mul_ps)(high, scale));
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
static inline void e4m3_halves(const e4m3_weights *w, const panel_block *b, veci *half)
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
        for (uint32_t j = VEC_LANES * g; j < VEC_LANES * (g + 1); j++) {
            _mm_prefetch((const char *)row[j] + b->begin + ahead, _MM_HINT_T1);
            _mm_prefetch((const char *)row[j] + b->begin + ahead + 64, _MM_HINT_T1);
        }
        for (uint32_t s = 0; s < full; s++)
            e4m3_turn(row + VEC_LANES * g, b->begin + s * E4M3_STEP,
                      half + s * 16 * PANEL_VECTORS + g, PANEL_VECTORS);
        if (rest != 0)
            e4m3_turn(end + VEC_LANES * g, 0, half + full * 16 * PANEL_VECTORS + g, PANEL_VECTORS);
    }
}

enum { E4M3_AHEAD = 512, E4M3_HALVES = 32 * PANEL_VECTORS };

/* Eight k of a line for one row of inputs: sums[g] += x[k] * w[k], k = 8 part .. 8 part + 7. half
 * is [2][16][PANEL_VECTORS] vectors as of e4m3_turn; the f16 are 2^-8 of their code, and x makes it
 * good. */
static inline void e4m3_part(const veci *half, uint32_t part, const float *x,
                             vecf sums[PANEL_VECTORS])
{
    const uint32_t at = part / 4 * 16 + part % 2 * 8;
    const vech *h = (const vech *)(const void *)(half + at * PANEL_VECTORS) + part / 2 % 2;
    vecf s[PANEL_VECTORS];

    PANEL_UNROLL
    for (uint32_t v = 0; v < PANEL_VECTORS; v++)
        s[v] = sums[v];
    x += 8 * part;
    for (uint32_t k = 0; k < 8; k++, h += 2 * PANEL_VECTORS) {
        const vecf a = VEC(set1_ps)(x[k]);

        PANEL_UNROLL
        for (uint32_t v = 0; v < PANEL_VECTORS; v++)
            s[v] = panel_add(s[v], a, VEC(cvtph_ps)(VECH(load)(h + 2 * v)), PANEL_HALF);
    }
    PANEL_UNROLL
    for (uint32_t v = 0; v < PANEL_VECTORS; v++)
        sums[v] = s[v];
}

/* panel_direct_fn, but for w. A line of 64 k is turned in parts between the sums of the
 * line before it: the sums wait for their own latency, and the turns fill the time. Each group of
 * rows uses up a cache line at once (see e4m3_halves). */
static inline bool e4m3_direct(const panel_job *job, const e4m3_weights *w, const panel_block *b,
                               uint64_t t, panel_sum *sum)
{
    const uint32_t lines = (w->k - 1) / PANEL_LINE + 1;
    _Alignas(64) veci half[2][E4M3_HALVES];
    _Alignas(64) float x[2][PANEL_LINE];
    vecf sums[PANEL_VECTORS] = {0};
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
            const uint32_t turn = part * PANEL_VECTORS / 4, g = turn / 2, step = turn % 2;

            if (i < lines) {
                for (uint32_t j = 0; j < 4; j++)
                    _mm_prefetch((const char *)row[4 * part + j] + ahead, _MM_HINT_T1);
                if (part * PANEL_VECTORS % 4 == 0)
                    e4m3_turn(row + VEC_LANES * g, at + step * E4M3_STEP,
                          half[i % 2] + step * 16 * PANEL_VECTORS + g, PANEL_VECTORS);
            }
            if (i > 0)
                e4m3_part(half[(i - 1) % 2], part, x[(i - 1) % 2], sums);
        }
        if (i % 2 == 0 ? i > 0 : i == lines)             /* two lines are a chunk */
            for (uint32_t v = 0; v < PANEL_VECTORS; v++) {
                panel_push(sum, (i - 1) / 2, v, sums[v]);
                sums[v] = VEC(setzero_ps)();
            }
    }
    return true;
}

#endif
