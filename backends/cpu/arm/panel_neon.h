/* panel_neon: float matmuls with four output features per vector (numerics 6.1, 6.2, 6.3). For
 * files that are compiled for AArch64 only.
 *
 * A block is 32 features: eight vectors, k in order inside each lane. A kernel gives operands row
 * by row, as for the portable tiles; a chunk of weights is turned once, four rows at a time, to f32
 * [k][32], stays in the first cache, and up to four rows of inputs share every load of it. One row
 * alone takes all eight vectors at once: that many sums hide the latency of the additions.
 *
 * Where operands have few bits (numerics 5) products are exact, and fused multiply-add has the bits
 * of mul and add; a product that can overflow is rounded before it is added. */
#ifndef ISO_CPU_ARM_PANEL_NEON_H
#define ISO_CPU_ARM_PANEL_NEON_H

#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/tile.h"

/* Before a loop with a constant count whose arrays have to become registers. */
#ifdef __clang__
#define PANEL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PANEL_UNROLL _Pragma("GCC unroll 8")
#endif

enum {
    PANEL_LANES = ISO_TILE_LANES,
    PANEL_VECTORS = PANEL_LANES / 4,
    PANEL_ROWS = 4,                      /* 4 x 4 sums, 4 weights, 4 inputs: 24 of 32 registers */
    PANEL_TOKENS = 64,
    PANEL_ROUND = 0x40000000             /* beside flags: a product of this row can overflow */
};

typedef struct panel_operands {
    const float *wt;                     /* [count][32] */
    const float *x;                      /* [rows][128] */
    uint32_t count;                      /* a multiple of 4; +0 behind the chunk's end */
} panel_operands;

#define PANEL_INLINE __attribute__((always_inline)) static inline

/* sum + w * x[lane]; lane is a constant once its loop is unrolled. */
PANEL_INLINE float32x4_t panel_add(float32x4_t sum, float32x4_t w, float x, const bool is_fused)
{
    if (is_fused)
        return vfmaq_n_f32(sum, w, x);               /* <= 8 + 8 bits: exact, fma == mul+add */
    return vaddq_f32(sum, vmulq_n_f32(w, x));
}

/* One chunk of `rows` rows and `vectors` vectors from `first` on: these and is_fused are constants
 * at every call, so that the sums stay in registers. */
PANEL_INLINE void panel_tile(panel_operands o, const uint32_t first, const uint32_t rows,
                             const bool is_fused, float *sums)
{
    const uint32_t vectors = rows == 1 ? PANEL_VECTORS : PANEL_VECTORS / 2;
    const float *wt = o.wt + 4 * first;
    float32x4_t acc[PANEL_VECTORS * 2];

    PANEL_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        PANEL_UNROLL
        for (uint32_t v = 0; v < vectors; v++)
            acc[r * vectors + v] = vdupq_n_f32(0.0f);
    }
    for (uint32_t k = 0; k < o.count; k++, wt += PANEL_LANES) {
        float32x4_t w[PANEL_VECTORS];

        PANEL_UNROLL
        for (uint32_t v = 0; v < vectors; v++)
            w[v] = vld1q_f32(wt + 4 * v);
        PANEL_UNROLL
        for (uint32_t r = 0; r < rows; r++) {
            const float x = o.x[r * LANE_CHUNK + k];

            PANEL_UNROLL
            for (uint32_t v = 0; v < vectors; v++)
                acc[r * vectors + v] = panel_add(acc[r * vectors + v], w[v], x, is_fused);
        }
    }
    PANEL_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        PANEL_UNROLL
        for (uint32_t v = 0; v < vectors; v++)
            vst1q_f32(sums + r * PANEL_LANES + 4 * (first + v), acc[r * vectors + v]);
    }
}

PANEL_INLINE void panel_pair(panel_operands o, const uint32_t rows, const bool is_fused,
                             float *sums)
{
    panel_tile(o, 0, rows, is_fused, sums);
    if (rows != 1)
        panel_tile(o, PANEL_VECTORS / 2, rows, is_fused, sums);
}

/* sums [rows][32] of the chunk. */
PANEL_INLINE void panel_rows(panel_operands o, uint32_t rows, const bool is_fused, float *sums)
{
    switch (rows) {
    case 1: panel_pair(o, 1, is_fused, sums); break;
    case 2: panel_pair(o, 2, is_fused, sums); break;
    case 3: panel_pair(o, 3, is_fused, sums); break;
    default: panel_pair(o, 4, is_fused, sums);
    }
}

/* Four rows [4][128] to wt[k][0 .. 3], k below `count`, a multiple of 4. */
static inline void panel_turn(const float *row, uint32_t count, float *wt)
{
    for (uint32_t k = 0; k < count; k += 4) {
        const float32x4_t a = vld1q_f32(row + k), b = vld1q_f32(row + LANE_CHUNK + k);
        const float32x4_t c = vld1q_f32(row + 2 * LANE_CHUNK + k);
        const float32x4_t d = vld1q_f32(row + 3 * LANE_CHUNK + k);
        const float64x2_t ab0 = vreinterpretq_f64_f32(vtrn1q_f32(a, b));
        const float64x2_t ab1 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
        const float64x2_t cd0 = vreinterpretq_f64_f32(vtrn1q_f32(c, d));
        const float64x2_t cd1 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
        float *to = wt + k * PANEL_LANES;

        vst1q_f32(to, vreinterpretq_f32_f64(vtrn1q_f64(ab0, cd0)));
        vst1q_f32(to + PANEL_LANES, vreinterpretq_f32_f64(vtrn1q_f64(ab1, cd1)));
        vst1q_f32(to + 2 * PANEL_LANES, vreinterpretq_f32_f64(vtrn2q_f64(ab0, cd0)));
        vst1q_f32(to + 3 * PANEL_LANES, vreinterpretq_f32_f64(vtrn2q_f64(ab1, cd1)));
    }
}

