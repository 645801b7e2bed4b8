/* matmul_bf16_mn: weights as they lie in a checkpoint. Products of bf16 values are exact (numerics
 * 5), so fused multiply-add has the bits of mul and add. Two neighbouring weights of a row move as
 * one 32-bit word: rows of eight weights are turned with eight shuffles, and a shift or a mask
 * makes each f32. A file includes vec8.h or vec16.h first. */
#ifndef ISO_CPU_X86_MATMUL_BF16_MN_H
#define ISO_CPU_X86_MATMUL_BF16_MN_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/matmul_bf16_vec.h"
#include "backends/cpu/x86/turn_vec.h"

enum { STEP = 8, LINE = 32, AHEAD = 512 };                       /* k, k, bytes */

/* The chunk's rows, and copies of what is left behind the last full step, with zeros behind. */
typedef struct rows {
    const uint16_t *row[PANEL_LANES], *end[PANEL_LANES];
    uint16_t tail[PANEL_LANES][STEP];
} rows;

static void take_rows(const panel_job *job, const panel_block *b, rows *r)
{
    const uint16_t *w = (const uint16_t *)job->at[BF16_W] + b->begin;
    const uint32_t full = b->count / STEP * STEP, rest = b->count - full;

    for (uint32_t j = 0; j < PANEL_LANES; j++) {
        r->row[j] = w + panel_feature(b, j) * job->k;
        r->end[j] = r->tail[j];
        if (rest != 0) {
            memset(r->tail[j], 0, sizeof r->tail[j]);
            memcpy(r->tail[j], r->row[j] + full, rest * sizeof *w);
        }
    }
}

/* Prefetches `lines` cache lines of VEC_LANES rows, `distance` bytes behind k of the chunk. gcc
 * takes a function that only prefetches for one without effect and drops its calls, unless it is
 * inlined first. */
__attribute__((always_inline)) static inline void fetch(const panel_job *job,
                                                        const panel_block *b,
                                                        const uint16_t *const row[VEC_LANES],
                                                        uint32_t k, uint32_t lines,
                                                        uint32_t distance)
{
    const uint64_t row_bytes = (uint64_t)job->k * 2;
    const uint64_t ahead = panel_ahead(2 * (uint64_t)(b->begin + k), row_bytes, distance);

    for (uint32_t j = 0; j < VEC_LANES; j++)
        for (uint32_t line = 0; line < lines; line++)
            _mm_prefetch((const char *)(row[j] + k) + ahead + 64 * line, _MM_HINT_T1);
}

static uint32_t weights(const panel_job *job, const panel_block *b, float *wt)
{
    rows r;

    take_rows(job, b, &r);
    for (uint32_t g = 0; g < PANEL_VECTORS; g++) {
        fetch(job, b, r.row + VEC_LANES * g, 0, 4, 2 * LANE_CHUNK);
        for (uint32_t k = 0; k < b->count; k += STEP) {
            const bool is_tail = b->count - k < STEP;
            const uint32_t count = is_tail ? b->count - k : STEP;
            veci pair[4];           /* [i]: k = 2 i in the lower halves, 2 i + 1 above */

            vec_turn((is_tail ? r.end : r.row) + VEC_LANES * g, is_tail ? 0 : k, pair);
            for (uint32_t i = 0; i < STEP; i++)
                if (i < count)
                    VEC(store_ps)(wt + (k + i) * PANEL_LANES + VEC_LANES * g,
                                    i % 2 != 0 ? bf16_odd(pair[i / 2]) : bf16_even(pair[i / 2]));
        }
    }
    return 0;
}

/* sum + x[k] w[k], k ascending, for one step of one group. */
static inline vecf step_sum(const uint16_t *const row[VEC_LANES], uint32_t at, const float *x,
                              vecf sum)
{
    veci pair[4];

    vec_turn(row, at, pair);
    for (uint32_t i = 0; i < 4; i++) {
        sum = panel_add(sum, VEC(set1_ps)(x[2 * i]), bf16_even(pair[i]), PANEL_F32);
        sum = panel_add(sum, VEC(set1_ps)(x[2 * i + 1]), bf16_odd(pair[i]), PANEL_F32);
    }
    return sum;
}

/* One chunk of one row. Each group of rows uses up a cache line, 32 k, at once: rows that lie
 * a multiple of 1 KiB apart share few places of the first cache. */
static void chunk_sums(const panel_job *job, const panel_block *b, uint64_t t,
                       vecf sums[PANEL_VECTORS])
{
    const uint32_t full = b->count / STEP * STEP;
    _Alignas(64) float x[LANE_CHUNK];
    rows r;

    take_rows(job, b, &r);
    panel_bf16_row((const uint16_t *)job->at[BF16_X] + t * job->k + b->begin, b->count, x);
    for (uint32_t begin = 0; begin < full; begin += LINE) {
        const uint32_t end = full - begin < LINE ? full : begin + LINE;

        for (uint32_t g = 0; g < PANEL_VECTORS; g += 2) {
            const uint16_t *const *row = r.row + VEC_LANES * g;
            vecf s0 = sums[g], s1 = sums[g + 1];               /* two chains hide latency */

            fetch(job, b, row, begin, 1, AHEAD);
            fetch(job, b, row + VEC_LANES, begin, 1, AHEAD);
            for (uint32_t k = begin; k < end; k += STEP) {
                s0 = step_sum(row, k, x + k, s0);
                s1 = step_sum(row + VEC_LANES, k, x + k, s1);
            }
            sums[g] = s0;
            sums[g + 1] = s1;
        }
    }
    for (uint32_t g = 0; full != b->count && g < PANEL_VECTORS; g++)
        sums[g] = step_sum(r.end + VEC_LANES * g, 0, x + full, sums[g]);
}

static bool direct(const panel_job *job, const panel_block *b, uint64_t t, panel_sum *sum)
{
    panel_block c = *b;

    for (uint32_t begin = 0, chunk = 0; begin < job->k; begin += LANE_CHUNK, chunk++) {
        const uint32_t left = job->k - begin;
        vecf sums[PANEL_VECTORS] = {0};

        c.begin = begin;
        c.count = left < LANE_CHUNK ? left : LANE_CHUNK;
        chunk_sums(job, &c, t, sums);
        for (uint32_t v = 0; v < PANEL_VECTORS; v++)
            panel_push(sum, chunk, v, sums[v]);
    }
    return true;
}

void VEC_KERNEL(matmul_bf16_mn)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_bf16_args *a = args;
    const panel_job job = {a, tensors->at, a->rows.count, a->k, a->n, weights, bf16_inputs,
                           direct, bf16_store, NULL, NULL};

    iso_flags_raise(tensors->flags, panel_run(&job, units));
}

#endif
