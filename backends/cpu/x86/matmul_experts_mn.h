/* matmul_experts_mn: any number of tokens. Lanes are output features. Picks are sorted by the slot
 * of their expert (outputs are independent), so a row of weights is read once for up to ROWS picks,
 * and decoded once for them. One pick at a time, the case of a single token, skips the store of
 * decoded weights. A file includes vec8.h or vec16.h, then fp4_dot_madd.h or fp4_dot_vnni.h, first.
 */
#ifndef ISO_CPU_X86_MATMUL_EXPERTS_MN_H
#define ISO_CPU_X86_MATMUL_EXPERTS_MN_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/args.h"

/* The bodies with a constant for has_rest have to stay apart: see chunk_with_rest. */
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

enum { X, XS, EXPERT, SLOT, W, WS, Y };
enum {
    LANES = VEC_LANES,
    ROWS = 8,
    PICKS = 2048,                        /* sorted together */
    K_MAX = 8192,
    STEPS_MAX = K_MAX / FP4_STEP,
    CHUNK_BLOCKS = LANE_CHUNK / FP4_BLOCK,
    CHUNK_STEPS = LANE_CHUNK / FP4_STEP,
    SEGMENT_CHUNKS = LANE_SEGMENT / LANE_CHUNK
};

/* One row of activations: digits, and per block what the sum is corrected and scaled with. */
typedef struct row {
    fp4_digits x[STEPS_MAX];
    int32_t bias[K_MAX / FP4_BLOCK];     /* 12 sum(X) */
    int32_t exponent[K_MAX / FP4_BLOCK]; /* byte of xs - 254 - 10 + 127 */
    bool has_rest[K_MAX / LANE_CHUNK];   /* of a chunk */
    uint64_t index;                      /* of x, to keep a row that is here already */
    bool is_loaded;
} row;

/* The levels above the chunk for a tile (numerics 6.1). */
typedef struct tile_sum {
    vecf segment, total;
} tile_sum;

typedef struct work {
    const iso_matmul_experts_args *a;
    void *const *at;
    row rows[ROWS];
    uint64_t pair[ROWS];                 /* of y */
    uint32_t count;                      /* of rows */
    uint64_t slot;
    uint64_t keys[2][PICKS];
    veci bad;
} work;

/* LANES rows of weights; the last ones repeat where a tile has fewer features. */
typedef struct tile {
    const uint8_t *w[LANES], *ws[LANES];
    const uint8_t *next_w, *next_ws;     /* the tile that follows, to be fetched meanwhile */
    uint32_t next_rows;
} tile;

/* One chunk of a tile, for several rows of activations. */
typedef struct decoded {
    fp4_weights w[CHUNK_STEPS][LANES];
    veci scales;                         /* four bytes per feature */
} decoded;

/* ---- activations ---- */

/* 12 sum(X) of the blocks of a step. */
static inline void step_bias(const fp4_digits *x, int32_t bias[FP4_STEP_BLOCKS])
{
    const fp4_weights twelve = {VEC(set1_epi8)(12), VEC(set1_epi8)(12)};
    const veci s = fp4_dot(&twelve, x, true);
    int32_t word[VEC_LANES];

    VECS(storeu)((void *)word, vec_sums_of_four(s, s, s, s));
    for (uint32_t i = 0; i < FP4_STEP_BLOCKS; i++)
        bias[i] = word[4 * i];
}

/* 32 codes; zeros behind the last block. */
static inline __m256i load_block(const uint8_t *x, uint32_t b, uint32_t blocks)
{
    return b < blocks ? _mm256_loadu_si256((const void *)(x + b * FP4_BLOCK))
                      : _mm256_setzero_si256();
}

static void load_row(work *w, row *r, uint64_t index)
{
    const uint32_t k = w->a->k, per_scale = w->a->group / FP4_BLOCK, blocks = k / FP4_BLOCK;
    const uint64_t groups = (k - 1) / w->a->group + 1;
    const uint8_t *x = (const uint8_t *)w->at[X] + index * k;
    const uint8_t *xs = (const uint8_t *)w->at[XS] + index * groups;

    if (r->is_loaded && r->index == index)
        return;
    memset(r->has_rest, 0, sizeof r->has_rest);
    for (uint32_t b = 0; b < blocks; b += FP4_STEP_BLOCKS) {
        fp4_digits *digits = &r->x[b / FP4_STEP_BLOCKS];

        for (uint32_t i = 0; i < FP4_STEP_BLOCKS; i += 2)
            if (fp4_split(load_block(x, b + i, blocks), load_block(x, b + i + 1, blocks), digits,
                          i / 2))
                r->has_rest[b / CHUNK_BLOCKS] = true;
        step_bias(digits, r->bias + b);
    }
    for (uint32_t b = 0; b < blocks; b++)
        r->exponent[b] = (int32_t)xs[b / per_scale] - 254 - 10 + 127;
    r->index = index;
    r->is_loaded = true;
}

