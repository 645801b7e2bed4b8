/* matmul_f32, any number of rows: output features as lanes, a chunk of 24 rows of weights is
 * transposed once for up to 64 rows of x; fewer features cost as much as 24, the number that the
 * model has. Products are rounded before they are added: the weights are f32, so no step here is
 * fused (numerics 6.3). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"

enum { X, W, Y };
enum {
    VECTORS = 3, LANES = 8 * VECTORS, TOKENS = 64, TOKENS_AT_ONCE = 3,
    PER_SEGMENT = LANE_SEGMENT / LANE_CHUNK
};

/* Up to 24 features of up to 64 rows. */
typedef struct tile {
    _Alignas(64) float w[LANE_CHUNK][LANES];
    float x[TOKENS][LANE_CHUNK];
    float segment[TOKENS][LANES], total[TOKENS][LANES];
    const float *row[LANES];             /* weights of the features; the last one is repeated */
} tile;

/* 8 rows x 8 k -> 8 k x 8 rows. */
static inline void transpose8(const float *const *row, uint32_t k, float *out)
{
    __m256 a[8], b[8];

    for (uint32_t i = 0; i < 4; i++) {           /* k .. k + 3 of rows i, i + 4; then k + 4 .. */
        a[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i] + k)),
                                    _mm_loadu_ps(row[i + 4] + k), 1);
        a[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i] + k + 4)),
                                        _mm_loadu_ps(row[i + 4] + k + 4), 1);
    }
    for (uint32_t i = 0; i < 8; i += 4) {        /* a 4 x 4 transpose in each half */
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
        b[i + 2] = _mm256_unpacklo_ps(a[i + 2], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_ps(a[i + 2], a[i + 3]);
        _mm256_store_ps(out + i * LANES, _mm256_shuffle_ps(b[i], b[i + 2], 0x44));
        _mm256_store_ps(out + (i + 1) * LANES, _mm256_shuffle_ps(b[i], b[i + 2], 0xee));
        _mm256_store_ps(out + (i + 2) * LANES, _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44));
        _mm256_store_ps(out + (i + 3) * LANES, _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee));
    }
}

static void load_weights(tile *t, uint32_t begin, uint32_t count)
{
    for (uint32_t v = 0; v < VECTORS; v++) {
        const float *const *row = t->row + 8 * v;
        uint32_t k = 0;

        for (; k + 8 <= count; k += 8)
            transpose8(row, begin + k, t->w[k] + 8 * v);
        for (; k < count; k++)
            for (uint32_t j = 0; j < 8; j++)
                t->w[k][8 * v + j] = row[j][begin + k];
    }
}

static void load_inputs(const uint16_t *x, uint32_t count, float *out)
{
    uint32_t k = 0;

    for (; k + 8 <= count; k += 8)
        _mm256_storeu_ps(out + k, vec_load_bf16(x + k));
    for (; k < count; k++)
        out[k] = lane_bf16_f32(x[k]);
}

/* A chunk's sum goes into the levels above it (6.1). */
static inline void push(tile *t, uint32_t row, uint32_t v, uint32_t chunk, __m256 p)
{
    const uint32_t position = chunk % PER_SEGMENT;
    float *segment = t->segment[row] + 8 * v, *total = t->total[row] + 8 * v;
    const __m256 s = position != 0 ? _mm256_add_ps(_mm256_load_ps(segment), p) : p;

    _mm256_store_ps(segment, s);
    if (position == PER_SEGMENT - 1)
        _mm256_store_ps(total, chunk >= PER_SEGMENT ? _mm256_add_ps(_mm256_load_ps(total), s)
                                                    : s);
}

/* One chunk of `tokens` rows from `row` on; tokens is a constant of the caller. */
static inline void run_chunk(tile *t, uint32_t row, const uint32_t tokens, uint32_t chunk,
                             uint32_t count)
{
    __m256 p[TOKENS_AT_ONCE][VECTORS] = {0};

    for (uint32_t k = 0; k < count; k++) {
        __m256 w[VECTORS];

        for (uint32_t v = 0; v < VECTORS; v++)
            w[v] = _mm256_load_ps(t->w[k] + 8 * v);
        for (uint32_t i = 0; i < tokens; i++) {
            const __m256 x = _mm256_broadcast_ss(t->x[row + i] + k);

            for (uint32_t v = 0; v < VECTORS; v++)
                p[i][v] = _mm256_add_ps(p[i][v], _mm256_mul_ps(x, w[v]));
        }
    }
    for (uint32_t i = 0; i < tokens; i++)
        for (uint32_t v = 0; v < VECTORS; v++)
            push(t, row + i, v, chunk, p[i][v]);
}

static void run_rows(tile *t, uint32_t rows, uint32_t chunk, uint32_t count)
{
    uint32_t row = 0;

    for (; row + TOKENS_AT_ONCE <= rows; row += TOKENS_AT_ONCE)
        run_chunk(t, row, TOKENS_AT_ONCE, chunk, count);
    for (; row < rows; row++)
        run_chunk(t, row, 1, chunk, count);
}

/* The open segment is added; the last chunk was `chunks` - 1. Returns the flags raised. */
static uint32_t store_rows(tile *t, uint32_t rows, uint32_t lanes, uint32_t chunks, float *y,
                           uint64_t stride)
{
    const bool is_open = chunks % PER_SEGMENT != 0, is_first = chunks < PER_SEGMENT;
    uint32_t flags = 0;

    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < lanes; j++) {
            const float s = t->segment[i][j], total = t->total[i][j];
            const float sum = !is_open ? total : is_first ? s : total + s;

            y[i * stride + j] = lane_clean(sum, &flags);
        }
    return flags;
}

static uint32_t run_tile(tile *t, const iso_matmul_f32_args *a, const uint16_t *x, uint32_t rows,
                         uint32_t lanes, float *y)
{
    uint32_t chunk = 0;

    for (uint32_t begin = 0; begin < a->k; begin += LANE_CHUNK, chunk++) {
        const uint32_t left = a->k - begin, count = left < LANE_CHUNK ? left : LANE_CHUNK;

        load_weights(t, begin, count);
        for (uint32_t i = 0; i < rows; i++)
            load_inputs(x + (uint64_t)i * a->k + begin, count, t->x[i]);
        run_rows(t, rows, chunk, count);
    }
    return store_rows(t, rows, lanes, chunk, y, a->n);
}

void iso_cpu_matmul_f32_mn_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_f32_args *a = args;
    const uint16_t *x = tensors->at[X];
    const float *w = tensors->at[W];
    float *y = tensors->at[Y];
    uint32_t flags = 0, lanes;
    tile t;

    for (uint64_t n = units.begin; n < units.end; n += lanes) {
        lanes = units.end - n < LANES ? (uint32_t)(units.end - n) : LANES;
        for (uint32_t j = 0; j < LANES; j++)
            t.row[j] = w + (n + (j < lanes ? j : lanes - 1)) * a->k;
        for (uint64_t row = 0; row < a->rows.count; row += TOKENS) {
            const uint64_t rows = a->rows.count - row;

            flags |= run_tile(&t, a, x + row * a->k, rows < TOKENS ? (uint32_t)rows : TOKENS,
                              lanes, y + row * a->n + n);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}
