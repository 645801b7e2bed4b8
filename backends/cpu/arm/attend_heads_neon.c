/* attend, up to 32 heads of a token at a time. A block of 64 keys is decoded once for all of them.
 * Scores, weights and their sums have heads as lanes, so that nothing crosses lanes; values have
 * channels as lanes.
 *
 * Pass 1 keeps the scores of every block, pass 2 turns them into weights and adds the values. Only
 * the slots that hold a key are visited: an empty one adds +0 to sums that are never -0. */
#include "backends/cpu/arm/e2m1_neon.h"
#include "backends/cpu/arm/e4m3_neon.h"
#include "backends/cpu/arm/lane_neon.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/key_slots.h"
#include "ggml-style-ops/lane/bf16.h"

enum { Q = 0, SINK = 11, OUT = 12 };
enum {
    KEYS = LANE_KEY_BLOCK, HEADS = 16, GROUPS = 2, DIM_MAX = 512, BLOCKS_MAX = 40,
    STRIDE = DIM_MAX + 16,               /* rows of a block begin in different sets of the cache */
    KV_GROUP = 16, KEYS_AT_ONCE = 4, HEADS_AT_ONCE = 4, VECTORS = 4  /* of 16 heads or channels */
};

/* Up to 16 heads. The last axis of a score is heads; lanes without a head hold a zero query, which
 * is harmless. */
typedef struct group {
    _Alignas(64) float q[DIM_MAX][HEADS];
    float score[BLOCKS_MAX][KEYS][HEADS];
    float block_max[BLOCKS_MAX][HEADS];
    float acc[HEADS][DIM_MAX];
    float sink[HEADS], max[HEADS], total[HEADS];
    uint32_t count;
    uint32x4_t bad;
} group;

typedef struct work {
    _Alignas(64) float key[KEYS * STRIDE];
    group groups[GROUPS];
} work;

/* ---- keys ---- */

/* Exact: 4 bits * 2^k. A scale that is no normal number, or near the end of the range, goes code by
 * code. */
static void decode_raw(const iso_key_codes *key, uint32_t dim, float *row)
{
    for (uint32_t c = 0; c < dim; c += E4M3_STEP) {
        const uint32_t byte = key->scale[c / E4M3_STEP];

        if (byte != 0 && byte <= 246) {
            e4m3_step(key->code + c, byte, row + c);
            continue;
        }
        for (uint32_t i = c; i < c + E4M3_STEP; i++)
            row[i] = lane_e4m3_f32(key->code[i]) * lane_ue8m0_f32(byte);
    }
}

/* Codes are looked up as twice their value, so the scales are taken times 2^(126 - 127). */
static void decode_kv(const iso_key_codes *key, uint32_t dim, float *row)
{
    uint8_t copy[DIM_MAX / KV_GROUP] = {0};
    float scale[DIM_MAX / KV_GROUP];

    memcpy(copy, key->scale, dim / KV_GROUP);
    e4m3_step(copy, 126, scale);
    for (uint32_t c = 0; c < dim; c += KV_GROUP)
        e2m1_sixteen(key->code + c / 2, scale[c / KV_GROUP], row + c);
}

static void load_block(float *block_key, const iso_key_slots *k, uint32_t block,
                       iso_key_span span)
{
    for (uint32_t j = span.begin; j < span.end; j++) {
        const iso_key_codes key = iso_key_slots_codes(k, block, j);

        if (key.is_raw)
            decode_raw(&key, k->a->dim, block_key + j * STRIDE);
        else
            decode_kv(&key, k->a->dim, block_key + j * STRIDE);
    }
}

/* ---- scores ---- */

static inline float32x4_t larger(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(b, a), b, a);
}

/* Dots of `count` keys with all heads. dim <= 512 is one segment of chunks. The sums of chunks stay
 * in memory, so that the inner loop has the registers for itself. */
