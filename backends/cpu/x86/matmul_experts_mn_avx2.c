/* matmul_experts, any number of tokens. Lanes are eight output features. Picks are sorted by the
 * slot of their expert (outputs are independent), so a row of weights is read once for up to ROWS
 * picks, and decoded once for them. One pick at a time, the case of a single token, skips the
 * store of decoded weights. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/fp4_digits_avx2.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

/* The bodies with a constant for has_rest have to stay apart: see chunk_with_rest. */
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

enum { X, XS, EXPERT, SLOT, W, WS, Y };
enum {
    LANES = 8,
    ROWS = 8,
    PICKS = 2048,                        /* sorted together */
    K_MAX = 8192,
    PAIRS_MAX = K_MAX / FP4_PAIR,
    CHUNK_BLOCKS = LANE_CHUNK / FP4_BLOCK,
    SEGMENT_CHUNKS = LANE_SEGMENT / LANE_CHUNK
};

/* One row of activations: digits, and per block what the sum is corrected and scaled with. */
typedef struct row {
    fp4_digits x[PAIRS_MAX];
    int32_t bias[2 * PAIRS_MAX];         /* 12 sum(X) */
    int32_t exponent[2 * PAIRS_MAX];     /* byte of xs - 254 - 10 + 127 */
    bool has_rest[K_MAX / LANE_CHUNK];   /* of a chunk */
    uint64_t index;                      /* of x, to keep a row that is here already */
    bool is_loaded;
} row;

/* The levels above the chunk for eight features (numerics 6.1). */
typedef struct sum8 {
    __m256 segment, total;
} sum8;

typedef struct work {
    const iso_matmul_experts_args *a;
    void *const *at;
    row rows[ROWS];
    uint64_t pair[ROWS];                 /* of y */
    uint32_t count;                      /* of rows */
    uint64_t slot;
    uint64_t keys[2][PICKS];
    __m256i bad;
} work;

/* Eight rows of weights; the last ones repeat where a tile has fewer features. */
typedef struct tile {
    const uint8_t *w[LANES], *ws[LANES];
    const uint8_t *next_w, *next_ws;     /* the tile that follows, to be fetched meanwhile */
    uint32_t next_rows;
} tile;

/* One chunk of a tile, for several rows of activations. */
typedef struct decoded {
    fp4_weights w[CHUNK_BLOCKS / 2][LANES];
    __m256i scales;                      /* four bytes per feature */
} decoded;

/* ---- activations ---- */

static void load_row(work *w, row *r, uint64_t index)
{
    const uint32_t k = w->a->k, per_scale = w->a->group / FP4_BLOCK, blocks = k / FP4_BLOCK;
    const uint64_t groups = (k - 1) / w->a->group + 1;
    const uint8_t *x = (const uint8_t *)w->at[X] + index * k;
    const uint8_t *xs = (const uint8_t *)w->at[XS] + index * groups;
    bool has_rest;

    if (r->is_loaded && r->index == index)
        return;
    for (uint32_t b = 0; b < blocks; b += 2) {
        const __m256i first = _mm256_loadu_si256((const void *)(x + b * FP4_BLOCK));
        const __m256i second = b + 1 == blocks ? _mm256_setzero_si256()
                             : _mm256_loadu_si256((const void *)(x + (b + 1) * FP4_BLOCK));

        has_rest = fp4_split(first, second, &r->x[b / 2]);
        r->has_rest[b / CHUNK_BLOCKS] = (b % CHUNK_BLOCKS != 0 && r->has_rest[b / CHUNK_BLOCKS])
                                     || has_rest;
        fp4_bias(&r->x[b / 2], r->bias + b);
    }
    for (uint32_t b = 0; b < blocks; b++)
        r->exponent[b] = (int32_t)xs[b / per_scale] - 254 - 10 + 127;
    r->index = index;
    r->is_loaded = true;
}

/* ---- one chunk ---- */

