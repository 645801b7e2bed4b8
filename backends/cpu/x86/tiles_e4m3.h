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

#endif