static inline void dot_keys(group *g, uint32_t dim, const float *key, float (*dot)[HEADS],
                            const uint32_t count)
{
    for (uint32_t begin = 0; begin < dim; begin += LANE_CHUNK) {
        const uint32_t end = dim - begin < LANE_CHUNK ? dim : begin + LANE_CHUNK;
        float32x4_t p[KEYS_AT_ONCE][VECTORS];

        for (uint32_t i = 0; i < count; i++)
            for (uint32_t v = 0; v < VECTORS; v++)
                p[i][v] = vdupq_n_f32(0.0f);

        for (uint32_t c = begin; c < end; c++) {
            const float32x4_t q0 = vld1q_f32(g->q[c]), q1 = vld1q_f32(g->q[c] + 4);
            const float32x4_t q2 = vld1q_f32(g->q[c] + 8), q3 = vld1q_f32(g->q[c] + 12);

            for (uint32_t i = 0; i < count; i++) {
                const float x = key[i * STRIDE + c];

                p[i][0] = vfmaq_n_f32(p[i][0], q0, x);       /* 8 + 8 bits: exact */
                p[i][1] = vfmaq_n_f32(p[i][1], q1, x);       /* 8 + 8 bits: exact */
                p[i][2] = vfmaq_n_f32(p[i][2], q2, x);       /* 8 + 8 bits: exact */
                p[i][3] = vfmaq_n_f32(p[i][3], q3, x);       /* 8 + 8 bits: exact */
            }
        }
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t v = 0; v < VECTORS; v++) {
                float *sum = dot[i] + 4 * v;

                vst1q_f32(sum, begin != 0 ? vaddq_f32(vld1q_f32(sum), p[i][v]) : p[i][v]);
            }
    }
}

static void score_block(group *g, const iso_attend_args *a, const float *key, uint32_t block,
                        iso_key_span span)
{
    const float32x4_t scale = vdupq_n_f32(a->scale);
    float (*score)[HEADS] = g->score[block];
    uint32x4_t bad = g->bad;

    for (uint32_t j = span.begin; j < span.end;) {
        const uint32_t left = span.end - j;

        if (left >= KEYS_AT_ONCE || span.end - span.begin >= KEYS_AT_ONCE) {
            j = left < KEYS_AT_ONCE ? span.end - KEYS_AT_ONCE : j;   /* some dots again */
            dot_keys(g, a->dim, key + j * STRIDE, score + j, KEYS_AT_ONCE);
            j += KEYS_AT_ONCE;
        } else {
            dot_keys(g, a->dim, key + j * STRIDE, score + j, 1);
            j++;
        }
    }
    for (uint32_t v = 0; v < HEADS; v += 4) {
        float32x4_t max = lane4_const(0xff800000u);               /* -Inf */

        for (uint32_t j = span.begin; j < span.end; j++) {
            const float32x4_t x = vmulq_f32(vld1q_f32(score[j] + v), scale);
            const float32x4_t s = lane4_clean(x, &bad);

            vst1q_f32(score[j] + v, s);
            max = larger(max, s);
        }
        vst1q_f32(g->block_max[block] + v, max);
    }
    g->bad = bad;
}

/* ---- weights and values ---- */

/* Four heads: scores -> weights rounded to bf16; returns the row sum of the exact ones. */
static float32x4_t weigh_block(group *g, uint32_t block, uint32_t v, iso_key_span span)
{
    const float32x4_t max = vld1q_f32(g->block_max[block] + v);
    uint32x4_t bad = g->bad;
    float32x4_t e[KEYS];

    for (uint32_t j = 0; j < KEYS; j++)
        e[j] = vdupq_n_f32(0.0f);
    for (uint32_t j = span.begin; j < span.end; j++) {
        float *p = g->score[block][j] + v;
        const float32x4_t x = vsubq_f32(vld1q_f32(p), max);

        e[j] = lane4_clean(lane4_exp_nonpositive(x), &bad);
        vst1q_f32(p, lane4_float(vandq_u32(lane4_bf16_round(e[j]), vdupq_n_u32(0xffff0000u))));
    }
    g->bad = bad;
    for (uint32_t half = KEYS / 2; half != 0; half /= 2)     /* 32 lanes of two, then the tree */
        for (uint32_t j = 0; j < half; j++)
            e[j] = vaddq_f32(e[j], e[j + half]);
    return e[0];
}