/* Bytes of the scales of a chunk's blocks, a word per feature. */
static inline __m256i load_scales(const tile *t, uint32_t chunk, uint32_t blocks)
{
    int32_t word[LANES] = {0};

    if (blocks == CHUNK_BLOCKS)
        for (int i = 0; i < LANES; i++)
            memcpy(&word[i], t->ws[i] + chunk * CHUNK_BLOCKS, CHUNK_BLOCKS);
    else
        for (int i = 0; i < LANES; i++)
            memcpy(&word[i], t->ws[i] + chunk * CHUNK_BLOCKS, blocks);
    return _mm256_setr_epi32(word[0], word[1], word[2], word[3], word[4], word[5], word[6],
                             word[7]);
}

/* p + f32(S) 2^e for block b of the row; `sum` holds S + 12 sum(X), `scales` the byte of the
 * weights in its low byte. */
static inline __m256 add_block(__m256 p, __m256i sum, __m256i scales, const row *r, uint32_t b)
{
    const __m256i byte = _mm256_and_si256(scales, _mm256_set1_epi32(255));
    const __m256i e = _mm256_add_epi32(byte, _mm256_set1_epi32(r->exponent[b]));
    const __m256i s = _mm256_sub_epi32(sum, _mm256_set1_epi32(r->bias[b]));
    const __m256 power = vec_float(_mm256_slli_epi32(e, 23));

    /* Numerics 5 and 6.5. */
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(s), power, p); /* 2^e: exact, fma == mul+add */
}

static inline __m256i load_codes(const uint8_t *w, bool is_whole)
{
    return is_whole ? _mm256_loadu_si256((const void *)w)
                    : _mm256_zextsi128_si256(_mm_loadu_si128((const void *)w));
}

/* The parts of one pair for row i of the weights. */
INLINE __m256i row_part(const tile *t, int i, const fp4_digits *x, uint64_t offset,
                               bool is_whole, bool has_rest)
{
    const fp4_weights w = fp4_decode(load_codes(t->w[i] + offset, is_whole));

    return fp4_dot(&w, x, has_rest);
}

/* The sums of pair `pair` for the eight rows. Four at a time: their parts stay in registers. */
INLINE void pair_sums(const tile *t, const fp4_digits *x, uint32_t pair, bool is_whole,
                             bool has_rest, __m256i sum[2])
{
    const uint64_t offset = pair * (FP4_PAIR / 2);
    __m256i four[2];

    for (int i = 0; i < 2; i++)
        four[i] = fp4_gather4(row_part(t, 4 * i, x, offset, is_whole, has_rest),
                              row_part(t, 4 * i + 1, x, offset, is_whole, has_rest),
                              row_part(t, 4 * i + 2, x, offset, is_whole, has_rest),
                              row_part(t, 4 * i + 3, x, offset, is_whole, has_rest));
    fp4_gather8(four[0], four[1], sum);
}

static inline __m256 chunk_pair(__m256 p, __m256i *scales, const __m256i sum[2], const row *r,
                                uint32_t pair, bool is_whole)
{
    p = add_block(p, sum[0], *scales, r, 2 * pair);
    if (is_whole)
        p = add_block(p, sum[1], _mm256_srli_epi32(*scales, 8), r, 2 * pair + 1);
    *scales = _mm256_srli_epi32(*scales, 16);
    return p;
}

/* P_c of one row (numerics 6.5); fma with +0 gives the first block itself. */
INLINE __m256 chunk_one(const tile *t, const row *r, uint32_t chunk, uint32_t blocks,
                               bool has_rest)
{
    __m256i scales = load_scales(t, chunk, blocks), sum[2];
    __m256 p = _mm256_setzero_ps();

    for (uint32_t b = 0; b < blocks; b += 2) {
        const uint32_t pair = (chunk * CHUNK_BLOCKS + b) / 2;

        if (b + 1 < blocks)
            pair_sums(t, &r->x[pair], pair, true, has_rest, sum);
        else
            pair_sums(t, &r->x[pair], pair, false, has_rest, sum);
        p = chunk_pair(p, &scales, sum, r, pair, b + 1 < blocks);
    }
    return p;
}

