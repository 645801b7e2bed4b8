/* Index scores and selection.
 *
 * index_score: blocks of 32 are exact integers times a power of two; they meet at most n = 3 + 7 +
 * segments adds: g(n) sum |block|, then bf16: d_h has error D = g(n) S + v (|d_h| + ..) (+ t). The
 * maximum with 0 does not widen it. wt' = bf16(wt * scale): W = (v + u) |wt'| (+ t). The product
 * has error D |wt'| + |d| W + D W, rounds to f32 and to bf16 (v + u, t); the sum over H heads adds
 * g(H) sum |u_h|, and storing rounds once more. Entries that are not visible are +0.
 * Selection: the naive way, by sorting. */
#include "tests/bounds/bounds.h"

#include "core/alloc.h"

/* Error of bf16(x) when x is `exact` up to `error`. */
static real to_bf16(real exact, real error)
{
    const real flushed = fabsl(exact) - error < BOUNDS_TAU ? BOUNDS_TAU : 0.0L;

    return error + BOUNDS_V * (fabsl(exact) + error) + flushed;
}

typedef struct entry_score {
    real exact, error;
} entry_score;

static entry_score score_entry(const bounds_case *c, int64_t t, int64_t pool_row)
{
    const iso_index_params *params = (const void *)c->call.params;
    const int64_t heads = bounds_extent(c, 0, 1), dim = bounds_extent(c, 0, 2);
    const int64_t chunks = (dim + 127) / 128;
    const real g = bounds_gamma((real)(3 + (chunks < 8 ? chunks : 8) - 1 + (chunks + 7) / 8 - 1));
    real sum = 0.0L, size = 0.0L, error = 0.0L;

    for (int64_t h = 0; h < heads; h++) {
        const int64_t q_row = t * heads + h;
        const real wt = (real)bounds_in(c, 4, (uint64_t)q_row) * (real)params->scale;
        const real wt_error = to_bf16(wt, BOUNDS_U * fabsl(wt));
        real d = 0.0L, blocks = 0.0L, d_error, product, product_error;

        for (int64_t b = 0; b < dim / 32; b++) {
            real block = 0.0L;

            for (int64_t i = b * 32; i < b * 32 + 32; i++)
                block += (real)(bounds_in(c, 0, (uint64_t)(q_row * dim + i))
                                * bounds_in(c, 2, (uint64_t)(pool_row * dim + i)));
            block *= (real)bounds_in(c, 1, (uint64_t)(q_row * (dim / 32) + b))
                   * (real)bounds_in(c, 3, (uint64_t)(pool_row * (dim / 32) + b));
            d += block;
            blocks += fabsl(block);
        }
        d_error = to_bf16(d, g * blocks);
        d = d > 0.0L ? d : 0.0L;
        product = d * wt;
        product_error = d_error * fabsl(wt) + d * wt_error + d_error * wt_error;
        product_error += BOUNDS_U * (fabsl(product) + product_error);
        product_error = to_bf16(product, product_error);
        sum += product;
        size += fabsl(product) + product_error;
        error += product_error;
    }
    return (entry_score){sum, error + bounds_gamma((real)heads) * size};
}

static int64_t visible_of(int64_t position, uint32_t ratio) { return (position + 1) / ratio; }

void bounds_index_score(bounds_case *c)
{
    const iso_index_params *params = (const void *)c->call.params;
    const int32_t *rows = c->in[5], *pages = c->in[6];
    const int64_t entries = params->entries, page_rows = params->page_rows;

    for (int64_t t = 0; t < c->rows; t++)
        for (int64_t j = 0; j < entries; j++) {
            const int32_t *page = pages + rows[2 * t] * bounds_extent(c, 6, 1);
            entry_score s;

            if (j >= visible_of(rows[2 * t + 1], params->ratio)) {
                bounds_same_bits(c, 0, (uint64_t)(t * entries + j), 0);
                continue;
            }
            s = score_entry(c, t, page[j / page_rows] * page_rows + j % page_rows);
            bounds_stored(c, 0, (uint64_t)(t * entries + j), s.exact, s.error);
        }
}

/* ---- selection ---- */

static bounds_ranked *take_list(int64_t count)
{
    bounds_ranked *list = iso_alloc_zero((size_t)count + 1, sizeof *list, "bounds list");

    ISO_ASSERT(list != NULL);
    return list;
}

static void give_list(bounds_ranked *list, int64_t count)
{
    iso_release(list, ((size_t)count + 1) * sizeof *list);
}

void bounds_topk_rows(bounds_case *c)
{
    const iso_topk_params *params = (const void *)c->call.params;
    const int64_t entries = bounds_extent(c, 0, 1), k = params->count;
    const uint32_t *bits = c->in[2];
    bounds_ranked *list = take_list(entries);

    for (int64_t t = 0; t < c->rows; t++) {
        const int64_t visible = visible_of(((const int32_t *)c->in[1])[2 * t + 1], params->ratio);
        int64_t count = 0, found = 0;

        for (int64_t j = 0; j < visible; j++)
            if (bits == NULL || (bits[t * (entries / 32) + j / 32] >> j % 32 & 1u) != 0)
                list[count++] = (bounds_ranked){bounds_in(c, 0, (uint64_t)(t * entries + j)), j};
        bounds_sort_best(list, (size_t)count);
        for (int64_t j = 0; j < visible && found < k; j++)
            for (int64_t i = 0; i < k && i < count; i++)
                if (list[i].index == j) {
                    bounds_same(c, 0, (uint64_t)(t * k + found++), j);
                    break;
                }
        for (; found < k; found++)
            bounds_same(c, 0, (uint64_t)(t * k + found), -1);
    }
    give_list(list, entries);
}

/* Marks the entries of one block in expected[0 .. visible). */
static void mark_block(uint8_t *expected, int64_t block, int64_t size, int64_t visible)
{
    for (int64_t j = block * size; j < (block + 1) * size && j < visible; j++)
        expected[j] = 1;
}

void bounds_candidate_blocks(bounds_case *c)
{
    const iso_candidate_params *params = (const void *)c->call.params;
    const int64_t entries = bounds_extent(c, 0, 1), size = params->block;
    bounds_ranked *list = take_list(entries);

    for (int64_t t = 0; t < c->rows; t++) {
        const int64_t visible = visible_of(((const int32_t *)c->in[1])[2 * t + 1], params->ratio);
        const int64_t pinned = visible > 0 ? (visible - 1) / size : -1;
        uint8_t *expected = iso_alloc_zero((size_t)entries, 1, "bounds bits");

        ISO_ASSERT(expected != NULL);
        for (int64_t b = 0; b <= pinned; b++) {
            list[b] = (bounds_ranked){b == pinned ? INFINITY : -INFINITY, b};
            for (int64_t j = b * size; j < (b + 1) * size && j < visible; j++)
                list[b].score = fmax(list[b].score,
                                     bounds_in(c, 0, (uint64_t)(t * entries + j)));
        }
        bounds_sort_best(list, (size_t)(pinned + 1));
        for (int64_t b = 0; b <= pinned && b < params->count; b++)
            mark_block(expected, list[b].index, size, visible);
        for (int64_t word = 0; word < entries / 32; word++) {
            uint32_t bits = 0;

            for (uint32_t i = 0; i < 32; i++)
                bits |= (uint32_t)expected[word * 32 + i] << i;
            bounds_same_bits(c, 0, (uint64_t)(t * (entries / 32) + word), bits);
        }
        iso_release(expected, (size_t)entries);
    }
    give_list(list, entries);
}
