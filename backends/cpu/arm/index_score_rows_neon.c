/* index_score, one token at a time, heads as lanes. Queries and keys become bytes (twice the e2m1
 * value), 16 even k of a block of 32 and then its 16 odd k; the sum of a block is exact by any
 * means (numerics 6.5). */
#include "backends/cpu/arm/e2m1_neon.h"
#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/kernels.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/rows.h"

enum { Q, QS, KEY, KS, WT, ROWS, PAGES, SCORE };
enum {
    BLOCK = 32, VALUES_MAX = 16384, HEADS_MAX = 128, DIM_MAX = 1024,
    PER_CHUNK = LANE_CHUNK / BLOCK, PER_SEGMENT = LANE_SEGMENT / LANE_CHUNK
};

typedef struct work {
    const iso_index_score_args *a;
    void *const *at;
    int8_t q[VALUES_MAX];                /* [heads, dim / 32, even and odd] */
    float weight[HEADS_MAX];
    const uint8_t *q_scale;              /* [heads, dim / 32] */
    uint32_t flags;
    uint32x4_t bad;
} work;

/* `count` codes, a multiple of 32, as bytes. */
static void decode(const uint8_t *code, uint32_t count, int8_t *out)
{
    const int8x16_t table = e2m1_table();

    for (uint32_t k = 0; k < count; k += BLOCK, out += BLOCK) {
        const uint8x16_t pair = vld1q_u8(code + k / 2);

        vst1q_s8(out, vqtbl1q_s8(table, vandq_u8(pair, vdupq_n_u8(15))));
        vst1q_s8(out + BLOCK / 2, vqtbl1q_s8(table, vshrq_n_u8(pair, 4)));
    }
}

static void load_token(work *w, uint64_t t)
{
    const iso_index_score_args *a = w->a;
    const uint16_t *wt = (const uint16_t *)w->at[WT] + t * a->heads;

    decode((const uint8_t *)w->at[Q] + t * a->heads * (a->dim / 2), a->heads * a->dim, w->q);
    w->q_scale = (const uint8_t *)w->at[QS] + t * a->heads * (a->dim / BLOCK);
    for (uint32_t h = 0; h < a->heads; h++)
        w->weight[h] = lane_bf16_f32(lane_bf16(lane_bf16_f32(wt[h]) * a->scale, &w->flags));
}

/* One block: |each of four products in a lane| <= 144. */
static inline int32x4_t block_sum(const int8_t *q, const int8_t *key)
{
    const int8x16_t q0 = vld1q_s8(q), q1 = vld1q_s8(q + BLOCK / 2);
    const int8x16_t k0 = vld1q_s8(key), k1 = vld1q_s8(key + BLOCK / 2);
    int16x8_t sum = vmull_s8(vget_low_s8(q0), vget_low_s8(k0));

    sum = vmlal_high_s8(sum, q0, k0);
    sum = vmlal_s8(sum, vget_low_s8(q1), vget_low_s8(k1));
    sum = vmlal_high_s8(sum, q1, k1);
    return vpaddlq_s16(sum);
}

/* Four heads; one that is not there repeats the last. */
typedef struct four {
    const int8_t *q[4];
    const uint8_t *scale[4];
    float weight[4];
} four;

static inline void point(const work *w, uint32_t head, four *f)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t h = head + i < w->a->heads ? head + i : w->a->heads - 1;

        f->q[i] = w->q + h * w->a->dim;
        f->scale[i] = w->q_scale + h * (w->a->dim / BLOCK);
        f->weight[i] = w->weight[h];
    }
}

/* 2^(qs + ks - 256) of four heads, the exponent clamped to what binary32 has. */
static inline float32x4_t power(const four *f, uint32_t block, int32_t ks)
{
    const int32_t qs[4] = {f->scale[0][block], f->scale[1][block], f->scale[2][block],
                           f->scale[3][block]};
    const int32x4_t e = vaddq_s32(vld1q_s32(qs), vdupq_n_s32(ks - 254 - 2));
    const int32x4_t clamped = vminq_s32(vmaxq_s32(e, vdupq_n_s32(-126)), vdupq_n_s32(127));

    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(clamped, vdupq_n_s32(127)), 23));
}

/* Dots of four heads with one key: blocks, chunks and segments as in 6.5 and 6.1. */
static inline float32x4_t dots(const four *f, const int8_t *key, const uint8_t *ks, uint32_t blocks)
{
    float32x4_t chunk = vdupq_n_f32(0.0f), segment = chunk, total = chunk;

    for (uint32_t b = 0; b < blocks; b++) {
        const int8_t *k = key + b * BLOCK;
        const uint32_t at = b * BLOCK, c = b / PER_CHUNK;
        const int32x4_t low = vpaddq_s32(block_sum(f->q[0] + at, k), block_sum(f->q[1] + at, k));
        const int32x4_t high = vpaddq_s32(block_sum(f->q[2] + at, k), block_sum(f->q[3] + at, k));
        const float32x4_t value = vmulq_f32(vcvtq_f32_s32(vpaddq_s32(low, high)),
                                            power(f, b, ks[b]));

        chunk = b % PER_CHUNK != 0 ? vaddq_f32(chunk, value) : value;
        if (b % PER_CHUNK != PER_CHUNK - 1 && b != blocks - 1)
            continue;
        segment = c % PER_SEGMENT != 0 ? vaddq_f32(segment, chunk) : chunk;
        if (c % PER_SEGMENT == PER_SEGMENT - 1 || b == blocks - 1)
            total = c >= PER_SEGMENT ? vaddq_f32(total, segment) : segment;
    }
    return total;
}

static inline float32x4_t round_bf16(float32x4_t x, uint32x4_t *bad)
{
    return lane4_float(vandq_u32(lane4_bf16(x, bad), vdupq_n_u32(0xffff0000u)));
}

static uint16_t score_entry(work *w, uint32_t row)
{
    const iso_index_score_args *a = w->a;
    const uint32_t blocks = a->dim / BLOCK;
    const uint8_t *ks = (const uint8_t *)w->at[KS] + (uint64_t)row * blocks;
    int8_t key[DIM_MAX];
    float sum = 0.0f;

    decode((const uint8_t *)w->at[KEY] + (uint64_t)row * (a->dim / 2), a->dim, key);
    for (uint32_t h = 0; h < a->heads; h += 4) {
        float32x4_t d, positive;
        float term[4];
        four f;

        point(w, h, &f);
        d = round_bf16(dots(&f, key, ks, blocks), &w->bad);
        positive = vbslq_f32(vcgtzq_f32(d), d, vdupq_n_f32(0.0f));
        vst1q_f32(term, round_bf16(vmulq_f32(positive, vld1q_f32(f.weight)), &w->bad));
        for (uint32_t i = 0; i < 4 && h + i < a->heads; i++)
            sum = sum + term[i];
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

void iso_cpu_index_score_rows_neon(const void *args, const iso_tensors *tensors,
                                   iso_range units)
{
    const iso_index_score_args *a = args;
    const iso_page_table table = {tensors->at[PAGES], a->seqs, a->pages, a->page_rows,
                                  a->pool_rows};
    work w;

    w.a = a;
    w.at = tensors->at;
    w.flags = 0;
    w.bad = vdupq_n_u32(0);
    for (uint64_t t = units.begin; t < units.end; t++)
        score_token(&w, &table, t);
    iso_flags_raise(tensors->flags, w.flags | lane4_flags(w.bad));
}
