/* attend_heads: up to 32 heads of a token at a time. A block of 64 keys is decoded once for all of
 * them. Scores, weights and their sums have heads as lanes, so that nothing crosses lanes; values
 * have channels as lanes. A file includes vec8.h or vec16.h first.
 *
 * Pass 1 keeps the scores of every block, pass 2 turns them into weights and adds the values. Only
 * the slots that hold a key are visited: an empty one adds +0 to sums that are never -0. */
#ifndef ISO_CPU_X86_ATTEND_HEADS_H
#define ISO_CPU_X86_ATTEND_HEADS_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/key_slots.h"
#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"

enum { Q = 0, SINK = 11, OUT = 12 };
enum {
    KEYS = LANE_KEY_BLOCK, HEADS = 2 * VEC_LANES, GROUPS = 32 / HEADS, DIM_MAX = 512,
    BLOCKS_MAX = 40,
    STRIDE = DIM_MAX + 16,               /* rows of a block begin in different sets of the cache */
    RAW_GROUP = 32, KV_GROUP = 16,
    CHANNELS = 2 * VEC_LANES,            /* of a tile of values: 16 or 32, and dim a multiple */
    KEYS_AT_ONCE = VEC_LANES / 2, HEADS_AT_ONCE = VEC_LANES / 2  /* times two: sums in registers */
};

/* Up to HEADS heads. The last axis of a score is heads; lanes without a head hold a zero query,
 * which is harmless. */
typedef struct group {
    _Alignas(64) float q[DIM_MAX][HEADS];
    float score[BLOCKS_MAX][KEYS][HEADS];
    float block_max[BLOCKS_MAX][HEADS];
    float acc[HEADS][DIM_MAX];
    float sink[HEADS], max[HEADS], total[HEADS];
    uint32_t count;
    veci bad;
} group;

typedef struct work {
    _Alignas(64) float key[KEYS * STRIDE];
    group groups[GROUPS];
} work;

/* ---- keys ---- */

/* e4m3 without subnormal operands: the bits of a normal number with the exponent moved by 120; a
 * code below 8 is 2^-6 (1 + m/8) - 2^-6. Both steps are exact. */
static inline vecf decode_e4m3(const uint8_t *code)
{
    const veci c = vec_load_u8(code), a = VECS(and)(c, vec_u32(0x7f));
    const veci one = vec_where_greater(vec_u32(0x00800000u), vec_u32(8), a);
    const veci least = vec_where_greater(vec_u32(0x3c800000u), vec_u32(8), a);
    const veci bits = VEC(add_epi32)(VEC(slli_epi32)(a, 20), vec_u32(120u << 23));
    const veci sign = VEC(slli_epi32)(VECS(and)(c, vec_u32(0x80)), 24);

    return VEC(or_ps)(VEC(sub_ps)(vec_float(VEC(add_epi32)(bits, one)), vec_float(least)),
                      vec_float(sign));
}

static void decode_raw(const iso_key_codes *key, uint32_t dim, float *row)
{
    for (uint32_t c = 0; c < dim; c += RAW_GROUP) {
        const vecf scale = VEC(set1_ps)(lane_ue8m0_f32(key->scale[c / RAW_GROUP]));

        for (uint32_t i = c; i < c + RAW_GROUP; i += VEC_LANES)      /* exact: 4 bits * 2^k */
            VEC(store_ps)(row + i, VEC(mul_ps)(decode_e4m3(key->code + i), scale));
    }
}

/* The scales of a row times 1/2, because its codes are decoded to twice their value. */
static void decode_kv_scales(const uint8_t *scale, uint32_t count, float *out)
{
    const vecf half = VEC(set1_ps)(0.5f);
    uint32_t i = 0;

    for (; i + VEC_LANES <= count; i += VEC_LANES)
        VEC(storeu_ps)(out + i, VEC(mul_ps)(decode_e4m3(scale + i), half));
    for (; i < count; i++)
        out[i] = lane_e4m3_f32(scale[i]) * 0.5f;
}