/* ---- one chunk ---- */

/* Bytes of the scales of a chunk's blocks, a word per feature. */
static inline veci load_scales(const tile *t, uint32_t chunk, uint32_t blocks)
{
    int32_t word[LANES] = {0};

    if (blocks == CHUNK_BLOCKS)
        for (int i = 0; i < LANES; i++)
            memcpy(&word[i], t->ws[i] + chunk * CHUNK_BLOCKS, CHUNK_BLOCKS);
    else
        for (int i = 0; i < LANES; i++)
            memcpy(&word[i], t->ws[i] + chunk * CHUNK_BLOCKS, blocks);
    return vec_of_words(word);
}

/* p + f32(S) 2^e for block b of the row; `sum` holds S + 12 sum(X), `scales` the byte of the
 * weights in its low byte. */
static inline vecf add_block(vecf p, veci sum, veci scales, const row *r, uint32_t b)
{
    const veci byte = VECS(and)(scales, VEC(set1_epi32)(255));
    const veci e = VEC(add_epi32)(byte, VEC(set1_epi32)(r->exponent[b]));
    const veci s = VEC(sub_epi32)(sum, VEC(set1_epi32)(r->bias[b]));
    const vecf power = vec_float(VEC(slli_epi32)(e, 23));

    /* Numerics 5 and 6.5. */
    return VEC(fmadd_ps)(VEC(cvtepi32_ps)(s), power, p); /* 2^e: exact, fma == mul+add */
}

/* The parts of one step for row i of the weights. */
INLINE veci row_part(const tile *t, uint32_t i, const fp4_digits *x, uint64_t offset,
                     uint32_t blocks, bool has_rest)
{
    const fp4_weights w = fp4_decode(fp4_load_codes(t->w[i] + offset, blocks));

    return fp4_dot(&w, x, has_rest);
}

/* The sums of step `step` for the rows. Four at a time: their parts stay in registers. */
INLINE void step_sums(const tile *t, const fp4_digits *x, uint32_t step, uint32_t blocks,
                      bool has_rest, veci sum[FP4_STEP_BLOCKS])
{
    const uint64_t offset = step * (FP4_STEP / 2);
    veci four[LANES / 4];

    for (uint32_t i = 0; i < LANES / 4; i++)
        four[i] = vec_sums_of_four(row_part(t, 4 * i, x, offset, blocks, has_rest),
                                   row_part(t, 4 * i + 1, x, offset, blocks, has_rest),
                                   row_part(t, 4 * i + 2, x, offset, blocks, has_rest),
                                   row_part(t, 4 * i + 3, x, offset, blocks, has_rest));
    vec_turn_quarters(four, sum);
}

/* p and the sums of the step that begins with block b of the row, `blocks` of them; *scales moves
 * on. */
INLINE vecf add_step(vecf p, veci *scales, const veci sum[FP4_STEP_BLOCKS], const row *r,
                     uint32_t b, uint32_t blocks)
{
    for (uint32_t i = 0; i < FP4_STEP_BLOCKS; i++) {
        if (i < blocks)
            p = add_block(p, sum[i], *scales, r, b + i);
        *scales = VEC(srli_epi32)(*scales, 8);
    }
    return p;
}

/* P_c of one row (numerics 6.5); fma with +0 gives the first block itself. */
INLINE vecf chunk_one(const tile *t, const row *r, uint32_t chunk, uint32_t blocks, bool has_rest)
{
    veci scales = load_scales(t, chunk, blocks), sum[FP4_STEP_BLOCKS];
    vecf p = VEC(setzero_ps)();

    for (uint32_t b = 0; b < blocks; b += FP4_STEP_BLOCKS) {
        const uint32_t first = chunk * CHUNK_BLOCKS + b, step = first / FP4_STEP_BLOCKS;

        if (blocks - b >= FP4_STEP_BLOCKS)
            step_sums(t, &r->x[step], step, FP4_STEP_BLOCKS, has_rest, sum);
        else
            step_sums(t, &r->x[step], step, blocks - b, has_rest, sum);
        p = add_step(p, &scales, sum, r, first, blocks - b);
    }
    return p;
}

