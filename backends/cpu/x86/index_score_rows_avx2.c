/* index_score: lanes are eight entries of one token. Queries become c + 12, the unsigned operand of
 * 8-bit products, once per token; keys become signed bytes once per eight entries, four k of an
 * entry in each lane. A block of keys stays in registers while the heads pass by. The sum of a
 * block of 32 is exact by any means (numerics 6.5). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/fp4_digits_avx2.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/rows.h"

enum { Q, QS, KEY, KS, WT, ROWS, PAGES, SCORE };
enum {
    LANES = 8,
    VALUES_MAX = 16384,                  /* heads * dim */
    HEADS_MAX = 128,
    CHUNK_BLOCKS = LANE_CHUNK / FP4_BLOCK,
    QUERIES_MAX = VALUES_MAX / FP4_PAIR + HEADS_MAX      /* pairs of all heads */
};

typedef struct work {
    const iso_index_score_args *a;
    void *const *at;
    fp4_weights q[QUERIES_MAX];          /* [heads, pairs] */
    int32_t exponent[VALUES_MAX / FP4_BLOCK];            /* byte of qs - 254 - 2 + 127 */
    float weight[HEADS_MAX];
    __m256 chunk[HEADS_MAX], total[HEADS_MAX];
    uint32_t blocks, pairs;              /* of a head */
    __m256i bad;
    uint32_t flags;
} work;

/* ---- the token ---- */

static inline __m256i load_codes(const uint8_t *codes, bool is_whole)
{
    return is_whole ? _mm256_loadu_si256((const void *)codes)
                    : _mm256_zextsi128_si256(_mm_loadu_si128((const void *)codes));
}

static void load_token(work *w, uint64_t t)
{
    const iso_index_score_args *a = w->a;
    const uint8_t *codes = (const uint8_t *)w->at[Q] + t * a->heads * (a->dim / 2);
    const uint8_t *qs = (const uint8_t *)w->at[QS] + t * a->heads * w->blocks;
    const uint16_t *wt = (const uint16_t *)w->at[WT] + t * a->heads;

    for (uint32_t h = 0; h < a->heads; h++, codes += a->dim / 2) {
        for (uint32_t p = 0; p < w->pairs; p++)
            w->q[h * w->pairs + p] = fp4_decode(load_codes(codes + p * (FP4_PAIR / 2),
                                                           2 * p + 1 < w->blocks));
        w->weight[h] = lane_bf16_f32(lane_bf16(lane_bf16_f32(wt[h]) * a->scale, &w->flags));
    }
    for (uint32_t i = 0; i < a->heads * w->blocks; i++)
        w->exponent[i] = (int32_t)qs[i] - 254 - 2 + 127;
}

/* ---- eight entries ---- */

/* One block of eight entries. */
typedef struct keys {
    __m256i k[8];                        /* word i: four k of entry i */
    __m256i bias;                        /* 12 sum(k) */
    __m256i byte;                        /* of the scales */
} keys;

/* Four words of each of eight rows -> eight rows of each of four words. */
static inline void transpose(const __m128i row[LANES], __m256i out[4])
{
    const __m256i a = _mm256_set_m128i(row[4], row[0]), b = _mm256_set_m128i(row[5], row[1]);
    const __m256i c = _mm256_set_m128i(row[6], row[2]), d = _mm256_set_m128i(row[7], row[3]);
    const __m256i ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi32(c, d), cd1 = _mm256_unpackhi_epi32(c, d);

    out[0] = _mm256_unpacklo_epi64(ab0, cd0);
    out[1] = _mm256_unpackhi_epi64(ab0, cd0);
    out[2] = _mm256_unpacklo_epi64(ab1, cd1);
    out[3] = _mm256_unpackhi_epi64(ab1, cd1);
}

static inline void load_keys(const work *w, const uint32_t row[LANES], uint32_t b, keys *out)
{
    const __m256i twelve = _mm256_set1_epi8(12);
    const uint8_t *codes = (const uint8_t *)w->at[KEY] + b * (FP4_BLOCK / 2), *ks = w->at[KS];
    __m256i codes_of[4], sum = _mm256_setzero_si256();
    __m128i block[LANES];
    int32_t byte[LANES];

    for (uint32_t i = 0; i < LANES; i++) {
        block[i] = _mm_loadu_si128((const void *)(codes + row[i] * (uint64_t)(w->a->dim / 2)));
        byte[i] = ks[(uint64_t)row[i] * w->blocks + b];
    }
    transpose(block, codes_of);
    for (uint32_t j = 0; j < 4; j++) {
        const fp4_weights k = fp4_decode(codes_of[j]);

        out->k[2 * j] = _mm256_sub_epi8(k.even, twelve);
        out->k[2 * j + 1] = _mm256_sub_epi8(k.odd, twelve);
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(twelve, out->k[2 * j]));
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(twelve, out->k[2 * j + 1]));
    }
    out->bias = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
    out->byte = _mm256_loadu_si256((const void *)byte);
}

