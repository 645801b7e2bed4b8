/* Products of matrices.
 *
 * Sums: a term of a dot product in the order of numerics 6.1 meets at most n = bounds_dot_depth(K)
 * roundings, so |y - exact| <= g(n) sum |a b| when the products are exact (bf16 x bf16, dequantised
 * codes), and g(n + 1) sum |a b| when they are rounded (f32 x bf16).
 * Operands: a dequantised value below 2^-50 counts as zero, which drops |a b| of its product.
 * Exact class: a block of 32 rounds once (int32 to f32), scales exactly, and meets at most
 * 3 + 7 + segments - 1 adds: g(1 + that) sum over blocks of |block|.
 * Storing: bounds_stored. Bias: clean (t) and one more rounding of the sum. */
#include "tests/bounds/bounds.h"

typedef struct dot_sum {
    real sum, size, dropped;
} dot_sum;

static dot_sum dot(const double *a, const double *b, int64_t k)
{
    dot_sum d = {0};

    for (int64_t i = 0; i < k; i++) {
        const double product = a[i] * b[i];      /* at most 48 bits: exact */

        d.sum += (real)product;
        d.size += (real)fabs(product);
        if (fabs(a[i]) < (double)BOUNDS_TAU || fabs(b[i]) < (double)BOUNDS_TAU)
            d.dropped += (real)fabs(product);
    }
    return d;
}

/* Codes [rows, k], one scale per tile_rows x tile of them. */
typedef struct tiling {
    int64_t rows, k, tile_rows, tile;
} tiling;

static double *dequantise(bounds_case *c, uint32_t code, uint32_t scale, tiling s)
{
    const int64_t tiles = (s.k + s.tile - 1) / s.tile;
    double *value = bounds_decode(c, code);

    for (int64_t r = 0; r < s.rows; r++)
        for (int64_t i = 0; i < s.k; i++)
            value[r * s.k + i] *= bounds_in(c, scale, (uint64_t)(r / s.tile_rows * tiles
                                                                 + i / s.tile));
    return value;
}

void bounds_matmul_bf16(bounds_case *c)
{
    const int64_t k = bounds_extent(c, 0, 1), n = bounds_extent(c, 1, 0);
    const double *x = bounds_decode(c, 0), *w = bounds_decode(c, 1);
    const real g = bounds_gamma(bounds_dot_depth(k));

    for (int64_t i = 0; i < c->rows * n; i++) {
        const dot_sum d = dot(x + i / n * k, w + i % n * k, k);
        real exact = d.sum, error = g * d.size;

        if (bounds_has(c, 2)) {
            exact += (real)bounds_in(c, 2, (uint64_t)(i % n));
            error += BOUNDS_TAU;
            error += BOUNDS_U * (fabsl(exact) + error);
        }
        bounds_stored(c, 0, (uint64_t)i, exact, error);
    }
}

void bounds_matmul_f32(bounds_case *c)
{
    const int64_t k = bounds_extent(c, 1, 1), n = bounds_extent(c, 1, 0);
    const double *x = bounds_decode(c, 0), *w = bounds_decode(c, 1);
    const real g = bounds_gamma(bounds_dot_depth(k) + 1);

    for (int64_t i = 0; i < c->rows * n; i++) {
        const dot_sum d = dot(x + i / n * k, w + i % n * k, k);

        bounds_stored(c, 0, (uint64_t)i, d.sum, g * d.size);
    }
}

void bounds_matmul_fp8(bounds_case *c)
{
    const iso_tile_params *params = (const void *)c->call.params;
    const int64_t k = bounds_extent(c, 0, 1), n = bounds_extent(c, 2, 0), tile = params->tile;
    const double *x = dequantise(c, 0, 1, (tiling){bounds_extent(c, 0, 0), k, 1, tile});
    const double *w = dequantise(c, 2, 3, (tiling){n, k, tile, tile});
    const real g = bounds_gamma(bounds_dot_depth(k));

    for (int64_t i = 0; i < c->rows * n; i++) {
        const dot_sum d = dot(x + i / n * k, w + i % n * k, k);

        bounds_stored(c, 0, (uint64_t)i, d.sum, g * d.size + d.dropped);
    }
}

void bounds_matmul_groups(bounds_case *c)
{
    const iso_groups_params *params = (const void *)c->call.params;
    const int64_t k = bounds_extent(c, 1, 1), n = bounds_extent(c, 1, 0), tile = params->tile;
    const int64_t per_group = n / params->groups;
    const double *x = bounds_decode(c, 0);
    const double *w = dequantise(c, 1, 2, (tiling){n, k, tile, tile});
    const real g = bounds_gamma(bounds_dot_depth(k));

    for (int64_t i = 0; i < c->rows * n; i++) {
        const int64_t t = i / n, j = i % n;
        const dot_sum d = dot(x + (t * params->groups + j / per_group) * k, w + j * k, k);

        bounds_stored(c, 0, (uint64_t)i, d.sum, g * d.size + d.dropped);
    }
}

/* Sum of |block| over the blocks of 32, which is what is rounded. */
static real block_sizes(const double *a, const double *b, int64_t k)
{
    real size = 0.0L;

    for (int64_t begin = 0; begin < k; begin += 32) {
        real block = 0.0L;

        for (int64_t i = begin; i < begin + 32; i++)
            block += (real)(a[i] * b[i]);
        size += fabsl(block);
    }
    return size;
}

void bounds_matmul_experts(bounds_case *c)
{
    const bool is_per_pick = c->call.in[0].rank == 3;
    const int64_t picks = bounds_extent(c, 2, 1), n = bounds_extent(c, 4, 1);
    const int64_t k = bounds_extent(c, 4, 2), slots = bounds_extent(c, 4, 0);
    const int64_t x_rows = iso_desc_rows(&c->call.in[0]);
    const int64_t group = iso_desc_last(&c->call.in[1]) == (k + 31) / 32 ? 32 : 128;
    const double *x = dequantise(c, 0, 1, (tiling){x_rows, k, 1, group});
    const double *w = dequantise(c, 4, 5, (tiling){slots * n, k, 1, 32});
    const int64_t chunks = (k + 127) / 128;
    const real g = bounds_gamma((real)(1 + 3 + (chunks < 8 ? chunks : 8) - 1
                                       + (chunks + 7) / 8 - 1));

    for (int64_t i = 0; i < c->rows * picks * n; i++) {
        const int64_t pair = i / n, row = is_per_pick ? pair : pair / picks;
        const int64_t slot = bounds_int(c, 3, (uint64_t)bounds_int(c, 2, (uint64_t)pair));
        const double *a = x + row * k, *b = w + (slot * n + i % n) * k;

        bounds_stored(c, 0, (uint64_t)i, dot(a, b, k).sum, g * block_sizes(a, b, k));
    }
}
