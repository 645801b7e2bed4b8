/* tiles_e4m3: tiles of e4m3 weights in layout ROWS32. A file includes vec8.h or vec16.h
 * first.
 *
 * 32 bytes are one k of 32 features. Taken as 16-bit words they are the codes of the odd features
 * above those of the even ones; a code under its sign and a zero bit is an f16 of 2^-8 times its
 * value (e4m3_rows.h), and the 2^8 is made good in a scale. */
#ifndef ISO_CPU_X86_TILES_E4M3_H
#define ISO_CPU_X86_TILES_E4M3_H

#include "backends/cpu/x86/e4m3_rows.h"
#include "backends/cpu/x86/tiles.h"

/* 32 codes: features 0 2 .. 14, 16 18 .. 30, 1 3 .. 15, 17 19 .. 31, 2^-8 of their values. */
__attribute__((always_inline)) static inline void tiles_e4m3(const uint8_t *code,
                                                             vecf w[PANEL_VECTORS])
{
    const __m256i keep = _mm256_set1_epi16((int16_t)0xbf80);     /* not the copy of the sign */
    const __m256i pair = _mm256_loadu_si256((const void *)code);
    const __m256i up = _mm256_srai_epi16(_mm256_slli_epi16(pair, 8), 1);
    const __m256i even = _mm256_and_si256(up, keep);
    const __m256i odd = _mm256_and_si256(_mm256_srai_epi16(pair, 1), keep);

    vec_sixteen_f16(even, w);
    vec_sixteen_f16(odd, w + PANEL_VECTORS / 2);
}

/* tiles_weights_fn, but for w */
static inline bool tiles_e4m3_weights(const e4m3_weights *w, const tiles_block *b, float *wt)
{
    const uint8_t *code = b->tile + (uint64_t)b->p.begin * PANEL_LANES;
    const uint32_t end = b->p.begin + b->p.count;

    for (uint32_t k = b->p.begin; k < end;) {
        const uint32_t byte = w->scale[k >> w->shift], run = ((k >> w->shift) + 1) << w->shift;
        const uint32_t stop = run < end ? run : end;

        if (!e4m3_scale_is_plain(byte))
            return false;
        for (const vecf scale = e4m3_power(byte, 8); k < stop; k++, wt += PANEL_LANES) {
            vecf v[PANEL_VECTORS];

            if (k % 2 == 0)
                _mm_prefetch((const char *)code + LANE_CHUNK * PANEL_LANES, _MM_HINT_T0);
            tiles_e4m3(code, v);
            code += PANEL_LANES;
            for (uint32_t i = 0; i < PANEL_VECTORS; i++)
                VEC(store_ps)(wt + VEC_LANES * i, VEC(mul_ps)(v[i], scale));
        }
    }
    return true;
}

/* tiles_weights_exact_fn, but for w */
static inline uint32_t tiles_e4m3_exact(const tiles_job *job, const e4m3_weights *w,
                                        const tiles_block *b, float *wt)
{
    const uint8_t *code = b->tile + (uint64_t)b->p.begin * PANEL_LANES;
    uint32_t flags = 0;

    for (uint32_t i = 0; i < b->p.count; i++, wt += PANEL_LANES, code += PANEL_LANES) {
        const uint32_t byte = w->scale[(b->p.begin + i) >> w->shift];

        memset(wt, 0, PANEL_LANES * sizeof *wt);
        for (uint32_t j = b->first; j < b->first + b->p.lanes; j++)
            wt[tiles_place(job, j)] = e4m3_operand(code[j], byte, &flags);
    }
    return flags;
}

/* tiles_direct_fn; panel.line makes x with all scales. Prefetches do not fault. */
static inline bool tiles_e4m3_direct(const tiles_job *job, const tiles_block *b, uint64_t t,
                                     panel_sum *sum)
{
    const uint8_t *code = b->tile;
    const uint32_t k = job->panel.k;
    panel_block c = b->p;

    for (uint32_t chunk = 0; chunk * LANE_CHUNK < k; chunk++) {
        _Alignas(64) float x[LANE_CHUNK];
        vecf s[PANEL_VECTORS] = {0};

        c.begin = chunk * LANE_CHUNK;
        c.count = k - c.begin < LANE_CHUNK ? k - c.begin : LANE_CHUNK;
        if (!panel_lines(&job->panel, &c, t, x))
            return false;
        for (uint32_t i = 0; i < c.count; i++, code += PANEL_LANES) {
            const vecf a = VEC(set1_ps)(x[i]);
            vecf w[PANEL_VECTORS];

            if (i % 2 == 0)
                _mm_prefetch((const char *)code + TILES_AHEAD, _MM_HINT_T0);
            tiles_e4m3(code, w);
            for (uint32_t v = 0; v < PANEL_VECTORS; v++)
                s[v] = panel_add(s[v], a, w[v], PANEL_F32);
        }
        for (uint32_t v = 0; v < PANEL_VECTORS; v++)
            panel_push(sum, chunk, v, s[v]);
    }
    return true;
}

