/* tiles: float matmuls whose weights are packed in layout ROWS32 (core/rows32.h). A file
 * includes vec8.h or vec16.h first.
 *
 * A tile is what panel.h calls a block, 32 features, and here its weights lie side by side for
 * every k: nothing is turned. With one row a kernel sums straight from the packed weights
 * (`direct`). With more rows, up to four tiles share every decoded chunk of inputs, and all rows
 * every decoded chunk of weights; the sums are those of panel.h.
 *
 * Operands that `clean` could change, or scales that are no number, take the way of the reference,
 * operand by operand, row by row (PANEL_OUTSIDE). */
#ifndef ISO_CPU_X86_TILES_H
#define ISO_CPU_X86_TILES_H

#include "backends/cpu/x86/panel.h"

enum { TILES_SPAN = 4, TILES_AHEAD = 2048 };                     /* tiles; bytes */

typedef struct tiles_job tiles_job;

/* Lanes first .. first + p.lanes - 1 of a tile are features p.n, p.n + 1 .. */
typedef struct tiles_block {
    panel_block p;
    uint32_t first;
    const uint8_t *tile;
} tiles_block;

/* The chunk to wt [count][32], one float per lane of the tile, scales multiplied in. false: a
 * scale needs `clean`. */
typedef bool tiles_weights_fn(const tiles_job *job, const tiles_block *b, float *wt);
/* The chunk of row t to x [count], which has room for 128. false: an operand needs `clean`. */
typedef bool tiles_inputs_fn(const tiles_job *job, const tiles_block *b, uint64_t t, float *x);
/* The same, operand by operand as the reference makes them; both return flags. Lanes without a
 * feature may hold anything. */
typedef uint32_t tiles_weights_exact_fn(const tiles_job *job, const tiles_block *b, float *wt);
/* All of k for row t, pushed to sum; false: not here, use weights and inputs. Raises nothing. */
typedef bool tiles_direct_fn(const tiles_job *job, const tiles_block *b, uint64_t t,
                             panel_sum *sum);
/* The same for rows t .. t + rows - 1, 2 to 6 of them; sum [rows]. */
typedef bool tiles_few_fn(const tiles_job *job, const tiles_block *b, uint64_t t, uint32_t rows,
                          panel_sum *sum);

struct tiles_job {
    panel_job panel;                     /* args, at, rows, k, split, inputs (exact), store */
    const uint8_t *packed;
    uint64_t tile_bytes;
    bool is_split;                       /* vectors hold the even features, then the odd ones */
    tiles_weights_fn *weights;
    tiles_inputs_fn *inputs;
    tiles_direct_fn *direct;
    tiles_few_fn *few;                   /* NULL: few rows go the way of many */
    tiles_weights_exact_fn *weights_exact;       /* NULL: weights and inputs never fail */
};

/* A chunk of inputs, rows .. + 95; which rows hold operands outside the domain. */
typedef struct tiles_inputs {
    _Alignas(64) float x[PANEL_BLOCK_ROWS][LANE_CHUNK];
    bool is_plain[PANEL_BLOCK_ROWS];
} tiles_inputs;

/* Where feature `lane` of a tile lies in its vectors. */
static inline uint32_t tiles_place(const tiles_job *job, uint32_t lane)
{
    return job->is_split ? lane % 2 * 16 + lane / 2 : lane;
}

/* The chunk of one tile for `rows` rows, exactly as the reference makes operands. Returns flags. */
static inline uint32_t tiles_run_exact(const tiles_job *job, const tiles_block *b, uint64_t t,
                                       uint32_t rows, panel_at at)
{
    _Alignas(64) float wt[LANE_CHUNK * PANEL_LANES], x[LANE_CHUNK];
    uint32_t flags = job->weights_exact(job, b, wt);

    for (uint32_t r = 0; r < rows; r++) {
        flags |= job->panel.inputs(&job->panel, &b->p, t + r, x);
        panel_pair((panel_operands){wt, x, b->p.count}, PANEL_OUTSIDE,
                   (panel_at){at.sum + r, at.chunk}, 1);
    }
    return flags;
}

/* The chunk of one tile for rows t .. t + rows - 1; sums start at at.sum. Returns flags. */
static inline uint32_t tiles_run_chunk(const tiles_job *job, const tiles_block *b,
                                       const tiles_inputs *in, uint64_t t, uint32_t rows,
                                       panel_at at)
{
    _Alignas(64) float wt[LANE_CHUNK * PANEL_LANES];
    const bool is_plain = job->weights(job, b, wt);
    uint32_t flags = 0, more;

    for (uint32_t i = 0; i < rows; i += more, at.sum += more) {
        const uint32_t left = rows - i, panels = (left + PANEL_ROWS - 1) / PANEL_ROWS;
        bool are_plain = is_plain;

        more = (left + panels - 1) / panels;                     /* 7 rows are 4 and 3 */
        for (uint32_t r = 0; r < more; r++)
            are_plain = are_plain && in->is_plain[i + r];
        if (are_plain)
            panel_rows((panel_operands){wt, in->x[i], b->p.count}, PANEL_F32, at, more);
        else
            flags |= tiles_run_exact(job, b, t + i, more, at);
    }
    return flags;
}