/* acc += clean(f * sum of p V) for four heads from h on and the 16 channels that begin at key. */
static inline void value_tile(group *g, const float *key, const float *weight, iso_key_span span,
                              const float *f, float *acc)
{
    uint32x4_t bad = g->bad;
    float32x4_t o[HEADS_AT_ONCE][VECTORS];

    for (uint32_t i = 0; i < HEADS_AT_ONCE; i++)
        for (uint32_t v = 0; v < VECTORS; v++)
            o[i][v] = vdupq_n_f32(0.0f);
    for (uint32_t j = span.begin; j < span.end; j++) {
        const float *x = key + j * STRIDE;
        const float32x4_t v0 = vld1q_f32(x), v1 = vld1q_f32(x + 4);
        const float32x4_t v2 = vld1q_f32(x + 8), v3 = vld1q_f32(x + 12);

        for (uint32_t i = 0; i < HEADS_AT_ONCE; i++) {
            const float p = weight[j * HEADS + i];

            o[i][0] = vfmaq_n_f32(o[i][0], v0, p);           /* 8 + 8 bits: exact */
            o[i][1] = vfmaq_n_f32(o[i][1], v1, p);           /* 8 + 8 bits: exact */
            o[i][2] = vfmaq_n_f32(o[i][2], v2, p);           /* 8 + 8 bits: exact */
            o[i][3] = vfmaq_n_f32(o[i][3], v3, p);           /* 8 + 8 bits: exact */
        }
    }
    for (uint32_t i = 0; i < HEADS_AT_ONCE; i++)
        for (uint32_t v = 0; v < VECTORS; v++) {
            float *to = acc + i * DIM_MAX + 4 * v;
            const float32x4_t t = vmulq_n_f32(o[i][v], f[i]);

            vst1q_f32(to, vaddq_f32(vld1q_f32(to), lane4_clean(t, &bad)));
        }
    g->bad = bad;
}

static void value_block(group *g, const iso_attend_args *a, const float *key, uint32_t block,
                        iso_key_span span)
{
    _Alignas(32) float f[HEADS];

    for (uint32_t v = 0; v < HEADS; v += 4) {
        const float32x4_t sum = weigh_block(g, block, v, span);
        const float32x4_t x = vsubq_f32(vld1q_f32(g->block_max[block] + v),
                                       vld1q_f32(g->max + v));
        const float32x4_t fv = lane4_clean(lane4_exp_nonpositive(x), &g->bad);
        const float32x4_t total = vld1q_f32(g->total + v);

        vst1q_f32(f + v, fv);
        vst1q_f32(g->total + v, vaddq_f32(total, vmulq_f32(sum, fv)));
    }
    for (uint32_t c = 0; c < a->dim; c += 16)
        for (uint32_t h = 0; h < g->count; h += HEADS_AT_ONCE)
            value_tile(g, key + c, g->score[block][0] + h, span, f + h, g->acc[h] + c);
}

/* ---- heads of one token ---- */

static void start_group(group *g, const iso_key_slots *k, uint64_t unit, uint32_t count)
{
    const uint32_t dim = k->a->dim;
    const uint16_t *q = (const uint16_t *)k->at[Q] + unit * dim;

    g->count = count;
    if (count < HEADS) {
        memset(g->q, 0, sizeof g->q);
        memset(g->sink, 0, sizeof g->sink);
    }
    for (uint32_t h = 0; h < count; h++)
        for (uint32_t c = 0; c < dim; c++)
            g->q[c][h] = lane_bf16_f32(q[h * dim + c]);
    if (k->a->has_sink)
        memcpy(g->sink, (const float *)k->at[SINK] + unit % k->a->heads, count * sizeof *g->sink);
}

