/* experts_neon: matmul_experts with AArch64 vectors, any number of tokens. 16 tokens and up to 64
 * features at a time, picks of one expert side by side, so that a row of weights comes from memory
 * once for all of them. Included by one file per instruction set, which says how a block is summed.
 *
 * The integer sum of a block is exact by any means (numerics 6.5). An activation is split into
 * three digits of eight bits, X = d0 + 128 d1 + 16384 d2, |d0|, |d1| <= 64, |d2| <= 15; codes are
 * looked up as twice their value. A byte of codes holds an even and an odd k: the digits of a block
 * are stored as its 16 even and then its 16 odd k, so that nothing has to be interleaved. */
#ifndef ISO_CPU_ARM_EXPERTS_NEON_H
#define ISO_CPU_ARM_EXPERTS_NEON_H

#include "backends/cpu/arm/e2m1_neon.h"
#include "backends/cpu/arm/lane_neon.h"
#include "core/op.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/fp8.h"

enum { EXPERTS_X, EXPERTS_XS, EXPERTS_ID, EXPERTS_SLOT, EXPERTS_W, EXPERTS_WS, EXPERTS_Y };
enum {
    EXPERTS_BLOCK = 32, EXPERTS_BLOCKS = LANE_CHUNK / EXPERTS_BLOCK,     /* of a chunk */
    EXPERTS_TOKENS = 16, EXPERTS_FEATURES = 64, EXPERTS_PAIRS = 128, EXPERTS_DIGITS = 3
};

/* The digits of one block of a row: 16 even k, then 16 odd k. */
typedef struct experts_digits {
    int8_t digit[EXPERTS_DIGITS][EXPERTS_BLOCK];
} experts_digits;

/* Twice the values of one block of a row of weights. */
typedef struct experts_codes {
    int8x16_t even, odd;
} experts_codes;

/* Sums of c * X whose four lanes add up to the block's sum; |sum| <= 88,473,600 in all. */
typedef int32x4_t experts_block_fn(experts_codes c, const experts_digits *x);

typedef struct experts_pick {
    int64_t slot;                        /* -1: none */
    uint64_t pair, row;                  /* of y; of x */
    uint32_t digits;                     /* index of its row in `x` */
} experts_pick;

/* The levels above the chunk for four features (iso_sum3 of order.h). */
typedef struct experts_sum {
    float32x4_t segment, total;
} experts_sum;

typedef struct experts_work {
    const iso_matmul_experts_args *a;
    void *const *at;
    uint64_t first_row;
    uint32_t row_count, pick_count;
    uint32_t begin, count;               /* k of the chunk */
    experts_pick picks[EXPERTS_PAIRS];   /* by slot */
    experts_digits x[EXPERTS_PAIRS][EXPERTS_BLOCKS];
    experts_sum sum[EXPERTS_FEATURES / 4][EXPERTS_PAIRS];
} experts_work;

static inline int64_t experts_slot(const iso_matmul_experts_args *a, void *const *at,
                                   uint64_t pair)
{
    const int32_t *slot = at[EXPERTS_SLOT];
    const int32_t e = ((const int32_t *)at[EXPERTS_ID])[pair];

    if (e < 0 || (uint32_t)e >= a->experts || slot[e] < 0 || (uint32_t)slot[e] >= a->slots)
        return -1;
    return slot[e];
}

/* Lists the picks of tokens t .. t + count - 1, sorted by slot. Returns flags. */
static inline uint32_t experts_list(experts_work *w, uint64_t t, uint64_t count)
{
    const iso_matmul_experts_args *a = w->a;
    uint32_t flags = 0;

    w->pick_count = 0;
    w->first_row = t * a->x_per_token;
    w->row_count = (uint32_t)(count * a->x_per_token);
    for (uint64_t pair = t * a->picks; pair < (t + count) * a->picks; pair++) {
        const uint64_t row = a->x_per_token == 1 ? pair / a->picks : pair;
        const experts_pick made = {experts_slot(a, w->at, pair), pair, row,
                                   (uint32_t)(row - w->first_row)};
        uint32_t at = w->pick_count++;

        for (; at > 0 && w->picks[at - 1].slot > made.slot; at--)
            w->picks[at] = w->picks[at - 1];
        w->picks[at] = made;
        flags |= made.slot < 0 ? ISO_FLAG_INDEX : 0;
    }
    return flags;
}

