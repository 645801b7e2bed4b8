/* index_score: one token at a time. Queries and keys become 16-bit integers (twice the e2m1 value);
 * the sum of a block of 32 is exact by any means (numerics 6.5), and compilers have an instruction
 * for 16 x 16 -> 32 bit sums of products. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/tile.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/rows.h"

enum { Q, QS, KEY, KS, WT, ROWS, PAGES, SCORE };
enum { BLOCK = 32, VALUES_MAX = 16384, HEADS_MAX = 128, DIM_MAX = 1024 };

typedef struct work {
    const iso_index_score_args *a;
    void *const *at;
    int16_t q[VALUES_MAX];               /* [heads, dim] */
    float weight[HEADS_MAX];
    const uint8_t *q_scale;              /* [heads, dim / 32] */
    uint32_t flags;
} work;

static void load_token(work *w, uint64_t t)
{
    const iso_index_score_args *a = w->a;
    const uint16_t *wt = (const uint16_t *)w->at[WT] + t * a->heads;

    iso_tile_e2m1((const uint8_t *)w->at[Q] + t * a->heads * (a->dim / 2), a->heads * a->dim, w->q);
    w->q_scale = (const uint8_t *)w->at[QS] + t * a->heads * (a->dim / BLOCK);
    for (uint32_t h = 0; h < a->heads; h++)
        w->weight[h] = lane_bf16_f32(lane_bf16(lane_bf16_f32(wt[h]) * a->scale, &w->flags));
}

static float block_value(const int16_t *q, const int16_t *key, int32_t exponent)
{
    int32_t sum = 0;

    for (uint32_t i = 0; i < BLOCK; i++)
        sum += (int32_t)q[i] * key[i];                           /* |sum| <= 4,608 */
    return (float)sum * lane_pow2(exponent < -126 ? -126 : exponent > 127 ? 127 : exponent);
}

static float dot(const int16_t *q, const uint8_t *qs, const int16_t *key, const uint8_t *ks,
                 uint32_t dim)
{
    const uint32_t per_chunk = LANE_CHUNK / BLOCK, blocks = dim / BLOCK;
    iso_sum3 sum = {0};
    float chunk = 0.0f;

    for (uint32_t b = 0; b < blocks; b++) {
        const float value = block_value(q + b * BLOCK, key + b * BLOCK,
                                        (int32_t)qs[b] + ks[b] - 254 - 2);

        chunk = b % per_chunk != 0 ? chunk + value : value;
        if (b % per_chunk == per_chunk - 1 || b == blocks - 1)
            iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

static uint16_t score_entry(work *w, uint32_t row)
{
    const iso_index_score_args *a = w->a;
    const uint32_t scales = a->dim / BLOCK;
    const uint8_t *ks = (const uint8_t *)w->at[KS] + (uint64_t)row * scales;
    int16_t key[DIM_MAX];
    float sum = 0.0f;

    iso_tile_e2m1((const uint8_t *)w->at[KEY] + (uint64_t)row * (a->dim / 2), a->dim, key);
    for (uint32_t h = 0; h < a->heads; h++) {
        const float s = dot(w->q + h * a->dim, w->q_scale + h * scales, key, ks, a->dim);
        const float d = lane_bf16_f32(lane_bf16(s, &w->flags));
        const float positive = d > 0.0f ? d : 0.0f;

        sum = sum + lane_bf16_f32(lane_bf16(positive * w->weight[h], &w->flags));
    }
    return (uint16_t)lane_bf16(sum, &w->flags);
}

static void score_token(work *w, const iso_page_table *table, uint64_t t)
{
    const iso_index_score_args *a = w->a;
    const int32_t *row = (const int32_t *)w->at[ROWS] + t * ISO_ROW_WORDS;
    const int32_t seq = row[ISO_ROW_SEQ], position = row[ISO_ROW_POSITION];
    uint16_t *score = (uint16_t *)w->at[SCORE] + t * a->entries;
    int64_t visible = iso_visible_entries(position, a->ratio);
    uint32_t pool_row;

    if (seq < 0 || (uint32_t)seq >= a->seqs || position < 0 || visible > a->entries) {
        w->flags |= ISO_FLAG_INDEX;
        visible = 0;
    }
    if (visible != 0)
        load_token(w, t);
    memset(score, 0, a->entries * sizeof *score);
    for (int64_t j = 0; j < visible; j++) {
        if (iso_page_row(table, seq, j, &pool_row))
            score[j] = score_entry(w, pool_row);
        else
            w->flags |= ISO_FLAG_INDEX;
    }
}

void iso_cpu_index_score_rows_portable(const void *args, const iso_tensors *tensors,
                                       iso_range units)
{
    const iso_index_score_args *a = args;
    const iso_page_table table = {tensors->at[PAGES], a->seqs, a->pages, a->page_rows,
                                  a->pool_rows};
    work w;

    w.a = a;
    w.at = tensors->at;
    w.flags = 0;
    for (uint64_t t = units.begin; t < units.end; t++)
        score_token(&w, &table, t);
    iso_flags_raise(tensors->flags, w.flags);
}