static void decode_kv(const iso_key_codes *key, uint32_t dim, float *row)
{
    const __m128i twice = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m128i nibble = _mm_set1_epi8(15);
    float scale[DIM_MAX / KV_GROUP];

    decode_kv_scales(key->scale, dim / KV_GROUP, scale);
    for (uint32_t c = 0; c < dim; c += KV_GROUP) {
        const __m128i pair = _mm_loadl_epi64((const __m128i *)(const void *)(key->code + c / 2));
        const __m128i low = _mm_and_si128(pair, nibble);
        const __m128i high = _mm_and_si128(_mm_srli_epi16(pair, 4), nibble);
        const __m128i value = _mm_shuffle_epi8(twice, _mm_unpacklo_epi8(low, high));
        const vecf s = VEC(set1_ps)(scale[c / KV_GROUP]);
        vecf v[KV_GROUP / VEC_LANES];

        vec_sixteen_i8(value, v);
        for (uint32_t i = 0; i < KV_GROUP / VEC_LANES; i++)      /* exact: 2 + 4 bits */
            VEC(store_ps)(row + c + i * VEC_LANES, VEC(mul_ps)(v[i], s));
    }
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

/* Dots of `count` keys with all heads. dim <= 512 is one segment of chunks. The sums of chunks stay
 * in memory, so that the inner loop has the registers for itself. */
static inline void dot_keys(group *g, uint32_t dim, const float *key, float (*dot)[HEADS],
                            const uint32_t count)
{
    for (uint32_t begin = 0; begin < dim; begin += LANE_CHUNK) {
        const uint32_t end = dim - begin < LANE_CHUNK ? dim : begin + LANE_CHUNK;
        vecf p[KEYS_AT_ONCE][2] = {0};

        for (uint32_t c = begin; c < end; c++) {
            const vecf q0 = VEC(load_ps)(g->q[c]), q1 = VEC(load_ps)(g->q[c] + VEC_LANES);

            for (uint32_t i = 0; i < count; i++) {
                const vecf x = VEC(set1_ps)(key[i * STRIDE + c]);

                p[i][0] = VEC(fmadd_ps)(x, q0, p[i][0]);   /* 8 + 8 bits: exact */
                p[i][1] = VEC(fmadd_ps)(x, q1, p[i][1]);   /* 8 + 8 bits: exact */
            }
        }
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t v = 0; v < 2; v++) {
                float *sum = dot[i] + VEC_LANES * v;

                VEC(store_ps)(sum, begin != 0 ? VEC(add_ps)(VEC(load_ps)(sum), p[i][v])
                                                : p[i][v]);
            }
    }
}

static void score_block(group *g, const iso_attend_args *a, const float *key, uint32_t block,
                        iso_key_span span)
{
    const vecf scale = VEC(set1_ps)(a->scale);
    float (*score)[HEADS] = g->score[block];
    veci bad = g->bad;

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
    for (uint32_t v = 0; v < HEADS; v += VEC_LANES) {
        vecf max = vec_const(0xff800000u);               /* -Inf */

        for (uint32_t j = span.begin; j < span.end; j++) {
            const vecf x = VEC(mul_ps)(VEC(load_ps)(score[j] + v), scale);
            const vecf s = vec_clean(x, &bad);

            VEC(store_ps)(score[j] + v, s);
            max = VEC(max_ps)(max, s);
        }
        VEC(store_ps)(g->block_max[block] + v, max);
    }
    g->bad = bad;
}

/* ---- weights and values ---- */

/* VEC_LANES heads: scores -> weights rounded to bf16; returns the row sum of the exact ones. */
static vecf weigh_block(group *g, uint32_t block, uint32_t v, iso_key_span span)
{
    const vecf max = VEC(load_ps)(g->block_max[block] + v);
    veci bad = g->bad;
    vecf e[KEYS];

    for (uint32_t j = 0; j < KEYS; j++)
        e[j] = VEC(setzero_ps)();
    for (uint32_t j = span.begin; j < span.end; j++) {
        float *p = g->score[block][j] + v;
        const vecf x = VEC(sub_ps)(VEC(load_ps)(p), max);

        e[j] = vec_clean(vec_exp_nonpositive(x), &bad);
        VEC(store_ps)(p, VEC(and_ps)(vec_float(vec_bf16_round(e[j])),
                                         vec_const(0xffff0000u)));
    }
    g->bad = bad;
    for (uint32_t half = KEYS / 2; half != 0; half /= 2)     /* 32 lanes of two, then the tree */
        for (uint32_t j = 0; j < half; j++)
            e[j] = VEC(add_ps)(e[j], e[j + half]);
    return e[0];
}