/* Digits of all rows for the chunk. */
static inline void experts_inputs(experts_work *w)
{
    const uint8_t *x = (const uint8_t *)w->at[EXPERTS_X] + w->first_row * w->a->k + w->begin;

    for (uint32_t r = 0; r < w->row_count; r++, x += w->a->k)
        for (uint32_t k = 0; k < w->count; k++) {
            experts_digits *to = &w->x[r][k / EXPERTS_BLOCK];
            const uint32_t at = k % EXPERTS_BLOCK / 2 + k % 2 * (EXPERTS_BLOCK / 2);
            const int32_t v = lane_e4m3_int(x[k]);
            const int32_t d0 = (int32_t)((uint32_t)(v + 64) & 127u) - 64, v1 = (v - d0) / 128;
            const int32_t d1 = (int32_t)((uint32_t)(v1 + 64) & 127u) - 64;

            to->digit[0][at] = (int8_t)d0;
            to->digit[1][at] = (int8_t)d1;
            to->digit[2][at] = (int8_t)((v1 - d1) / 128);
        }
}

static inline experts_codes experts_load(const uint8_t *code)
{
    const int8x16_t table = e2m1_table();
    const uint8x16_t pair = vld1q_u8(code);

    return (experts_codes){vqtbl1q_s8(table, vandq_u8(pair, vdupq_n_u8(15))),
                           vqtbl1q_s8(table, vshrq_n_u8(pair, 4))};
}

/* Four neighbouring features of one slot at the chunk; a feature that is not there repeats one. */
typedef struct experts_rows {
    const uint8_t *code[4], *scale[4];
} experts_rows;

static inline void experts_point(const experts_work *w, int64_t slot, uint64_t n, uint64_t last,
                                 experts_rows *rows)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t feature = (uint64_t)slot * w->a->n + (n + i < last ? n + i : last);
        const uint64_t at = feature * w->a->k + w->begin;

        rows->code[i] = (const uint8_t *)w->at[EXPERTS_W] + at / 2;
        rows->scale[i] = (const uint8_t *)w->at[EXPERTS_WS] + at / EXPERTS_BLOCK;
    }
}

/* 2^(xs + ws - 264) of four features: lane_pow2, also beyond its range. */
static inline float32x4_t experts_power(const experts_rows *rows, uint32_t block, uint32_t xs)
{
    const uint32_t ws[4] = {rows->scale[0][block], rows->scale[1][block], rows->scale[2][block],
                            rows->scale[3][block]};

    return lane4_float(vshlq_n_u32(vaddq_u32(vld1q_u32(ws), vdupq_n_u32(xs - 264 + 127)), 23));
}

/* The chunk's sum goes into the levels above it (6.1). */
static inline void experts_push(experts_sum *sum, uint32_t chunk, float32x4_t value)
{
    const uint32_t per_segment = LANE_SEGMENT / LANE_CHUNK, position = chunk % per_segment;

    sum->segment = position != 0 ? vaddq_f32(sum->segment, value) : value;
    if (position == per_segment - 1)
        sum->total = chunk >= per_segment ? vaddq_f32(sum->total, sum->segment) : sum->segment;
}

