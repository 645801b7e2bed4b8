/* tile: the float matmuls of the portable kernels. 32 output features are the lanes of one tile: k
 * runs in order inside each lane, so the bits are those of the reference (numerics 6.1, 6.2, 6.3),
 * and the compiler has 32 independent sums to put into vector registers.
 *
 * A kernel says how a chunk of a row becomes f32 operands and how results are stored. */
#ifndef ISO_BACKENDS_CPU_TILE_H
#define ISO_BACKENDS_CPU_TILE_H

#include "core/op.h"
#include "ggml-style-ops/lane/lane.h"

enum { ISO_TILE_LANES = 32 };

typedef struct iso_tile_job iso_tile_job;

/* Operands [begin, begin + count) of row `row` to out; count <= 128. Returns flags. For x, `n` is
 * a feature of the tile that the row is multiplied with. */
typedef uint32_t iso_tile_weights_fn(const iso_tile_job *job, uint64_t n, uint32_t begin,
                                     uint32_t count, float *out);
typedef uint32_t iso_tile_inputs_fn(const iso_tile_job *job, uint64_t t, uint64_t n,
                                    uint32_t begin, uint32_t count, float *out);
/* Stores y[0 .. count), features n .. of row t. Returns flags. */
typedef uint32_t iso_tile_store_fn(const iso_tile_job *job, uint64_t t, uint64_t n,
                                   uint32_t count, const float *y);

struct iso_tile_job {
    const void *args;
    void *const *at;
    uint64_t rows;                       /* live */
    uint32_t k;
    uint64_t split;                      /* no tile crosses a multiple of this feature number */
    iso_tile_weights_fn *weights;
    iso_tile_inputs_fn *inputs;
    iso_tile_store_fn *store;
};

/* Features [units.begin, units.end) for all rows; returns the flags that were raised. */
uint32_t iso_tile_run(const iso_tile_job *job, iso_range units);

/* sums[j] = sum over k of wt[k][j] * x[k], k ascending from +0. wt is aligned to 16. */
void iso_tile_chunk(const float *wt, const float *x, uint32_t count, float sums[ISO_TILE_LANES]);

/* The levels above the chunk for 32 lanes (iso_sum3 of order.h); chunks are numbered from 0. */
typedef struct iso_tile_sum {
    float segment[ISO_TILE_LANES], total[ISO_TILE_LANES];
} iso_tile_sum;
void iso_tile_push(iso_tile_sum *sum, uint32_t chunk, const float sums[ISO_TILE_LANES]);
/* Adds the open segment; the result lies in sum->total. chunk_count >= 1. */
void iso_tile_end(iso_tile_sum *sum, uint32_t chunk_count);

/* Exact operands from packed values. `clean` drops what is below 2^-50 and flags 2^50 and more. */
void iso_tile_e4m3(const uint8_t *code, uint32_t count, float *out);
void iso_tile_bf16(const uint16_t *half, uint32_t count, float *out);
/* Twice the value of e2m1 codes, two a byte: 0 1 2 3 4 6 8 12 with sign. count is even. */
void iso_tile_e2m1(const uint8_t *code, uint32_t count, int16_t *out);
uint32_t iso_tile_clean(float *values, uint32_t count);

#endif
