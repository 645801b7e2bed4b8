/* index_score_rows: lanes are entries of one token. Queries become c + 12, the unsigned operand of
 * 8-bit products, once per token; keys become signed bytes once per LANES entries, four k of an
 * entry in each lane. A block of keys stays in registers while the heads pass by. The sum of a
 * block of 32 is exact by any means (numerics 6.5). A file includes vec8.h or vec16.h, then
 * fp4_dot_madd.h or fp4_dot_vnni.h, first. */
#ifndef ISO_CPU_X86_INDEX_SCORE_ROWS_H
#define ISO_CPU_X86_INDEX_SCORE_ROWS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_vec.h"
#include "backends/cpu/x86/turn_vec.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/rows.h"

enum { Q, QS, KEY, KS, WT, ROWS, PAGES, SCORE };
enum {
    LANES = VEC_LANES,
    VALUES_MAX = 16384,                  /* heads * dim */
    HEADS_MAX = 128,
    CHUNK_BLOCKS = LANE_CHUNK / FP4_BLOCK,
    QUERIES_MAX = VALUES_MAX / FP4_STEP + HEADS_MAX      /* steps of all heads */
};

typedef struct work {
    const iso_index_score_args *a;
    void *const *at;
    fp4_weights q[QUERIES_MAX];          /* [heads, steps] */
    int32_t exponent[VALUES_MAX / FP4_BLOCK];            /* byte of qs - 254 - 2 + 127 */
    float weight[HEADS_MAX];
    vecf chunk[HEADS_MAX], total[HEADS_MAX];
    uint32_t blocks, steps;              /* of a head */
    veci bad;
    uint32_t flags;
} work;

/* ---- the token ---- */

static void load_token(work *w, uint64_t t)
{
    const iso_index_score_args *a = w->a;
    const uint8_t *codes = (const uint8_t *)w->at[Q] + t * a->heads * (a->dim / 2);
    const uint8_t *qs = (const uint8_t *)w->at[QS] + t * a->heads * w->blocks;
    const uint16_t *wt = (const uint16_t *)w->at[WT] + t * a->heads;

    for (uint32_t h = 0; h < a->heads; h++, codes += a->dim / 2) {
        for (uint32_t p = 0; p < w->steps; p++)
            w->q[h * w->steps + p] = fp4_decode(fp4_load_codes(
                codes + p * (FP4_STEP / 2), w->blocks - p * FP4_STEP_BLOCKS));
        w->weight[h] = lane_bf16_f32(lane_bf16(lane_bf16_f32(wt[h]) * a->scale, &w->flags));
    }
    for (uint32_t i = 0; i < a->heads * w->blocks; i++)
        w->exponent[i] = (int32_t)qs[i] - 254 - 2 + 127;
}

/* ---- LANES entries ---- */

/* One block of each entry. */
typedef struct keys {
    veci k[8];                        /* word i: four k of entry i */
    veci bias;                        /* 12 sum(k) */
    veci byte;                        /* of the scales */
} keys;

static inline void load_keys(const work *w, const uint32_t row[LANES], uint32_t b, keys *out)
{
    static const uint8_t twelve[16] = {12, 12, 12, 12, 12, 12, 12, 12,
                                       12, 12, 12, 12, 12, 12, 12, 12};
    const uint8_t *codes = (const uint8_t *)w->at[KEY] + b * (FP4_BLOCK / 2), *ks = w->at[KS];
    const uint16_t *entry[LANES];
    veci codes_of[4];
    int32_t byte[LANES];

    for (uint32_t i = 0; i < LANES; i++) {
        entry[i] = (const void *)(codes + row[i] * (uint64_t)(w->a->dim / 2));
        byte[i] = ks[(uint64_t)row[i] * w->blocks + b];
    }
    vec_turn(entry, 0, codes_of);
    for (uint32_t j = 0; j < 4; j++) {
        const fp4_weights k = fp4_decode(codes_of[j]);

        out->k[2 * j] = VEC(sub_epi8)(k.even, VEC(set1_epi8)(12));
        out->k[2 * j + 1] = VEC(sub_epi8)(k.odd, VEC(set1_epi8)(12));
    }
    out->bias = fp4_lanes_dot(twelve, twelve, out->k);
    out->byte = VECS(loadu)((const void *)byte);
}

/* sum of c k over block `block` of a step of queries. */
static inline veci block_sums(const keys *k, const fp4_weights *q, uint32_t block)
{
    const uint8_t *even = (const uint8_t *)&q->even, *odd = (const uint8_t *)&q->odd;

    return VEC(sub_epi32)(fp4_lanes_dot(even + 16 * block, odd + 16 * block, k->k), k->bias);
}

/* f32(S) 2^e, e clamped as in the reference. */
static inline vecf block_value(veci sums, veci key_byte, int32_t exponent)
{
    veci e = VEC(add_epi32)(key_byte, VEC(set1_epi32)(exponent));

    e = VEC(max_epi32)(VEC(min_epi32)(e, VEC(set1_epi32)(254)), VEC(set1_epi32)(1));
    return VEC(mul_ps)(VEC(cvtepi32_ps)(sums), vec_float(VEC(slli_epi32)(e, 23)));
}

