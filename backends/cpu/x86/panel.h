/* panel: float matmuls with output features as lanes (numerics 6.1, 6.2). A file includes vec8.h or
 * vec16.h first.
 *
 * A block is 32 features: four or two vectors, k in order inside each lane. With one row a kernel
 * sums straight from packed weights (`direct`). With more rows a chunk of weights is turned once,
 * to f32 [k][32] or to f16 where every operand is a small number times a power of two; it stays in
 * the first cache, and up to six rows share every load of it.
 *
 * Operands have few bits (numerics 5), so products are exact and fused multiply-add has the bits of
 * mul and add. */
#ifndef ISO_CPU_X86_PANEL_H
#define ISO_CPU_X86_PANEL_H

#include "backends/cpu/x86/lane_vec.h"
#include "core/op.h"

/* Before a loop with a constant count whose arrays have to become registers. */
#ifdef __clang__
#define PANEL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PANEL_UNROLL _Pragma("GCC unroll 8")
#endif

enum {
    PANEL_LANES = 32,
    PANEL_VECTORS = PANEL_LANES / VEC_LANES,
    PANEL_LINE = 64,                     /* k; a cache line of e4m3 codes */
    PANEL_ROWS = 6,                      /* 6 x 2 sums, 2 weights, 1 input: 15 registers */
    PANEL_BLOCK_ROWS = 96,               /* rows that share a decoded chunk: 24 KiB of sums */
    PANEL_PER_SEGMENT = LANE_SEGMENT / LANE_CHUNK
};

typedef struct panel_job panel_job;

/* Features n .. n + lanes - 1; the rows of weights of a block that is not full repeat the last. */
typedef struct panel_block {
    uint64_t n, part;                    /* part: n / split */
    uint32_t lanes;                      /* 1 .. 32 */
    uint32_t begin, count;               /* k of the chunk; count <= 128 */
} panel_block;

/* The levels above the chunk (iso_sum3 of order.h). */
typedef struct panel_sum {
    _Alignas(64) float segment[PANEL_LANES], total[PANEL_LANES];
} panel_sum;

/* Decodes the chunk to wt [count][32]. Returns flags. */
typedef uint32_t panel_weights_fn(const panel_job *job, const panel_block *b, float *wt);
/* Decodes the chunk of row t to x [count]. Returns flags. */
typedef uint32_t panel_inputs_fn(const panel_job *job, const panel_block *b, uint64_t t, float *x);
/* All of k for row t, pushed to sum; false: not here, use weights and inputs. Raises nothing. */
typedef bool panel_direct_fn(const panel_job *job, const panel_block *b, uint64_t t,
                             panel_sum *sum);
/* The chunk's weights as f16 that are a power of two off: half [128 / 32][16][4] vectors, where
 * vector v of entry i holds k = i in its lower and k = i + 16 in its upper half. */
typedef void panel_halves_fn(const panel_job *job, const panel_block *b, veci *half);
/* x [64] of row t from k = begin on, with the powers of two that the halves lack; +0 from x[count]
 * on. false: an operand needs `clean`: use weights and inputs. Raises nothing. */
typedef bool panel_line_fn(const panel_job *job, const panel_block *b, uint64_t t,
                           uint32_t begin, uint32_t count, float *x);
/* Stores y of row t for all lanes of the block; returns flags. */
typedef uint32_t panel_store_fn(const panel_job *job, const panel_block *b, uint64_t t,
                                const float y[PANEL_LANES]);

struct panel_job {
    const void *args;
    void *const *at;
    uint64_t rows;                       /* live */
    uint32_t k;
    uint64_t split;                      /* no block crosses a multiple of this or of 32 */
    panel_weights_fn *weights;
    panel_inputs_fn *inputs;
    panel_direct_fn *direct;
    panel_store_fn *store;
    panel_halves_fn *halves;             /* NULL: always weights and inputs */
    panel_line_fn *line;
};