/* A block of features and the chunk that it is at. */
typedef struct panel_block {
    uint64_t n;
    uint32_t lanes;                      /* 1 .. 32 */
    uint32_t begin, count;               /* k */
} panel_block;

static inline uint32_t panel_padded(uint32_t count) { return (count + 3) / 4 * 4; }

/* Lanes without a feature are +0. */
static inline uint32_t panel_weights(const iso_tile_job *job, const panel_block *b, float *wt)
{
    const uint32_t padded = panel_padded(b->count);
    float row[4 * LANE_CHUNK];
    uint32_t flags = 0;

    for (uint32_t j = 0; j < PANEL_LANES; j += 4) {
        for (uint32_t i = 0; i < 4; i++) {
            float *to = row + i * LANE_CHUNK;

            if (j + i < b->lanes)
                flags |= job->weights(job, b->n + j + i, b->begin, b->count, to);
            else
                memset(to, 0, padded * sizeof *to);
            for (uint32_t k = b->count; k < padded; k++)
                to[k] = 0.0f;
        }
        panel_turn(row, padded, wt + j);
    }
    return flags;
}

/* The chunk for rows t .. t + rows - 1. */
PANEL_INLINE uint32_t panel_chunk(const iso_tile_job *job, const panel_block *b, iso_range t,
                                  const bool is_exact, iso_tile_sum *sum)
{
    _Alignas(64) float wt[LANE_CHUNK * PANEL_LANES];
    float x[PANEL_ROWS * LANE_CHUNK], sums[PANEL_ROWS * PANEL_LANES];
    const panel_operands o = {wt, x, panel_padded(b->count)};
    const uint32_t of_weights = panel_weights(job, b, wt);
    uint32_t flags = of_weights, rows;

    for (uint64_t row = t.begin; row < t.end; row += rows) {
        uint32_t of_rows = of_weights;

        rows = t.end - row < PANEL_ROWS ? (uint32_t)(t.end - row) : PANEL_ROWS;
        for (uint32_t i = 0; i < rows; i++) {
            of_rows |= job->inputs(job, row + i, b->n, b->begin, b->count, x + i * LANE_CHUNK);
            for (uint32_t k = b->count; k < o.count; k++)
                x[i * LANE_CHUNK + k] = 0.0f;
        }
        if (is_exact && of_rows == 0)
            panel_rows(o, rows, true, sums);
        else
            panel_rows(o, rows, false, sums);
        for (uint32_t i = 0; i < rows; i++)
            iso_tile_push(&sum[row - t.begin + i], b->begin / LANE_CHUNK, sums + i * PANEL_LANES);
        flags |= of_rows;
    }
    return flags;
}

/* Features [units.begin, units.end) for all rows; returns the flags that were raised. is_exact, a
 * constant: products of two operands are exact. Weights and inputs say by a flag, or by PANEL_ROUND
 * alone, that an operand lies outside the domain. */
PANEL_INLINE uint32_t panel_run(const iso_tile_job *job, iso_range units, const bool is_exact)
{
    const uint32_t chunks = (job->k - 1) / LANE_CHUNK + 1;
    panel_block b = {.n = units.begin};
    iso_tile_sum sum[PANEL_TOKENS];
    uint32_t flags = 0;

    for (; b.n < units.end; b.n += b.lanes) {
        const uint64_t left = units.end - b.n, in_split = job->split - b.n % job->split;
        const uint64_t most = left < in_split ? left : in_split;

        b.lanes = most < PANEL_LANES ? (uint32_t)most : PANEL_LANES;
        for (uint64_t begin = 0; begin < job->rows; begin += PANEL_TOKENS) {
            const uint64_t rows = job->rows - begin;
            const iso_range t = {begin, begin + (rows < PANEL_TOKENS ? rows : PANEL_TOKENS)};

            for (b.begin = 0; b.begin < job->k; b.begin += b.count) {
                b.count = job->k - b.begin < LANE_CHUNK ? job->k - b.begin : LANE_CHUNK;
                flags |= panel_chunk(job, &b, t, is_exact, sum);
            }
            for (uint64_t row = t.begin; row < t.end; row++) {
                iso_tile_end(&sum[row - t.begin], chunks);
                flags |= job->store(job, row, b.n, b.lanes, sum[row - t.begin].total);
            }
        }
    }
    return flags & ~(uint32_t)PANEL_ROUND;
}

/* `count` bf16 values to f32. */
static inline void panel_bf16_row(const uint16_t *half, uint32_t count, float *out)
{
    uint32_t k = 0;

    for (; k + 8 <= count; k += 8) {
        const lane8 v = lane8_load_bf16(half + k);

        vst1q_f32(out + k, v.low);
        vst1q_f32(out + k + 4, v.high);
    }
    for (; k < count; k++)
        out[k] = lane_float((uint32_t)half[k] << 16);
}

/* clean, round to bf16, store. */
static inline uint32_t panel_store_bf16(uint16_t *y, const float *value, uint32_t count)
{
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint32_t i = 0; i < count; i += 8) {
        const lane8 v = {vld1q_f32(value + i), vld1q_f32(value + i + 4)};

        lane8_store_bf16_n(y + i, count - i < 8 ? count - i : 8, v, &bad);
    }
    return lane4_flags(bad);
}

#endif
