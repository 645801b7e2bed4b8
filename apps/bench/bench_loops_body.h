/* bench_loops_body: the loops for one instruction set. A file that includes it is compiled with the
 * flags of that set and has defined BENCH_LOOPS (the symbol), BENCH_ISA, BENCH_WIDTH (bytes of a
 * vector), BENCH_ADD(sum, a, b) and BENCH_FETCH(address). */
#include "apps/bench/bench_loops.h"

#include <string.h>

/* Before a loop with a constant count whose arrays have to become registers. */
#ifdef __clang__
#define BENCH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define BENCH_UNROLL _Pragma("GCC unroll 16")
#endif

#define INLINE static inline __attribute__((always_inline))

enum { LANES = BENCH_WIDTH / 4, TILE = 32, TILE_VECTORS = TILE / LANES, AHEAD = 2048 };

typedef uint64_t words __attribute__((vector_size(BENCH_WIDTH), may_alias));
typedef uint32_t halves __attribute__((vector_size(BENCH_WIDTH), may_alias));
typedef float floats __attribute__((vector_size(BENCH_WIDTH), may_alias));

enum { SUMS = 8, STEP = SUMS * BENCH_WIDTH, CHAINS = 12 };
_Static_assert(BENCH_READ_LINE % STEP == 0, "a line is whole vectors");

/* ---- reading ---- */

static inline uint64_t read_all(const void *data, size_t bytes, bool is_fetched)
{
    const unsigned char *at = data;
    words sum[SUMS] = {0};
    uint64_t total = 0;

    for (size_t done = 0; done < bytes; done += STEP) {
        BENCH_UNROLL
        for (size_t i = 0; i < SUMS; i++) {
            if (is_fetched && i * BENCH_WIDTH % 64 == 0)
                BENCH_FETCH(at + done + i * BENCH_WIDTH + AHEAD);
            sum[i] += *(const words *)(const void *)(at + done + i * BENCH_WIDTH);
        }
    }
    for (size_t i = 0; i < SUMS; i++)
        for (size_t j = 0; j < BENCH_WIDTH / 8; j++)
            total += sum[i][j];
    return total;
}

static uint64_t read_plain(const void *data, size_t bytes) { return read_all(data, bytes, false); }
static uint64_t read_fetched(const void *data, size_t bytes) { return read_all(data, bytes, true); }

/* ---- multiply and add ---- */

static double multiply(uint32_t rounds, float *result)
{
    const floats factor = (floats){0} + 0.999f, more = (floats){0} + 0.001f;
    floats sum[CHAINS];

    for (int i = 0; i < CHAINS; i++)
        sum[i] = (floats){0} + (float)i;
    for (uint32_t round = 0; round < rounds; round++) {
        BENCH_UNROLL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = BENCH_ADD(more, sum[i], factor);
    }
    *result = 0.0f;
    for (int i = 0; i < CHAINS; i++)
        for (int j = 0; j < LANES; j++)
            *result += sum[i][j];
    return 2.0 * LANES * CHAINS * rounds;
}

/* ---- bf16 product in free order ---- */

static float value_of(uint16_t bits)
{
    const uint32_t word = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &word, 4);
    return value;
}

static uint16_t bits_of(float value)
{
    uint32_t word;

    memcpy(&word, &value, 4);
    return (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

/* One tile: a word is two k of a feature. Pairs go round the accumulators. */
INLINE void free_tile(const float *x, const unsigned char *tile, uint32_t pairs, uint32_t chains,
                      float *y)
{
    floats sum[8][TILE_VECTORS] = {{{0}}};

    for (uint32_t pair = 0; pair < pairs; pair += chains / 2) {
        BENCH_UNROLL
        for (uint32_t c = 0; c < chains / 2; c++) {
            const unsigned char *at = tile + (size_t)(pair + c) * TILE * 4;
            const floats even = (floats){0} + x[2 * (pair + c)];
            const floats odd = (floats){0} + x[2 * (pair + c) + 1];

            BENCH_FETCH(at + AHEAD);
            BENCH_FETCH(at + AHEAD + 64);
            BENCH_UNROLL
            for (uint32_t v = 0; v < TILE_VECTORS; v++) {
                const halves word = *(const halves *)(const void *)(at + v * BENCH_WIDTH);

                sum[2 * c][v] = BENCH_ADD(sum[2 * c][v], (floats)(word << 16), even);
                sum[2 * c + 1][v] = BENCH_ADD(sum[2 * c + 1][v], (floats)(word & 0xffff0000u), odd);
            }
        }
    }
    for (uint32_t v = 0; v < TILE_VECTORS; v++) {
        floats total = sum[0][v];

        for (uint32_t c = 1; c < chains; c++)
            total += sum[c][v];
        memcpy(y + v * LANES, &total, sizeof total);
    }
}

INLINE void free_tiles(const bench_free_args *a, const iso_tensors *tensors, iso_range units,
                       uint32_t chains)
{
    const uint16_t *from = tensors->at[0];
    const unsigned char *weights = tensors->at[1];
    uint16_t *to = tensors->at[2];
    float x[BENCH_FREE_K_MAX], y[TILE];

    for (uint32_t k = 0; k < a->k; k++)
        x[k] = value_of(from[k]);
    for (uint64_t u = units.begin; u < units.end; u++) {
        free_tile(x, weights + u * a->k * TILE * 2, a->k / 2, chains, y);
        for (uint32_t i = 0; i < TILE && u * TILE + i < a->n; i++)
            to[u * TILE + i] = bits_of(y[i]);
    }
}

static void free_2(const void *args, const iso_tensors *tensors, iso_range units)
{
    free_tiles(args, tensors, units, 2);
}

static void free_4(const void *args, const iso_tensors *tensors, iso_range units)
{
    free_tiles(args, tensors, units, 4);
}

static void free_8(const void *args, const iso_tensors *tensors, iso_range units)
{
    free_tiles(args, tensors, units, 8);
}

const bench_loops BENCH_LOOPS = {
    BENCH_ISA, {read_plain, read_fetched}, multiply, {free_2, free_4, free_8},
};