/* Where the sums of a chunk go: of the first row; chunks are numbered from 0. */
typedef struct panel_at {
    panel_sum *sum;
    uint32_t chunk;
} panel_at;

static inline void panel_add_segment(panel_sum *sum, uint32_t v, vecf segment, bool is_first)
{
    if (!is_first)
        segment = VEC(add_ps)(VEC(load_ps)(sum->total + VEC_LANES * v), segment);
    VEC(store_ps)(sum->total + VEC_LANES * v, segment);
}

/* Adds the chunk's sum of vector v; chunks are numbered from 0. */
static inline void panel_push(panel_sum *sum, uint32_t chunk, uint32_t v, vecf value)
{
    const uint32_t position = chunk % PANEL_PER_SEGMENT;

    if (position != 0)
        value = VEC(add_ps)(VEC(load_ps)(sum->segment + VEC_LANES * v), value);
    VEC(store_ps)(sum->segment + VEC_LANES * v, value);
    if (position == PANEL_PER_SEGMENT - 1)
        panel_add_segment(sum, v, value, chunk < PANEL_PER_SEGMENT);
}

/* Adds the open segment; chunk_count >= 1. */
static inline void panel_end(panel_sum *sum, uint32_t chunk_count)
{
    if (chunk_count % PANEL_PER_SEGMENT != 0)
        for (uint32_t v = 0; v < PANEL_VECTORS; v++)
            panel_add_segment(sum, v, VEC(load_ps)(sum->segment + VEC_LANES * v),
                              chunk_count < PANEL_PER_SEGMENT);
}

/* Operands of a chunk: f32, halves, or f32 that may lie outside the domain, whose products can
 * overflow and are therefore rounded before they are added. */
typedef enum panel_kind { PANEL_F32, PANEL_HALF, PANEL_OUTSIDE } panel_kind;

typedef struct panel_operands {
    const void *w;                       /* wt, or halves */
    const float *x;                      /* [rows][128] */
    uint32_t count;                      /* k of the chunk */
} panel_operands;

/* Vectors first .. of entry k of the run of 16 k at `run`, as f32 or as halves. */
__attribute__((always_inline)) static inline vecf panel_load(const void *run, uint32_t k,
                                                               uint32_t v, const panel_kind kind)
{
    const vech *half = (const vech *)run + (k * PANEL_VECTORS + v) * 2;

    if (kind == PANEL_HALF)
        return VEC(cvtph_ps)(VECH(load)(half));
    return VEC(load_ps)((const float *)run + k * PANEL_LANES + VEC_LANES * v);
}

__attribute__((always_inline)) static inline vecf panel_add(vecf sum, vecf a, vecf w,
                                                              const panel_kind kind)
{
    if (kind == PANEL_OUTSIDE)
        return VEC(add_ps)(sum, VEC(mul_ps)(a, w));
    return VEC(fmadd_ps)(a, w, sum);               /* <= 8 + 8 bits: exact, fma == mul+add */
}

/* One chunk of `rows` rows and two vectors of features: rows, first and kind are constants at
 * every call, so that the sums stay in registers. */
__attribute__((always_inline)) static inline void panel_tile(panel_operands o,
                                                             const panel_kind kind, panel_at at,
                                                             const uint32_t rows,
                                                             const uint32_t first)
{
    const float *x = o.x;
    vecf acc[PANEL_ROWS][2];

    PANEL_UNROLL
    for (uint32_t r = 0; r < rows; r++)
        acc[r][0] = acc[r][1] = VEC(setzero_ps)();
    for (uint32_t begin = 0; begin < o.count; begin += 16, x += 16) {
        const uint32_t left = o.count - begin, count = left < 16 ? left : 16;
        const vech *half = (const vech *)o.w + begin / 32 * (32 * PANEL_VECTORS) + begin / 16 % 2;
        const float *wt = (const float *)o.w + begin * PANEL_LANES;
        const void *run = kind == PANEL_HALF ? (const void *)half : wt;

        for (uint32_t k = 0; k < count; k++) {
            const vecf w0 = panel_load(run, k, first, kind);
            const vecf w1 = panel_load(run, k, first + 1, kind);

            PANEL_UNROLL
            for (uint32_t r = 0; r < rows; r++) {
                const vecf a = VEC(set1_ps)(x[r * LANE_CHUNK + k]);

                acc[r][0] = panel_add(acc[r][0], a, w0, kind);
                acc[r][1] = panel_add(acc[r][1], a, w1, kind);
            }
        }
    }
    PANEL_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        panel_push(&at.sum[r], at.chunk, first, acc[r][0]);
        panel_push(&at.sum[r], at.chunk, first + 1, acc[r][1]);
    }
}