/* Functions of their own, because a compiler that sees the first two together computes what they
 * share ahead of the branch and runs out of registers. */
NOINLINE static __m256 chunk_with_rest(const tile *t, const row *r, uint32_t chunk)
{
    return chunk_one(t, r, chunk, CHUNK_BLOCKS, true);
}

NOINLINE static __m256 chunk_without_rest(const tile *t, const row *r, uint32_t chunk)
{
    return chunk_one(t, r, chunk, CHUNK_BLOCKS, false);
}

NOINLINE static __m256 chunk_short(const tile *t, const row *r, uint32_t chunk, uint32_t blocks)
{
    return chunk_one(t, r, chunk, blocks, true);
}

/* Rows of weights are too short for the processor to notice that they follow each other: fetches as
 * many bytes of the next tile as a chunk of this one has, in order of address. Into the second
 * level, because a tile and the digits fill the first. One core of an AMD EPYC with 1 MiB of it:
 * K = 2304 from 6.0 to 10.0 GB/s of weights, K = 5120 from 8.5 to 11.2. */
static inline void fetch_next(const tile *t, uint32_t chunk)
{
    const uint8_t *w = t->next_w + (uint64_t)chunk * LANES * (LANE_CHUNK / 2);

    for (uint32_t i = 0; i < t->next_rows; i++)
        _mm_prefetch((const void *)(w + i * (LANE_CHUNK / 2)), _MM_HINT_T1);
    if (chunk % 2 == 0 && t->next_rows == LANES)
        _mm_prefetch((const void *)(t->next_ws + (uint64_t)chunk * LANES * CHUNK_BLOCKS),
                     _MM_HINT_T1);
}

static inline void decode_chunk(const tile *t, uint32_t chunk, uint32_t blocks,
                                decoded *d)
{
    d->scales = load_scales(t, chunk, blocks);
    for (uint32_t b = 0; b < blocks; b += 2)
        for (int i = 0; i < LANES; i++)
            d->w[b / 2][i] = fp4_decode(load_codes(t->w[i] + (chunk * CHUNK_BLOCKS + b)
                                                  * (FP4_BLOCK / 2), b + 1 < blocks));
}

INLINE void decoded_sums(const fp4_weights w[LANES], const fp4_digits *x, bool has_rest,
                                __m256i sum[2])
{
    const __m256i a = fp4_gather4(fp4_dot(&w[0], x, has_rest), fp4_dot(&w[1], x, has_rest),
                                  fp4_dot(&w[2], x, has_rest), fp4_dot(&w[3], x, has_rest));
    const __m256i b = fp4_gather4(fp4_dot(&w[4], x, has_rest), fp4_dot(&w[5], x, has_rest),
                                  fp4_dot(&w[6], x, has_rest), fp4_dot(&w[7], x, has_rest));

    fp4_gather8(a, b, sum);
}

INLINE __m256 chunk_many(const decoded *d, const row *r, uint32_t chunk, uint32_t blocks,
                                bool has_rest)
{
    __m256i scales = d->scales, sum[2];
    __m256 p = _mm256_setzero_ps();

    for (uint32_t b = 0; b < blocks; b += 2) {
        const uint32_t pair = (chunk * CHUNK_BLOCKS + b) / 2;

        decoded_sums(d->w[b / 2], &r->x[pair], has_rest, sum);
        p = chunk_pair(p, &scales, sum, r, pair, b + 1 < blocks);
    }
    return p;
}

NOINLINE static __m256 many_with_rest(const decoded *d, const row *r, uint32_t chunk,
                                      uint32_t blocks)
{
    return chunk_many(d, r, chunk, blocks, true);
}

NOINLINE static __m256 many_without_rest(const decoded *d, const row *r, uint32_t chunk,
                                         uint32_t blocks)
{
    return chunk_many(d, r, chunk, blocks, false);
}

/* ---- tiles ---- */