/* The maximum of all blocks and of the sink, and empty sums. */
static void start_sums(group *g, const iso_key_slots *k)
{
    for (uint32_t v = 0; v < HEADS; v += 4) {
        float32x4_t max = vld1q_f32(k->a->has_sink ? g->sink + v : g->block_max[0] + v);

        for (uint32_t b = 0; b < k->blocks; b++)
            max = larger(max, vld1q_f32(g->block_max[b] + v));
        vst1q_f32(g->max + v, max);
        vst1q_f32(g->total + v, vdupq_n_f32(0.0f));
    }
    memset(g->acc, 0, sizeof g->acc);
}

static void end_group(group *g, const iso_key_slots *k, uint64_t unit)
{
    const uint32_t dim = k->a->dim;
    uint16_t *out = (uint16_t *)k->at[OUT] + unit * dim;

    for (uint32_t v = 0; v < HEADS && k->a->has_sink; v += 4) {
        const float32x4_t x = vsubq_f32(vld1q_f32(g->sink + v), vld1q_f32(g->max + v));
        const float32x4_t e = lane4_clean(lane4_exp_nonpositive(x), &g->bad);

        vst1q_f32(g->total + v, vaddq_f32(vld1q_f32(g->total + v), e));
    }
    for (uint32_t h = 0; h < g->count; h++) {
        const float32x4_t total = vdupq_n_f32(g->total[h]);

        for (uint32_t c = 0; c < dim; c += 8) {  /* acc is 0 or a multiple of 2^-73 */
            const float *acc = g->acc[h] + c;
            const lane8 y = {vdivq_f32(vld1q_f32(acc), total),
                             vdivq_f32(vld1q_f32(acc + 4), total)};

            lane8_store_bf16_n(out + h * dim + c, 8, y, &g->bad);
        }
    }
}

/* `count` heads of one token from unit `unit` on. A token always has a key: its own. */
static void run_heads(work *w, const iso_key_slots *k, uint64_t unit, uint32_t count)
{
    const uint32_t groups = (count + HEADS - 1) / HEADS;

    for (uint32_t i = 0; i < groups; i++)
        start_group(&w->groups[i], k, unit + i * HEADS,
                    count - i * HEADS < HEADS ? count - i * HEADS : HEADS);
    for (uint32_t b = 0; b < k->blocks; b++) {
        const iso_key_span span = iso_key_slots_span(k, b);

        load_block(w->key, k, b, span);
        for (uint32_t i = 0; i < groups; i++)
            score_block(&w->groups[i], k->a, w->key, b, span);
    }
    for (uint32_t i = 0; i < groups; i++)
        start_sums(&w->groups[i], k);
    for (uint32_t b = 0; b < k->blocks; b++) {
        const iso_key_span span = iso_key_slots_span(k, b);

        load_block(w->key, k, b, span);
        for (uint32_t i = 0; i < groups; i++)
            value_block(&w->groups[i], k->a, w->key, b, span);
    }
    for (uint32_t i = 0; i < groups; i++)
        end_group(&w->groups[i], k, unit + i * HEADS);
}

void iso_cpu_attend_heads_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_attend_args *a = args;
    uint32_t flags = 0;
    uint64_t count;
    work w;

    for (uint32_t i = 0; i < GROUPS; i++)
        w.groups[i].bad = vdupq_n_u32(0);
    for (uint64_t unit = units.begin; unit < units.end; unit += count) {
        const uint64_t in_token = a->heads - unit % a->heads, left = units.end - unit;
        iso_key_slots k;

        count = in_token < left ? in_token : left;
        count = count < HEADS * GROUPS ? count : HEADS * GROUPS;
        if (iso_key_slots_find(&k, a, tensors->at, unit / a->heads)) {
            run_heads(&w, &k, unit, (uint32_t)count);
            continue;
        }
        flags |= ISO_FLAG_INDEX;
        memset((uint16_t *)tensors->at[OUT] + unit * a->dim, 0, count * a->dim * 2);
    }
    for (uint32_t i = 0; i < GROUPS; i++)
        flags |= lane4_flags(w.groups[i].bad);
    iso_flags_raise(tensors->flags, flags);
}