/* Block b of all heads: blocks to chunks, chunks to the total (numerics 6.1). At most 8 chunks: one
 * segment. A sum that starts at +0 is its first term: no term is -0. */
static inline void add_block(work *w, const keys *block, uint32_t b)
{
    const bool is_first = b % CHUNK_BLOCKS == 0;
    const bool is_last = b % CHUNK_BLOCKS == CHUNK_BLOCKS - 1 || b + 1 == w->blocks;
    const keys k = *block;

    for (uint32_t h = 0; h < w->a->heads; h++) {
        const veci sums = block_sums(&k, &w->q[h * w->steps + b / FP4_STEP_BLOCKS],
                                    b % FP4_STEP_BLOCKS);
        const vecf value = block_value(sums, k.byte, w->exponent[h * w->blocks + b]);
        const vecf before = is_first ? VEC(setzero_ps)() : w->chunk[h];

        w->chunk[h] = VEC(add_ps)(before, value);
        if (is_last)
            w->total[h] = b < CHUNK_BLOCKS ? w->chunk[h]
                                           : VEC(add_ps)(w->total[h], w->chunk[h]);
    }
}

static inline vecf to_bf16(vecf x, veci *bad)
{
    return vec_float(VECS(and)(vec_bf16_round(vec_clean(x, bad)),
                                        vec_u32(0xffff0000u)));
}

static void score_rows(work *w, const uint32_t row[LANES], uint16_t out[LANES])
{
    vecf sum = VEC(setzero_ps)();

    for (uint32_t b = 0; b < w->blocks; b++) {
        keys block;

        load_keys(w, row, b, &block);
        add_block(w, &block, b);
    }
    for (uint32_t h = 0; h < w->a->heads; h++) {
        const vecf d = to_bf16(w->total[h], &w->bad);
        const vecf positive = VEC(max_ps)(d, VEC(setzero_ps)());   /* NaN: +0 */
        const vecf u = VEC(mul_ps)(positive, VEC(set1_ps)(w->weight[h]));

        sum = VEC(add_ps)(sum, to_bf16(u, &w->bad));
    }
    vec_store_bf16(out, sum, &w->bad);
}

/* Pool rows of entries j .. j + count - 1; returns a bit for each that has one. LANES rows of a
 * page follow each other. */
static uint32_t find_rows(const iso_page_table *table, int32_t seq, int64_t j, uint32_t count,
                          uint32_t row[LANES])
{
    uint32_t found = 0;

    if (table->page_rows % LANES == 0 && iso_page_row(table, seq, j, &row[0])
        && table->pool_rows - row[0] >= count) {
        for (uint32_t i = 1; i < count; i++)
            row[i] = row[0] + i;
        return (1u << count) - 1;
    }
    for (uint32_t i = 0; i < count; i++)
        found |= iso_page_row(table, seq, j + i, &row[i]) ? 1u << i : 0;
    return found;
}

static void score_token(work *w, const iso_page_table *table, uint64_t t)
{
    const iso_index_score_args *a = w->a;
    const int32_t *words = (const int32_t *)w->at[ROWS] + t * ISO_ROW_WORDS;
    const int32_t seq = words[ISO_ROW_SEQ], position = words[ISO_ROW_POSITION];
    uint16_t *score = (uint16_t *)w->at[SCORE] + t * a->entries;
    int64_t visible = iso_visible_entries(position, a->ratio);
    bool is_loaded = false;

    if (seq < 0 || (uint32_t)seq >= a->seqs || position < 0 || visible > a->entries) {
        w->flags |= ISO_FLAG_INDEX;
        visible = 0;
    }
    memset(score, 0, a->entries * sizeof *score);
    for (int64_t j = 0; j < visible; j += LANES) {
        const uint32_t count = visible - j < LANES ? (uint32_t)(visible - j) : LANES;
        uint32_t row[LANES] = {0}, some = 0;
        const uint32_t found = find_rows(table, seq, j, count, row);
        uint16_t value[LANES];

        if (found != (1u << count) - 1)
            w->flags |= ISO_FLAG_INDEX;
        if (found == 0)
            continue;
        if (!is_loaded)
            load_token(w, t);
        is_loaded = true;
        while ((found >> some & 1u) == 0)
            some++;
        for (uint32_t i = 0; i < LANES; i++)             /* a lane without a row repeats another */
            row[i] = found >> i & 1u ? row[i] : row[some];
        score_rows(w, row, value);
        for (uint32_t i = 0; i < count; i++)
            score[j + i] = found >> i & 1u ? value[i] : 0;
    }
}

void VEC_KERNEL(index_score_rows)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_index_score_args *a = args;
    const iso_page_table table = {tensors->at[PAGES], a->seqs, a->pages, a->page_rows,
                                  a->pool_rows};
    work w;

    w.a = a;
    w.at = tensors->at;
    w.blocks = a->dim / FP4_BLOCK;
    w.steps = (w.blocks - 1) / FP4_STEP_BLOCKS + 1;
    w.bad = VECS(setzero)();
    w.flags = 0;
    for (uint64_t t = units.begin; t < units.end; t++)
        score_token(&w, &table, t);
    iso_flags_raise(tensors->flags, w.flags | vec_flags(w.bad));
}

#endif