static inline __m256i four_codes(const __m256i *q, uint32_t offset)
{
    int32_t word;

    memcpy(&word, (const char *)q + offset, sizeof word);
    return _mm256_set1_epi32(word);
}

/* sum of c k over a block: |each 16-bit sum| <= 16 * 24 * 12 = 4,608. */
static inline __m256i block_sums(const keys *k, const fp4_weights *q, uint32_t half)
{
    __m256i even = _mm256_setzero_si256(), odd = even;

    for (uint32_t j = 0; j < 4; j++) {
        const uint32_t offset = 16 * half + 4 * j;

        even = _mm256_add_epi16(even, _mm256_maddubs_epi16(four_codes(&q->even, offset),
                                                           k->k[2 * j]));
        odd = _mm256_add_epi16(odd, _mm256_maddubs_epi16(four_codes(&q->odd, offset),
                                                         k->k[2 * j + 1]));
    }
    return _mm256_sub_epi32(_mm256_madd_epi16(_mm256_add_epi16(even, odd),
                                              _mm256_set1_epi16(1)), k->bias);
}

/* f32(S) 2^e, e clamped as in the reference. */
static inline __m256 block_value(__m256i sums, __m256i key_byte, int32_t exponent)
{
    __m256i e = _mm256_add_epi32(key_byte, _mm256_set1_epi32(exponent));

    e = _mm256_max_epi32(_mm256_min_epi32(e, _mm256_set1_epi32(254)), _mm256_set1_epi32(1));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sums), vec_float(_mm256_slli_epi32(e, 23)));
}

/* Block b of all heads: blocks to chunks, chunks to the total (numerics 6.1). At most 8 chunks: one
 * segment. A sum that starts at +0 is its first term: no term is -0. */
static inline void add_block(work *w, const keys *block, uint32_t b)
{
    const bool is_first = b % CHUNK_BLOCKS == 0;
    const bool is_last = b % CHUNK_BLOCKS == CHUNK_BLOCKS - 1 || b + 1 == w->blocks;
    const keys k = *block;

    for (uint32_t h = 0; h < w->a->heads; h++) {
        const __m256i sums = block_sums(&k, &w->q[h * w->pairs + b / 2], b % 2);
        const __m256 value = block_value(sums, k.byte, w->exponent[h * w->blocks + b]);
        const __m256 before = is_first ? _mm256_setzero_ps() : w->chunk[h];

        w->chunk[h] = _mm256_add_ps(before, value);
        if (is_last)
            w->total[h] = b < CHUNK_BLOCKS ? w->chunk[h]
                                           : _mm256_add_ps(w->total[h], w->chunk[h]);
    }
}

static inline __m256 to_bf16(__m256 x, __m256i *bad)
{
    return vec_float(_mm256_and_si256(vec_bf16_round(vec_clean(x, bad)),
                                        vec_u32(0xffff0000u)));
}

static void score_rows(work *w, const uint32_t row[LANES], uint16_t out[LANES])
{
    __m256 sum = _mm256_setzero_ps();

    for (uint32_t b = 0; b < w->blocks; b++) {
        keys block;

        load_keys(w, row, b, &block);
        add_block(w, &block, b);
    }
    for (uint32_t h = 0; h < w->a->heads; h++) {
        const __m256 d = to_bf16(w->total[h], &w->bad);
        const __m256 positive = _mm256_max_ps(d, _mm256_setzero_ps());   /* NaN: +0 */
        const __m256 u = _mm256_mul_ps(positive, _mm256_set1_ps(w->weight[h]));

        sum = _mm256_add_ps(sum, to_bf16(u, &w->bad));
    }
    vec_store_bf16(out, sum, &w->bad);
}

/* Pool rows of entries j .. j + count - 1; returns a bit for each that has one. Eight rows of a
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

void iso_cpu_index_score_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_index_score_args *a = args;
    const iso_page_table table = {tensors->at[PAGES], a->seqs, a->pages, a->page_rows,
                                  a->pool_rows};
    work w;

    w.a = a;
    w.at = tensors->at;
    w.blocks = a->dim / FP4_BLOCK;
    w.pairs = (w.blocks + 1) / 2;
    w.bad = _mm256_setzero_si256();
    w.flags = 0;
    for (uint64_t t = units.begin; t < units.end; t++)
        score_token(&w, &table, t);
    iso_flags_raise(tensors->flags, w.flags | vec_flags(w.bad));
}