/* Adds the open segment, brings lanes into order and stores them. Lanes without a feature repeat
 * the last, so that their flags are its flags. */
static inline uint32_t tiles_store(const tiles_job *job, const tiles_block *b, uint64_t t,
                                   panel_sum *sum)
{
    float y[PANEL_LANES];

    panel_end(sum, (job->panel.k - 1) / LANE_CHUNK + 1);
    for (uint32_t j = 0; j < PANEL_LANES; j++)
        y[j] = sum->total[tiles_place(job, b->first + (j < b->p.lanes ? j : b->p.lanes - 1))];
    return job->panel.store(&job->panel, &b->p, t, y);
}

/* All of k for the tiles of a span and rows t .. t + rows - 1. */
static inline uint32_t tiles_run_rows(const tiles_job *job, tiles_block *span, uint32_t tiles,
                                      uint64_t t, uint32_t rows)
{
    const uint32_t chunks = (job->panel.k - 1) / LANE_CHUNK + 1;
    panel_sum sum[TILES_SPAN][PANEL_BLOCK_ROWS];
    tiles_inputs in;
    uint32_t flags = 0;

    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        const uint32_t left = job->panel.k - chunk * LANE_CHUNK;

        for (uint32_t i = 0; i < tiles; i++) {
            span[i].p.begin = chunk * LANE_CHUNK;
            span[i].p.count = left < LANE_CHUNK ? left : LANE_CHUNK;
        }
        for (uint32_t r = 0; r < rows; r++)
            in.is_plain[r] = job->inputs(job, &span[0], t + r, in.x[r]);
        for (uint32_t i = 0; i < tiles; i++)
            flags |= tiles_run_chunk(job, &span[i], &in, t, rows, (panel_at){sum[i], chunk});
    }
    for (uint32_t i = 0; i < tiles; i++)
        for (uint32_t r = 0; r < rows; r++)
            flags |= tiles_store(job, &span[i], t + r, &sum[i][r]);
    return flags;
}

/* Up to six rows, straight from the packed weights where the kernel can. */
static inline uint32_t tiles_run_few(const tiles_job *job, tiles_block *span, uint32_t tiles,
                                     uint64_t t, uint32_t rows)
{
    uint32_t flags = 0;

    for (uint32_t i = 0; i < tiles; i++) {
        panel_sum sum[PANEL_ROWS];
        const bool is_done = rows == 1 ? job->direct(job, &span[i], t, sum)
                                       : job->few(job, &span[i], t, rows, sum);

        if (!is_done)
            flags |= tiles_run_rows(job, &span[i], 1, t, rows);
        for (uint32_t r = 0; is_done && r < rows; r++)
            flags |= tiles_store(job, &span[i], t + r, &sum[r]);
    }
    return flags;
}

/* The next tiles from feature *n on that share their inputs; moves *n behind them. */
static inline uint32_t tiles_take(const tiles_job *job, uint64_t *n, uint64_t end,
                                  tiles_block span[TILES_SPAN])
{
    const uint64_t split = job->panel.split, part = *n / split;
    uint32_t count = 0;

    for (; count < TILES_SPAN && *n < end && *n / split == part; count++) {
        const uint32_t first = (uint32_t)(*n % PANEL_LANES);
        const uint64_t left = end - *n, in_split = split - *n % split;
        const uint64_t most = left < in_split ? left : in_split, in_tile = PANEL_LANES - first;
        const uint32_t lanes = (uint32_t)(most < in_tile ? most : in_tile);

        span[count] = (tiles_block){{*n, part, lanes, 0, 0}, first,
                                    job->packed + *n / PANEL_LANES * job->tile_bytes};
        *n += lanes;
    }
    return count;
}

/* Features [units.begin, units.end) for all rows; returns the flags that were raised. */
static inline uint32_t tiles_run(const tiles_job *job, iso_range units)
{
    const uint64_t all = job->panel.rows;
    uint32_t flags = 0;

    for (uint64_t n = units.begin; n < units.end;) {
        tiles_block span[TILES_SPAN];
        const uint32_t tiles = tiles_take(job, &n, units.end, span);

        for (uint64_t t = 0; t < all; t += PANEL_BLOCK_ROWS) {
            const uint64_t left = all - t;
            const uint32_t rows = left < PANEL_BLOCK_ROWS ? (uint32_t)left : PANEL_BLOCK_ROWS;

            flags |= rows == 1 || (rows <= PANEL_ROWS && job->few != NULL)
                         ? tiles_run_few(job, span, tiles, t, rows)
                         : tiles_run_rows(job, span, tiles, t, rows);
        }
    }
    return flags;
}

#endif
