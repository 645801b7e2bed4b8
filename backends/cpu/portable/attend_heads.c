/* attend, up to 16 heads of a token at a time: a block of 64 keys is decoded once for all of them,
 * scores have keys as lanes and values have channels as lanes, both by the tile of tile.h.
 *
 * Pass 1 keeps the scores of every block, pass 2 turns them into weights. A slot without a key has
 * a zero row and the weight +0: what it adds to sums that begin with +0 changes no bit. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/tile.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/exp.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/rows.h"

enum {
    Q, RING_CODE, RING_SCALE, PEND_CODE, PEND_SCALE, KV_CODE, KV_SCALE, PAGES, IDS, ROWS, SEQS,
    SINK, OUT
};
enum {
    KEYS = LANE_KEY_BLOCK, LANES = ISO_TILE_LANES, HEADS = 16, DIM_MAX = 512, BLOCKS_MAX = 40,
    RAW_GROUP = 32, KV_GROUP = 16
};

/* Where the keys of one token lie: raw positions lo .. hi, then `picked` entries. */
typedef struct keys {
    const iso_attend_args *a;
    void *const *at;
    iso_page_table table;
    const int32_t *ids, *seq;
    int64_t lo, hi;
    uint32_t window_blocks, blocks, picked;
    int32_t seq_index;
} keys;

typedef struct work {
    _Alignas(64) float block[KEYS * DIM_MAX];    /* scores: [2][dim][32 keys]; values:
                                                    [dim / 32][64 keys][32 channels] */
    bool present[BLOCKS_MAX][KEYS];
    float score[HEADS][BLOCKS_MAX][KEYS];
    float block_max[HEADS][BLOCKS_MAX], max[HEADS], total[HEADS];
    float acc[HEADS][DIM_MAX], q[HEADS][DIM_MAX];
    uint32_t flags;
} work;

static bool find_raw(keys *k, uint64_t token)
{
    const iso_attend_args *a = k->a;
    const int32_t *row = (const int32_t *)k->at[ROWS] + token * ISO_ROW_WORDS;
    const int64_t window = a->window;
    int64_t base, first;

    k->seq_index = row[ISO_ROW_SEQ];
    k->hi = row[ISO_ROW_POSITION];
    if (k->seq_index < 0 || (uint32_t)k->seq_index >= a->seqs || k->hi < 0)
        return false;
    k->seq = (const int32_t *)k->at[SEQS] + (uint64_t)(uint32_t)k->seq_index * ISO_SEQ_WORDS;
    k->lo = k->hi >= window ? k->hi - window + 1 : 0;
    k->window_blocks = (uint32_t)(k->hi / KEYS - k->lo / KEYS + 1);
    base = k->seq[ISO_SEQ_BASE];
    first = k->seq[ISO_SEQ_FIRST];
    if (k->hi >= base && (base < 0 || first < 0 || k->hi - base >= k->seq[ISO_SEQ_COUNT]
                          || first + k->hi - base >= a->rows.count))
        return false;
    return k->lo >= base || (k->seq[ISO_SEQ_SLOT] >= 0
                             && (uint32_t)k->seq[ISO_SEQ_SLOT] < a->slots
                             && base - k->lo <= window);
}

static bool find_picked(keys *k, uint64_t token)
{
    const iso_attend_args *a = k->a;
    uint32_t index;

    k->picked = 0;
    k->blocks = k->window_blocks;
    if (a->picks == 0)
        return true;
    k->table = (iso_page_table){k->at[PAGES], a->seqs, a->pages, a->page_rows, a->pool_rows};
    k->ids = (const int32_t *)k->at[IDS] + token * a->picks;
    for (; k->picked < a->picks && k->ids[k->picked] != -1; k->picked++)
        if (!iso_page_row(&k->table, k->seq_index, k->ids[k->picked], &index)
            || (k->picked != 0 && k->ids[k->picked] <= k->ids[k->picked - 1]))
            return false;
    k->blocks += (k->picked + KEYS - 1) / KEYS;
    return true;
}