/* All pairs of vectors. */
__attribute__((always_inline)) static inline void panel_pair(panel_operands o,
                                                             const panel_kind kind, panel_at at,
                                                             const uint32_t rows)
{
    panel_tile(o, kind, at, rows, 0);
    if (PANEL_VECTORS > 2)
        panel_tile(o, kind, at, rows, 2);
}

__attribute__((always_inline)) static inline void panel_rows(panel_operands o,
                                                             const panel_kind kind, panel_at at,
                                                             uint32_t rows)
{
    switch (rows) {
    case 1: panel_pair(o, kind, at, 1); break;
    case 2: panel_pair(o, kind, at, 2); break;
    case 3: panel_pair(o, kind, at, 3); break;
    case 4: panel_pair(o, kind, at, 4); break;
    case 5: panel_pair(o, kind, at, 5); break;
    default: panel_pair(o, kind, at, 6);
    }
}

/* The chunk of one row for halves. */
static inline bool panel_lines(const panel_job *job, const panel_block *b, uint64_t t, float *x)
{
    for (uint32_t i = 0; i < b->count; i += PANEL_LINE) {
        const uint32_t left = b->count - i;

        if (!job->line(job, b, t, b->begin + i, left < PANEL_LINE ? left : PANEL_LINE, x + i))
            return false;
    }
    return true;
}

/* The chunk for rows t .. t + rows - 1: from halves where nothing needs `clean`, else from f32
 * operands, which are made when the first row needs them. Returns flags. */
static inline uint32_t panel_run_chunk(const panel_job *job, const panel_block *b, uint64_t t,
                                       uint32_t rows, panel_at at)
{
    _Alignas(64) float wt[LANE_CHUNK * PANEL_LANES], x[PANEL_ROWS * LANE_CHUNK];
    _Alignas(64) veci half[LANE_CHUNK / 2 * PANEL_VECTORS];
    bool has_wt = false;
    uint32_t flags = 0, more;

    if (job->halves != NULL)
        job->halves(job, b, half);
    for (uint32_t i = 0; i < rows; i += more, at.sum += more) {
        const uint32_t left = rows - i, panels = (left + PANEL_ROWS - 1) / PANEL_ROWS;
        bool is_half = job->halves != NULL;

        more = (left + panels - 1) / panels;                     /* 7 rows are 4 and 3 */
        for (uint32_t r = 0; r < more && is_half; r++)
            is_half = panel_lines(job, b, t + i + r, x + r * LANE_CHUNK);
        if (is_half) {
            panel_rows((panel_operands){half, x, b->count}, PANEL_HALF, at, more);
            continue;
        }
        if (!has_wt)
            flags |= job->weights(job, b, wt);
        has_wt = true;
        for (uint32_t r = 0; r < more; r++)
            flags |= job->inputs(job, b, t + i + r, x + r * LANE_CHUNK);
        if (job->halves == NULL)
            panel_rows((panel_operands){wt, x, b->count}, PANEL_F32, at, more);
        for (uint32_t r = 0; job->halves != NULL && r < more; r++)
            panel_pair((panel_operands){wt, x + r * LANE_CHUNK, b->count}, PANEL_OUTSIDE,
                       (panel_at){at.sum + r, at.chunk}, 1);
    }
    return flags;
}