/* One chunk of one row for four features: the order of the blocks is that of 6.5. */
__attribute__((always_inline)) static inline float32x4_t experts_chunk(
    const experts_work *w, const experts_pick *p, const experts_rows *rows,
    experts_block_fn *const block)
{
    const iso_matmul_experts_args *a = w->a;
    const uint64_t groups = (a->k - 1) / a->group + 1;
    const uint8_t *xs = (const uint8_t *)w->at[EXPERTS_XS] + p->row * groups;
    float32x4_t chunk = vdupq_n_f32(0.0f);

    for (uint32_t b = 0; b < w->count / EXPERTS_BLOCK; b++) {
        const experts_digits *x = &w->x[p->digits][b];
        const uint32_t at = b * EXPERTS_BLOCK / 2;
        const int32x4_t s0 = block(experts_load(rows->code[0] + at), x);
        const int32x4_t s1 = block(experts_load(rows->code[1] + at), x);
        const int32x4_t s2 = block(experts_load(rows->code[2] + at), x);
        const int32x4_t s3 = block(experts_load(rows->code[3] + at), x);
        const int32x4_t s = vpaddq_s32(vpaddq_s32(s0, s1), vpaddq_s32(s2, s3));
        const uint32_t byte = xs[(w->begin + b * EXPERTS_BLOCK) / a->group];
        const float32x4_t value = vmulq_f32(vcvtq_f32_s32(s), experts_power(rows, b, byte));

        chunk = b != 0 ? vaddq_f32(chunk, value) : value;
    }
    return chunk;
}

/* Features n .. n + features - 1 of all picks, stored. Returns flags. */
static inline uint32_t experts_store(const experts_work *w, uint64_t n, uint32_t features)
{
    const uint32_t chunks = (w->a->k - 1) / LANE_CHUNK + 1;
    const uint32_t per_segment = LANE_SEGMENT / LANE_CHUNK;
    uint16_t *y = w->at[EXPERTS_Y];
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint32_t i = 0; i < w->pick_count; i++)
        for (uint32_t f = 0; f < features; f += 4) {
            const experts_pick *p = &w->picks[i];
            const experts_sum *s = &w->sum[f / 4][i];
            const bool is_open = chunks % per_segment != 0, is_first = chunks < per_segment;
            float32x4_t sum = vdupq_n_f32(0.0f);
            uint32_t word[4];

            if (p->slot >= 0)
                sum = !is_open ? s->total : is_first ? s->segment : vaddq_f32(s->total, s->segment);
            vst1q_u32(word, lane4_bf16(sum, &bad));
            for (uint32_t j = 0; j < 4 && f + j < features; j++)
                y[p->pair * w->a->n + n + f + j] = (uint16_t)(word[j] >> 16);
        }
    return lane4_flags(bad);
}

__attribute__((always_inline)) static inline uint32_t experts_features(
    experts_work *w, uint64_t n, uint32_t features, experts_block_fn *const block)
{
    const uint64_t last = n + features - 1;

    for (w->begin = 0; w->begin < w->a->k; w->begin += w->count) {
        const uint32_t left = w->a->k - w->begin;

        w->count = left < LANE_CHUNK ? left : LANE_CHUNK;
        experts_inputs(w);
        for (uint32_t f = 0; f < features; f += 4) {
            experts_rows rows;

            for (uint32_t i = 0; i < w->pick_count; i++) {
                const experts_pick *p = &w->picks[i];

                if (p->slot < 0)
                    continue;
                if (i == 0 || p->slot != p[-1].slot)
                    experts_point(w, p->slot, n + f, last, &rows);
                experts_push(&w->sum[f / 4][i], w->begin / LANE_CHUNK,
                             experts_chunk(w, p, &rows, block));
            }
        }
    }
    return experts_store(w, n, features);
}

__attribute__((always_inline)) static inline uint32_t experts_run(
    const iso_matmul_experts_args *a, const iso_tensors *tensors, iso_range units,
    experts_block_fn *const block)
{
    experts_work w;
    uint32_t flags = 0;

    w.a = a;
    w.at = tensors->at;
    for (uint64_t t = 0; t < a->rows.count; t += EXPERTS_TOKENS) {
        const uint64_t left = a->rows.count - t;

        flags |= experts_list(&w, t, left < EXPERTS_TOKENS ? left : EXPERTS_TOKENS);
        for (uint64_t n = units.begin; n < units.end; n += EXPERTS_FEATURES) {
            const uint64_t more = units.end - n;

            flags |= experts_features(&w, n, more < EXPERTS_FEATURES ? (uint32_t)more
                                                                     : EXPERTS_FEATURES, block);
        }
    }
    return flags;
}

#endif