static void raw_key(const keys *k, int64_t position, float *row)
{
    const uint32_t dim = k->a->dim;
    const int64_t base = k->seq[ISO_SEQ_BASE];
    const bool own = position >= base;
    const uint64_t index =
        own ? (uint64_t)(k->seq[ISO_SEQ_FIRST] + position - base)
            : (uint64_t)(uint32_t)k->seq[ISO_SEQ_SLOT] * k->a->window
                  + (uint64_t)position % k->a->window;
    const uint8_t *code = (const uint8_t *)k->at[own ? PEND_CODE : RING_CODE] + index * dim;
    const uint8_t *scale =
        (const uint8_t *)k->at[own ? PEND_SCALE : RING_SCALE] + index * (dim / RAW_GROUP);

    iso_tile_e4m3(code, dim, row);
    for (uint32_t g = 0; g < dim / RAW_GROUP; g++) {
        const float s = lane_ue8m0_f32(scale[g]);

        for (uint32_t c = g * RAW_GROUP; c < (g + 1) * RAW_GROUP; c++)
            row[c] = row[c] * s;
    }
}

static void picked_key(const keys *k, uint32_t index, float *row)
{
    const uint32_t dim = k->a->dim;
    const uint8_t *code = (const uint8_t *)k->at[KV_CODE] + (uint64_t)index * (dim / 2);
    const uint8_t *scale = (const uint8_t *)k->at[KV_SCALE] + (uint64_t)index * (dim / KV_GROUP);

    for (uint32_t g = 0; g < dim / KV_GROUP; g++) {
        const float s = lane_e4m3_f32(scale[g]);

        for (uint32_t i = g * KV_GROUP / 2; i < (g + 1) * KV_GROUP / 2; i++) {
            row[2 * i] = lane_e2m1_f32(code[i]) * s;
            row[2 * i + 1] = lane_e2m1_f32((uint32_t)code[i] >> 4) * s;
        }
    }
}

/* The key of a slot, or false and a zero row. */
static bool key_row(const keys *k, uint32_t block, uint32_t slot, float *row)
{
    if (block < k->window_blocks) {
        const int64_t position = (k->lo / KEYS + block) * KEYS + slot;

        if (position >= k->lo && position <= k->hi) {
            raw_key(k, position, row);
            return true;
        }
    } else {
        const uint32_t rank = (block - k->window_blocks) * KEYS + slot;
        uint32_t index;

        if (rank < k->picked && iso_page_row(&k->table, k->seq_index, k->ids[rank], &index)) {
            picked_key(k, index, row);
            return true;
        }
    }
    memset(row, 0, k->a->dim * sizeof *row);
    return false;
}

static void load_score_block(work *w, const keys *k, uint32_t block)
{
    const uint32_t dim = k->a->dim;
    float row[DIM_MAX];

    for (uint32_t j = 0; j < KEYS; j++) {
        float *out = w->block + j / LANES * dim * LANES + j % LANES;

        w->present[block][j] = key_row(k, block, j, row);
        for (uint32_t c = 0; c < dim; c++)
            out[c * LANES] = row[c];
    }
}

static void load_value_block(work *w, const keys *k, uint32_t block)
{
    float row[DIM_MAX];

    for (uint32_t j = 0; j < KEYS; j++) {
        (void)key_row(k, block, j, row);
        for (uint32_t c = 0; c < k->a->dim; c += LANES)
            memcpy(w->block + c * KEYS + j * LANES, row + c, LANES * sizeof *row);
    }
}

/* Scores of 64 keys for one head, and their maximum. */
static void score_block(work *w, const keys *k, uint32_t block, uint32_t head)
{
    const uint32_t dim = k->a->dim;
    float *score = w->score[head][block], max = 0.0f;
    bool any = false;

    for (uint32_t half = 0; half < KEYS / LANES; half++) {
        iso_tile_sum sum;
        float sums[LANES];
        uint32_t chunk = 0;

        for (uint32_t begin = 0; begin < dim; begin += LANE_CHUNK, chunk++) {
            const uint32_t count = dim - begin < LANE_CHUNK ? dim - begin : LANE_CHUNK;

            iso_tile_chunk(w->block + (half * dim + begin) * LANES, w->q[head] + begin, count,
                           sums);
            iso_tile_push(&sum, chunk, sums);
        }
        iso_tile_end(&sum, chunk);
        for (uint32_t j = 0; j < LANES; j++)
            score[half * LANES + j] = sum.total[j] * k->a->scale;
    }
    w->flags |= iso_tile_clean(score, KEYS);
    for (uint32_t j = 0; j < KEYS; j++)
        if (w->present[block][j]) {
            max = !any || score[j] > max ? score[j] : max;
            any = true;
        }
    for (uint32_t j = 0; j < KEYS; j++)      /* exp of an empty slot must stay in the domain */
        score[j] = w->present[block][j] ? score[j] : max;
    w->block_max[head][block] = max;
}