/* Chunks come in ascending order; every level starts at its first term. */
static inline void push(sum8 *s, uint32_t chunk, bool is_last, __m256 p)
{
    const uint32_t position = chunk % SEGMENT_CHUNKS;

    s->segment = position != 0 ? _mm256_add_ps(s->segment, p) : p;
    if (position == SEGMENT_CHUNKS - 1 || is_last)
        s->total = chunk >= SEGMENT_CHUNKS ? _mm256_add_ps(s->total, s->segment) : s->segment;
}

static void store(work *w, uint64_t pair, uint64_t n, uint32_t lanes, __m256 y)
{
    uint16_t *out = (uint16_t *)w->at[Y] + pair * w->a->n + n;
    uint16_t word[LANES];

    vec_store_u16(word, vec_bf16(y, &w->bad));       /* repeated lanes repeat their flags */
    memcpy(out, word, lanes * sizeof *out);
}

static uint32_t chunk_blocks(uint32_t k, uint32_t chunk)
{
    const uint32_t left = k / FP4_BLOCK - chunk * CHUNK_BLOCKS;

    return left < CHUNK_BLOCKS ? left : CHUNK_BLOCKS;
}

static void run_one(work *w, const tile *t, uint64_t n, uint32_t lanes)
{
    const uint32_t whole = w->a->k / LANE_CHUNK, chunks = (w->a->k - 1) / LANE_CHUNK + 1;
    const row *r = &w->rows[0];
    sum8 s = {_mm256_setzero_ps(), _mm256_setzero_ps()};

    for (uint32_t chunk = 0; chunk < whole; chunk++) {
        fetch_next(t, chunk);
        push(&s, chunk, chunk + 1 == chunks, r->has_rest[chunk]
                                             ? chunk_with_rest(t, r, chunk)
                                             : chunk_without_rest(t, r, chunk));
    }
    if (whole < chunks)
        push(&s, whole, true, chunk_short(t, r, whole, chunk_blocks(w->a->k, whole)));
    store(w, w->pair[0], n, lanes, s.total);
}

static void run_many(work *w, const tile *t, uint64_t n, uint32_t lanes)
{
    const uint32_t chunks = (w->a->k - 1) / LANE_CHUNK + 1;
    decoded d;
    sum8 s[ROWS];

    for (uint32_t i = 0; i < w->count; i++)
        s[i] = (sum8){_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        const uint32_t blocks = chunk_blocks(w->a->k, chunk);

        decode_chunk(t, chunk, blocks, &d);
        fetch_next(t, chunk);
        for (uint32_t i = 0; i < w->count; i++) {
            const row *r = &w->rows[i];

            push(&s[i], chunk, chunk + 1 == chunks, r->has_rest[chunk]
                                                    ? many_with_rest(&d, r, chunk, blocks)
                                                    : many_without_rest(&d, r, chunk, blocks));
        }
    }
    for (uint32_t i = 0; i < w->count; i++)
        store(w, w->pair[i], n, lanes, s[i].total);
}

static void make_tile(const work *w, uint64_t slot, uint64_t n, uint32_t lanes, tile *t)
{
    const uint64_t k = w->a->k;

    for (uint32_t i = 0; i < LANES; i++) {
        const uint64_t feature = slot * w->a->n + n + (i < lanes ? i : lanes - 1);

        t->w[i] = (const uint8_t *)w->at[W] + feature * (k / 2);
        t->ws[i] = (const uint8_t *)w->at[WS] + feature * (k / FP4_BLOCK);
    }
}

/* Names the tile after the one at n: of the same slot, or the first one of `next_slot`. */
static void name_next(const work *w, iso_range units, uint64_t n, uint64_t next_slot, tile *t)
{
    const uint64_t k = w->a->k, next = n + LANES < units.end ? n + LANES : units.begin;
    const uint64_t feature = (next > n ? w->slot : next_slot) * w->a->n + next;

    t->next_w = (const uint8_t *)w->at[W] + feature * (k / 2);
    t->next_ws = (const uint8_t *)w->at[WS] + feature * (k / FP4_BLOCK);
    t->next_rows = units.end - next < LANES ? 0 : LANES;
}