/* All of k for one block of features and rows t .. t + rows - 1. */
static inline uint32_t panel_run_block(const panel_job *job, panel_block b, uint64_t t,
                                       uint32_t rows)
{
    const uint32_t chunks = (job->k - 1) / LANE_CHUNK + 1;
    panel_sum sum[PANEL_BLOCK_ROWS];
    uint32_t flags = 0;

    if (rows != 1 || !job->direct(job, &b, t, sum))
        for (uint32_t chunk = 0; chunk < chunks; chunk++) {
            const uint32_t left = job->k - chunk * LANE_CHUNK;

            b.begin = chunk * LANE_CHUNK;
            b.count = left < LANE_CHUNK ? left : LANE_CHUNK;
            flags |= panel_run_chunk(job, &b, t, rows, (panel_at){sum, chunk});
        }
    for (uint32_t i = 0; i < rows; i++) {
        panel_end(&sum[i], chunks);
        flags |= job->store(job, &b, t + i, sum[i].total);
    }
    return flags;
}

/* Features [units.begin, units.end) for all rows; returns the flags that were raised. */
static inline uint32_t panel_run(const panel_job *job, iso_range units)
{
    uint32_t flags = 0;
    panel_block b = {0};

    for (b.n = units.begin; b.n < units.end; b.n += b.lanes) {
        const uint64_t left = units.end - b.n, in_split = job->split - b.n % job->split;
        const uint64_t in_tile = PANEL_LANES - b.n % PANEL_LANES;
        const uint64_t most = left < in_split ? left : in_split;

        b.part = b.n / job->split;
        b.lanes = (uint32_t)(most < in_tile ? most : in_tile);
        for (uint64_t t = 0; t < job->rows; t += PANEL_BLOCK_ROWS) {
            const uint64_t rows = job->rows - t;

            flags |= panel_run_block(job, b, t,
                                     rows < PANEL_BLOCK_ROWS ? (uint32_t)rows : PANEL_BLOCK_ROWS);
        }
    }
    return flags;
}

/* Row `lane` of the block's weights, of the last row for lanes that have none. */
static inline uint64_t panel_feature(const panel_block *b, uint32_t lane)
{
    return b->n + (lane < b->lanes ? lane : b->lanes - 1);
}

/* `count` bf16 values to f32, +0 behind them up to a multiple of VEC_LANES; x is aligned to 64. */
static inline void panel_bf16_row(const uint16_t *half, uint32_t count, float *x)
{
    const uint32_t full = count / VEC_LANES * VEC_LANES;

    for (uint32_t k = 0; k < full; k += VEC_LANES)
        VEC(store_ps)(x + k, vec_load_bf16(half + k));
    if (full != count) {
        uint16_t rest[VEC_LANES] = {0};

        memcpy(rest, half + full, (count - full) * sizeof *half);
        VEC(store_ps)(x + full, vec_load_bf16(rest));
    }
}

/* clean, round to bf16, store. Lanes without a feature repeat one, so their flags are its flags. */
static inline uint32_t panel_store_bf16(uint16_t *y, const panel_block *b,
                                        const float value[PANEL_LANES])
{
    uint16_t half[PANEL_LANES];
    veci bad = VECS(setzero)();

    for (uint32_t v = 0; v < PANEL_VECTORS; v++)
        vec_store_bf16(half + VEC_LANES * v, VEC(loadu_ps)(value + VEC_LANES * v), &bad);
    memcpy(y, half, b->lanes * sizeof *half);
    return vec_flags(bad);
}

/* Offset in bytes, from a place in one of 32 neighbouring rows, of what is read `ahead` bytes
 * later: further in the row, or in the next block of rows. Prefetches do not fault. */
static inline uint64_t panel_ahead(uint64_t at, uint64_t row_bytes, uint64_t ahead)
{
    return at + ahead < row_bytes ? ahead : ahead + (PANEL_LANES - 1) * row_bytes;
}

#endif