/* Adds one block of weights and values to a head's sums. */
static void value_block(work *w, const keys *k, uint32_t block, uint32_t head)
{
    const float block_max = w->block_max[head][block];
    float *p = w->score[head][block], sums[LANES], sum, f;
    iso_row_sum row = {0};

    for (uint32_t j = 0; j < KEYS; j++)
        p[j] = lane_exp(p[j] - block_max);
    w->flags |= iso_tile_clean(p, KEYS);
    for (uint32_t j = 0; j < KEYS; j++) {
        p[j] = w->present[block][j] ? p[j] : 0.0f;
        iso_row_sum_add(&row, p[j]);
        p[j] = lane_bf16_f32(lane_bf16(p[j], &w->flags));
    }
    f = lane_clean(lane_exp(block_max - w->max[head]), &w->flags);
    sum = iso_row_sum_end(&row) * f;
    w->total[head] = w->total[head] + sum;
    for (uint32_t c = 0; c < k->a->dim; c += LANES) {
        float *acc = w->acc[head] + c;

        iso_tile_chunk(w->block + c * KEYS, p, KEYS, sums);
        for (uint32_t i = 0; i < LANES; i++)
            sums[i] = sums[i] * f;
        w->flags |= iso_tile_clean(sums, LANES);
        for (uint32_t i = 0; i < LANES; i++)
            acc[i] = acc[i] + sums[i];
    }
}

static void store_head(work *w, const keys *k, uint32_t head, const float *sink, uint16_t *out)
{
    float total = w->total[head];

    if (sink != NULL)
        total = total + lane_clean(lane_exp(*sink - w->max[head]), &w->flags);
    for (uint32_t c = 0; c < k->a->dim; c++)         /* acc is 0 or a multiple of 2^-73 */
        out[c] = (uint16_t)lane_bf16(w->acc[head][c] / total, &w->flags);
}

/* `count` heads of one token from unit `unit` on. A token always has a key: its own. */
static void run_heads(work *w, const keys *k, uint64_t unit, uint32_t count)
{
    const iso_attend_args *a = k->a;
    const float *sinks = a->has_sink ? (const float *)k->at[SINK] + unit % a->heads : NULL;
    const uint16_t *q = (const uint16_t *)k->at[Q] + unit * a->dim;
    uint16_t *out = (uint16_t *)k->at[OUT] + unit * a->dim;

    for (uint32_t h = 0; h < count; h++)
        iso_tile_bf16(q + h * a->dim, a->dim, w->q[h]);
    for (uint32_t b = 0; b < k->blocks; b++) {
        load_score_block(w, k, b);
        for (uint32_t h = 0; h < count; h++)
            score_block(w, k, b, h);
    }
    for (uint32_t h = 0; h < count; h++) {
        w->max[h] = sinks != NULL ? sinks[h] : w->block_max[h][0];
        for (uint32_t b = 0; b < k->blocks; b++)
            w->max[h] = w->block_max[h][b] > w->max[h] ? w->block_max[h][b] : w->max[h];
        w->total[h] = 0.0f;
        memset(w->acc[h], 0, a->dim * sizeof w->acc[h][0]);
    }
    for (uint32_t b = 0; b < k->blocks; b++) {
        load_value_block(w, k, b);
        for (uint32_t h = 0; h < count; h++)
            value_block(w, k, b, h);
    }
    for (uint32_t h = 0; h < count; h++)
        store_head(w, k, h, sinks != NULL ? sinks + h : NULL, out + h * a->dim);
}

void iso_cpu_attend_heads_portable(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_attend_args *a = args;
    uint64_t count;
    work w;

    w.flags = 0;
    for (uint64_t unit = units.begin; unit < units.end; unit += count) {
        const uint64_t in_token = a->heads - unit % a->heads, left = units.end - unit;
        keys k = {.a = a, .at = tensors->at};

        count = in_token < left ? in_token : left;
        count = count < HEADS ? count : HEADS;
        if (find_raw(&k, unit / a->heads) && find_picked(&k, unit / a->heads)) {
            run_heads(&w, &k, unit, (uint32_t)count);
            continue;
        }
        w.flags |= ISO_FLAG_INDEX;
        memset((uint16_t *)tensors->at[OUT] + unit * a->dim, 0, count * a->dim * 2);
    }
    iso_flags_raise(tensors->flags, w.flags);
}