static void run_batch(work *w, iso_range units, uint64_t next_slot)
{
    for (uint64_t n = units.begin; n < units.end; n += LANES) {
        const uint64_t left = units.end - n;
        const uint32_t lanes = left < LANES ? (uint32_t)left : LANES;
        tile t;

        make_tile(w, w->slot, n, lanes, &t);
        name_next(w, units, n, next_slot, &t);
        if (w->count == 1)
            run_one(w, &t, n, lanes);
        else
            run_many(w, &t, n, lanes);
    }
}

/* ---- picks ---- */

/* Merge sort, ascending: slot in the upper half of a key, number of the pick in the lower. */
static const uint64_t *sort_keys(uint64_t (*keys)[PICKS], uint32_t count)
{
    uint32_t from = 0;

    for (uint32_t run = 1; run < count; run *= 2, from ^= 1u)
        for (uint32_t begin = 0; begin < count; begin += 2 * run) {
            const uint32_t middle = count - begin < run ? count : begin + run;
            const uint32_t end = count - middle < run ? count : middle + run;
            uint32_t a = begin, b = middle;

            for (uint32_t i = begin; i < end; i++) {
                const bool is_first = b == end || (a < middle && keys[from][a] < keys[from][b]);

                keys[from ^ 1u][i] = is_first ? keys[from][a++] : keys[from][b++];
            }
        }
    return keys[from];
}

/* Keys of the picks that have a slot; the others get a row of +0. Returns their number. */
static uint32_t list_picks(work *w, iso_range units, uint64_t first, uint32_t count,
                           uint32_t *flags)
{
    const iso_matmul_experts_args *a = w->a;
    const int32_t *expert = w->at[EXPERT], *slot = w->at[SLOT];
    uint16_t *y = w->at[Y];
    uint32_t listed = 0;

    for (uint32_t i = 0; i < count; i++) {
        const int32_t e = expert[first + i];
        const int32_t s = e < 0 || (uint32_t)e >= a->experts ? -1 : slot[e];

        if (s >= 0 && (uint32_t)s < a->slots) {
            w->keys[0][listed++] = (uint64_t)(uint32_t)s << 32 | i;
            continue;
        }
        *flags |= units.begin < units.end ? ISO_FLAG_INDEX : 0;
        memset(y + (first + i) * a->n + units.begin, 0, (units.end - units.begin) * sizeof *y);
    }
    return listed;
}

static void run_picks(work *w, iso_range units, uint64_t first, const uint64_t *keys,
                      uint32_t count)
{
    const iso_matmul_experts_args *a = w->a;

    for (uint32_t i = 0; i < count; i += w->count) {
        w->slot = keys[i] >> 32;
        w->count = 0;
        while (w->count < ROWS && i + w->count < count && keys[i + w->count] >> 32 == w->slot) {
            const uint64_t pair = first + (keys[i + w->count] & 0xffffffffu);

            w->pair[w->count] = pair;
            load_row(w, &w->rows[w->count], a->x_per_token == 1 ? pair / a->picks : pair);
            w->count++;
        }
        run_batch(w, units, i + w->count < count ? keys[i + w->count] >> 32 : w->slot);
    }
}

void iso_cpu_matmul_experts_mn_avx2(const void *args, const iso_tensors *tensors,
                                    iso_range units)
{
    const iso_matmul_experts_args *a = args;
    const uint64_t pairs = (uint64_t)a->rows.count * a->picks;
    uint32_t flags = 0;
    work w;

    w.a = a;
    w.at = tensors->at;
    w.bad = _mm256_setzero_si256();
    for (uint32_t i = 0; i < ROWS; i++)
        w.rows[i].is_loaded = false;
    for (uint64_t first = 0; first < pairs; first += PICKS) {
        const uint64_t left = pairs - first;
        const uint32_t count = list_picks(&w, units, first, left < PICKS ? (uint32_t)left : PICKS,
                                          &flags);

        run_picks(&w, units, first, sort_keys(w.keys, count), count);
    }
    iso_flags_raise(tensors->flags, flags | vec_flags(w.bad));
}