/* Vectors first and first + 1 of what tiles_e4m3 makes. */
__attribute__((always_inline)) static inline void tiles_e4m3_pair(const uint8_t *code,
                                                                  const uint32_t first,
                                                                  vecf w[2])
{
    const __m256i keep = _mm256_set1_epi16((int16_t)0xbf80);
    __m256i pair = _mm256_loadu_si256((const void *)code);

    if (PANEL_VECTORS == 2) {
        tiles_e4m3(code, w);
        return;
    }
    if (first == 0)                      /* even codes above a zero byte */
        pair = _mm256_slli_epi16(pair, 8);
    vec_sixteen_f16(_mm256_and_si256(_mm256_srai_epi16(pair, 1), keep), w);
}

/* One chunk of `rows` rows and two vectors of features, as panel_tile: x [rows][128] has all
 * scales. */
__attribute__((always_inline)) static inline void tiles_e4m3_tile(const uint8_t *code,
                                                                  const float *x, uint32_t count,
                                                                  panel_at at,
                                                                  const uint32_t rows,
                                                                  const uint32_t first)
{
    vecf acc[PANEL_ROWS][2];

    PANEL_UNROLL
    for (uint32_t r = 0; r < rows; r++)
        acc[r][0] = acc[r][1] = VEC(setzero_ps)();
    for (uint32_t k = 0; k < count; k++, code += PANEL_LANES) {
        vecf w[2];

        if (first == 0 && k % 2 == 0)
            _mm_prefetch((const char *)code + LANE_CHUNK * PANEL_LANES, _MM_HINT_T0);
        tiles_e4m3_pair(code, first, w);
        PANEL_UNROLL
        for (uint32_t r = 0; r < rows; r++) {
            const vecf a = VEC(set1_ps)(x[r * LANE_CHUNK + k]);

            acc[r][0] = panel_add(acc[r][0], a, w[0], PANEL_F32);
            acc[r][1] = panel_add(acc[r][1], a, w[1], PANEL_F32);
        }
    }
    PANEL_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        panel_push(&at.sum[r], at.chunk, first, acc[r][0]);
        panel_push(&at.sum[r], at.chunk, first + 1, acc[r][1]);
    }
}

__attribute__((always_inline)) static inline void tiles_e4m3_both(const uint8_t *code,
                                                                  const float *x, uint32_t count,
                                                                  panel_at at,
                                                                  const uint32_t rows)
{
    tiles_e4m3_tile(code, x, count, at, rows, 0);
    if (PANEL_VECTORS > 2)
        tiles_e4m3_tile(code, x, count, at, rows, 2);
}

/* tiles_few_fn; panel.line makes x with all scales. */
static inline bool tiles_e4m3_few(const tiles_job *job, const tiles_block *b, uint64_t t,
                                  uint32_t rows, panel_sum *sum)
{
    _Alignas(64) float x[PANEL_ROWS * LANE_CHUNK];
    const uint32_t k = job->panel.k;
    panel_block c = b->p;

    for (uint32_t chunk = 0; chunk * LANE_CHUNK < k; chunk++) {
        const uint8_t *code = b->tile + (uint64_t)chunk * LANE_CHUNK * PANEL_LANES;
        const panel_at at = {sum, chunk};

        c.begin = chunk * LANE_CHUNK;
        c.count = k - c.begin < LANE_CHUNK ? k - c.begin : LANE_CHUNK;
        for (uint32_t r = 0; r < rows; r++)
            if (!panel_lines(&job->panel, &c, t + r, x + r * LANE_CHUNK))
                return false;
        switch (rows) {
        case 2: tiles_e4m3_both(code, x, c.count, at, 2); break;
        case 3: tiles_e4m3_both(code, x, c.count, at, 3); break;
        case 4: tiles_e4m3_both(code, x, c.count, at, 4); break;
        case 5: tiles_e4m3_both(code, x, c.count, at, 5); break;
        default: tiles_e4m3_both(code, x, c.count, at, 6);
        }
    }
    return true;
}

#endif
