/* matmul_bf16_rows32: weights in layout ROWS32: a word is two k of a feature, and a shift or a mask
 * makes each f32. An odd K has a zero behind its last weight. Products of bf16 values are exact
 * (numerics 5), so fused multiply-add has the bits of mul and add. A file includes vec8.h or
 * vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_BF16_ROWS32_H
#define ISO_CPU_X86_MATMUL_BF16_ROWS32_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/matmul_bf16_vec.h"
#include "backends/cpu/x86/tiles.h"

enum { PAIR = 2, PAIR_BYTES = 4 * PANEL_LANES };                 /* k; of a tile */

static veci load(const uint8_t *pair, uint32_t v)
{
    return VECS(loadu)((const veci *)(const void *)pair + v);
}

/* An odd count is that of the last chunk. */
static bool weights(const tiles_job *job, const tiles_block *b, float *wt)
{
    const uint8_t *pair = b->tile + (uint64_t)b->p.begin / PAIR * PAIR_BYTES;

    (void)job;
    for (uint32_t k = 0; k < b->p.count; k += PAIR, pair += PAIR_BYTES, wt += PAIR * PANEL_LANES) {
        _mm_prefetch((const char *)pair + TILES_AHEAD, _MM_HINT_T0);
        _mm_prefetch((const char *)pair + TILES_AHEAD + 64, _MM_HINT_T0);
        for (uint32_t v = 0; v < PANEL_VECTORS; v++) {
            const veci word = load(pair, v);

            VEC(store_ps)(wt + VEC_LANES * v, bf16_even(word));
            VEC(store_ps)(wt + PANEL_LANES + VEC_LANES * v, bf16_odd(word));
        }
    }
    return true;
}

static bool inputs(const tiles_job *job, const tiles_block *b, uint64_t t, float *x)
{
    bf16_inputs(&job->panel, &b->p, t, x);
    return true;
}

/* An odd K adds +0 * +0 behind its last product: a sum that began with +0 is never -0, and keeps
 * its bits. */
static bool direct(const tiles_job *job, const tiles_block *b, uint64_t t, panel_sum *sum)
{
    const uint8_t *pair = b->tile;
    panel_block c = b->p;

    for (uint32_t chunk = 0; chunk * LANE_CHUNK < job->panel.k; chunk++) {
        const uint32_t left = job->panel.k - chunk * LANE_CHUNK;
        _Alignas(64) float x[LANE_CHUNK];
        vecf s[PANEL_VECTORS] = {0};

        c.begin = chunk * LANE_CHUNK;
        c.count = left < LANE_CHUNK ? left : LANE_CHUNK;
        bf16_inputs(&job->panel, &c, t, x);
        for (uint32_t k = 0; k < c.count; k += PAIR, pair += PAIR_BYTES) {
            const vecf a0 = VEC(set1_ps)(x[k]), a1 = VEC(set1_ps)(x[k + 1]);

            _mm_prefetch((const char *)pair + TILES_AHEAD, _MM_HINT_T0);
            _mm_prefetch((const char *)pair + TILES_AHEAD + 64, _MM_HINT_T0);
            PANEL_UNROLL
            for (uint32_t v = 0; v < PANEL_VECTORS; v++) {
                const veci word = load(pair, v);

                s[v] = panel_add(s[v], a0, bf16_even(word), PANEL_F32);
                s[v] = panel_add(s[v], a1, bf16_odd(word), PANEL_F32);
            }
        }
        for (uint32_t v = 0; v < PANEL_VECTORS; v++)
            panel_push(sum, chunk, v, s[v]);
    }
    return true;
}

void VEC_KERNEL(matmul_bf16_rows32)(const void *args, const iso_tensors *tensors,
                                     iso_range units)
{
    const iso_matmul_bf16_args *a = args;
    const tiles_job job = {
        .panel = {a, tensors->at, a->rows.count, a->k, a->n, NULL, NULL, NULL, bf16_store, NULL,
                  NULL},
        .packed = tensors->at[BF16_W],
        .tile_bytes = ((uint64_t)a->k + 1) / PAIR * PAIR_BYTES,
        .weights = weights,
        .inputs = inputs,
        .direct = direct,
    };

    iso_flags_raise(tensors->flags, tiles_run(&job, units));
}

#endif