/* Functions of their own, because a compiler that sees the first two together computes what they
 * share ahead of the branch and runs out of registers. */
NOINLINE static vecf chunk_with_rest(const tile *t, const row *r, uint32_t chunk)
{
    return chunk_one(t, r, chunk, CHUNK_BLOCKS, true);
}

NOINLINE static vecf chunk_without_rest(const tile *t, const row *r, uint32_t chunk)
{
    return chunk_one(t, r, chunk, CHUNK_BLOCKS, false);
}

NOINLINE static vecf chunk_short(const tile *t, const row *r, uint32_t chunk, uint32_t blocks)
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
    if (chunk * LANES * CHUNK_BLOCKS % 64 == 0 && t->next_rows == LANES)
        _mm_prefetch((const void *)(t->next_ws + (uint64_t)chunk * LANES * CHUNK_BLOCKS),
                     _MM_HINT_T1);
}

static inline void decode_chunk(const tile *t, uint32_t chunk, uint32_t blocks, decoded *d)
{
    d->scales = load_scales(t, chunk, blocks);
    for (uint32_t b = 0; b < blocks; b += FP4_STEP_BLOCKS)
        for (uint32_t i = 0; i < LANES; i++)
            d->w[b / FP4_STEP_BLOCKS][i] = fp4_decode(
                fp4_load_codes(t->w[i] + (chunk * CHUNK_BLOCKS + b) * (FP4_BLOCK / 2), blocks - b));
}

INLINE void decoded_sums(const fp4_weights w[LANES], const fp4_digits *x, bool has_rest,
                         veci sum[FP4_STEP_BLOCKS])
{
    veci four[LANES / 4];

    for (uint32_t i = 0; i < LANES / 4; i++, w += 4)
        four[i] = vec_sums_of_four(fp4_dot(&w[0], x, has_rest), fp4_dot(&w[1], x, has_rest),
                                   fp4_dot(&w[2], x, has_rest), fp4_dot(&w[3], x, has_rest));
    vec_turn_quarters(four, sum);
}

INLINE vecf chunk_many(const decoded *d, const row *r, uint32_t chunk, uint32_t blocks,
                       bool has_rest)
{
    veci scales = d->scales, sum[FP4_STEP_BLOCKS];
    vecf p = VEC(setzero_ps)();

    for (uint32_t b = 0; b < blocks; b += FP4_STEP_BLOCKS) {
        const uint32_t first = chunk * CHUNK_BLOCKS + b;

        decoded_sums(d->w[b / FP4_STEP_BLOCKS], &r->x[first / FP4_STEP_BLOCKS], has_rest, sum);
        p = add_step(p, &scales, sum, r, first, blocks - b);
    }
    return p;
}

NOINLINE static vecf many_with_rest(const decoded *d, const row *r, uint32_t chunk,
                                      uint32_t blocks)
{
    return chunk_many(d, r, chunk, blocks, true);
}

NOINLINE static vecf many_without_rest(const decoded *d, const row *r, uint32_t chunk,
                                         uint32_t blocks)
{
    return chunk_many(d, r, chunk, blocks, false);
}

/* ---- tiles ---- */

/* Chunks come in ascending order; every level starts at its first term. */
static inline void push(tile_sum *s, uint32_t chunk, bool is_last, vecf p)
{
    const uint32_t position = chunk % SEGMENT_CHUNKS;

    s->segment = position != 0 ? VEC(add_ps)(s->segment, p) : p;
    if (position == SEGMENT_CHUNKS - 1 || is_last)
        s->total = chunk >= SEGMENT_CHUNKS ? VEC(add_ps)(s->total, s->segment) : s->segment;
}

static void store(work *w, uint64_t pair, uint64_t n, uint32_t lanes, vecf y)
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
    tile_sum s = {VEC(setzero_ps)(), VEC(setzero_ps)()};

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
    tile_sum s[ROWS];

    for (uint32_t i = 0; i < w->count; i++)
        s[i] = (tile_sum){VEC(setzero_ps)(), VEC(setzero_ps)()};
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

void VEC_KERNEL(matmul_experts_mn)(const void *args, const iso_tensors *tensors,
                                   iso_range units)
{
    const iso_matmul_experts_args *a = args;
    const uint64_t pairs = (uint64_t)a->rows.count * a->picks;
    uint32_t flags = 0;
    work w;

    w.a = a;
    w.at = tensors->at;
    w.bad = VECS(setzero)();
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

#endif