/* acc += clean(f * sum of p V) for HEADS_AT_ONCE heads and the channels of a tile that begins at
 * key. */
static inline void value_tile(group *g, const float *key, const float *weight, iso_key_span span,
                              const float *f, float *acc)
{
    veci bad = g->bad;
    vecf o[HEADS_AT_ONCE][2] = {0};

    for (uint32_t j = span.begin; j < span.end; j++) {
        const vecf v0 = VEC(load_ps)(key + j * STRIDE);
        const vecf v1 = VEC(load_ps)(key + j * STRIDE + VEC_LANES);

        for (uint32_t i = 0; i < HEADS_AT_ONCE; i++) {
            const vecf p = VEC(set1_ps)(weight[j * HEADS + i]);

            o[i][0] = VEC(fmadd_ps)(p, v0, o[i][0]);       /* 8 + 8 bits: exact */
            o[i][1] = VEC(fmadd_ps)(p, v1, o[i][1]);       /* 8 + 8 bits: exact */
        }
    }
    for (uint32_t i = 0; i < HEADS_AT_ONCE; i++)
        for (uint32_t v = 0; v < 2; v++) {
            float *to = acc + i * DIM_MAX + VEC_LANES * v;
            const vecf t = VEC(mul_ps)(o[i][v], VEC(set1_ps)(f[i]));

            VEC(store_ps)(to, VEC(add_ps)(VEC(load_ps)(to), vec_clean(t, &bad)));
        }
    g->bad = bad;
}

static void value_block(group *g, const iso_attend_args *a, const float *key, uint32_t block,
                        iso_key_span span)
{
    _Alignas(64) float f[HEADS];

    for (uint32_t v = 0; v < HEADS; v += VEC_LANES) {
        const vecf sum = weigh_block(g, block, v, span);
        const vecf x = VEC(sub_ps)(VEC(load_ps)(g->block_max[block] + v),
                                       VEC(load_ps)(g->max + v));
        const vecf fv = vec_clean(vec_exp_nonpositive(x), &g->bad);
        const vecf total = VEC(load_ps)(g->total + v);

        VEC(store_ps)(f + v, fv);
        VEC(store_ps)(g->total + v, VEC(add_ps)(total, VEC(mul_ps)(sum, fv)));
    }
    for (uint32_t c = 0; c < a->dim; c += CHANNELS)
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
    for (uint32_t v = 0; v < HEADS; v += VEC_LANES) {
        vecf max = VEC(load_ps)(k->a->has_sink ? g->sink + v : g->block_max[0] + v);

        for (uint32_t b = 0; b < k->blocks; b++)
            max = VEC(max_ps)(max, VEC(load_ps)(g->block_max[b] + v));
        VEC(store_ps)(g->max + v, max);
        VEC(store_ps)(g->total + v, VEC(setzero_ps)());
    }
    memset(g->acc, 0, sizeof g->acc);
}

static void end_group(group *g, const iso_key_slots *k, uint64_t unit)
{
    const uint32_t dim = k->a->dim;
    uint16_t *out = (uint16_t *)k->at[OUT] + unit * dim;

    for (uint32_t v = 0; v < HEADS && k->a->has_sink; v += VEC_LANES) {
        const vecf x = VEC(sub_ps)(VEC(load_ps)(g->sink + v), VEC(load_ps)(g->max + v));
        const vecf e = vec_clean(vec_exp_nonpositive(x), &g->bad);

        VEC(store_ps)(g->total + v, VEC(add_ps)(VEC(load_ps)(g->total + v), e));
    }
    for (uint32_t h = 0; h < g->count; h++) {
        const vecf total = VEC(set1_ps)(g->total[h]);

        for (uint32_t c = 0; c < dim; c += VEC_LANES)    /* acc is 0 or a multiple of 2^-73 */
            vec_store_bf16(out + h * dim + c,
                             VEC(div_ps)(VEC(load_ps)(g->acc[h] + c), total), &g->bad);
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

void VEC_KERNEL(attend_heads)(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_attend_args *a = args;
    uint32_t flags = 0;
    uint64_t count;
    work w;

    for (uint32_t i = 0; i < GROUPS; i++)
        w.groups[i].bad = VECS(setzero)();
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
        flags |= vec_flags(w.groups[i].bad);
    iso_flags_raise(tensors->flags, flags);
}

#endif
