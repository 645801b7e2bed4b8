/* attend, up to 16 heads of a token at a time: a block of 64 keys is decoded once for all of them,
 * scores have keys as lanes and values have channels as lanes, both by the tile of tile.h.
 *
 * Pass 1 keeps the scores of every block, pass 2 turns them into weights. A slot without a key has
 * a zero row and the weight +0: what it adds to sums that begin with +0 changes no bit. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/key_slots.h"
#include "backends/cpu/tile.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/exp.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"

enum { Q = 0, SINK = 11, OUT = 12 };
enum {
    KEYS = LANE_KEY_BLOCK, LANES = ISO_TILE_LANES, HEADS = 16, DIM_MAX = 512, BLOCKS_MAX = 40,
    RAW_GROUP = 32, KV_GROUP = 16
};

typedef struct work {
    _Alignas(64) float block[KEYS * DIM_MAX];    /* scores: [2][dim][32 keys]; values:
                                                    [dim / 32][64 keys][32 channels] */
    bool present[BLOCKS_MAX][KEYS];
    float score[HEADS][BLOCKS_MAX][KEYS];
    float block_max[HEADS][BLOCKS_MAX], max[HEADS], total[HEADS];
    float acc[HEADS][DIM_MAX], q[HEADS][DIM_MAX];
    uint32_t flags;
} work;

/* A key's exact values. */
static void raw_key(const iso_key_codes *key, uint32_t dim, float *row)
{
    iso_tile_e4m3(key->code, dim, row);
    for (uint32_t g = 0; g < dim / RAW_GROUP; g++) {
        const float s = lane_ue8m0_f32(key->scale[g]);

        for (uint32_t c = g * RAW_GROUP; c < (g + 1) * RAW_GROUP; c++)
            row[c] = row[c] * s;
    }
}

static void picked_key(const iso_key_codes *key, uint32_t dim, float *row)
{
    for (uint32_t g = 0; g < dim / KV_GROUP; g++) {
        const float s = lane_e4m3_f32(key->scale[g]);

        for (uint32_t i = g * KV_GROUP / 2; i < (g + 1) * KV_GROUP / 2; i++) {
            row[2 * i] = lane_e2m1_f32(key->code[i]) * s;
            row[2 * i + 1] = lane_e2m1_f32((uint32_t)key->code[i] >> 4) * s;
        }
    }
}

/* The key of a slot, or false and a zero row. */
static bool key_row(const iso_key_slots *k, uint32_t block, uint32_t slot, float *row)
{
    const iso_key_span span = iso_key_slots_span(k, block);
    const uint32_t dim = k->a->dim;
    iso_key_codes key;

    if (slot < span.begin || slot >= span.end) {
        memset(row, 0, dim * sizeof *row);
        return false;
    }
    key = iso_key_slots_codes(k, block, slot);
    if (key.is_raw)
        raw_key(&key, dim, row);
    else
        picked_key(&key, dim, row);
    return true;
}

static void load_score_block(work *w, const iso_key_slots *k, uint32_t block)
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

static void load_value_block(work *w, const iso_key_slots *k, uint32_t block)
{
    float row[DIM_MAX];

    for (uint32_t j = 0; j < KEYS; j++) {
        (void)key_row(k, block, j, row);
        for (uint32_t c = 0; c < k->a->dim; c += LANES)
            memcpy(w->block + c * KEYS + j * LANES, row + c, LANES * sizeof *row);
    }
}

/* Scores of 64 keys for one head, and their maximum. */
static void score_block(work *w, const iso_key_slots *k, uint32_t block, uint32_t head)
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
static void value_block(work *w, const iso_key_slots *k, uint32_t block, uint32_t head)
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

static void store_head(work *w, const iso_key_slots *k, uint32_t head, const float *sink,
                       uint16_t *out)
{
    float total = w->total[head];

    if (sink != NULL)
        total = total + lane_clean(lane_exp(*sink - w->max[head]), &w->flags);
    for (uint32_t c = 0; c < k->a->dim; c++)         /* acc is 0 or a multiple of 2^-73 */
        out[c] = (uint16_t)lane_bf16(w->acc[head][c] / total, &w->flags);
}

/* `count` heads of one token from unit `unit` on. A token always has a key: its own. */
static void run_heads(work *w, const iso_key_slots *k, uint64_t unit, uint32_t count)
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
        iso_key_slots k;

        count = in_token < left ? in_token : left;
        count = count < HEADS ? count : HEADS;
        if (iso_key_slots_find(&k, a, tensors->at, unit / a->heads)) {
            run_heads(&w, &k, unit, (uint32_t)count);
            continue;
        }
        w.flags |= ISO_FLAG_INDEX;
        memset((uint16_t *)tensors->at[OUT] + unit * a->dim, 0, count * a->dim * 2);
    }
    iso_flags_raise(tensors->flags, w.flags);
}
