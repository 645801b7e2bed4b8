/* attend, up to 32 heads of a token at a time. A block of 64 keys is decoded once for all of them.
 * Scores, weights and their sums have heads as lanes, so that nothing crosses lanes; values have
 * channels as lanes.
 *
 * Pass 1 keeps the scores of every block, pass 2 turns them into weights and adds the values. Only
 * the slots that hold a key are visited: an empty one adds +0 to sums that are never -0. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/key_slots.h"
#include "backends/cpu/x86/vec8.h"

#include "backends/cpu/x86/lane_vec.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"

enum { Q = 0, SINK = 11, OUT = 12 };
enum {
    KEYS = LANE_KEY_BLOCK, HEADS = 16, GROUPS = 2, DIM_MAX = 512, BLOCKS_MAX = 40,
    STRIDE = DIM_MAX + 16,               /* rows of a block begin in different sets of the cache */
    RAW_GROUP = 32, KV_GROUP = 16, KEYS_AT_ONCE = 4, HEADS_AT_ONCE = 4
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
    __m256i bad;
} group;

typedef struct work {
    _Alignas(64) float key[KEYS * STRIDE];
    group groups[GROUPS];
} work;

/* ---- keys ---- */

/* e4m3 without subnormal operands: the bits of a normal number with the exponent moved by 120; a
 * code below 8 is 2^-6 (1 + m/8) - 2^-6. Both steps are exact. */
static inline __m256 decode_e4m3(const uint8_t *code)
{
    const __m256i c = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)code));
    const __m256i a = _mm256_and_si256(c, vec_u32(0x7f));
    const __m256i small = _mm256_cmpgt_epi32(vec_u32(8), a);
    const __m256i one = _mm256_and_si256(small, vec_u32(0x00800000u));
    const __m256i bits = _mm256_add_epi32(_mm256_slli_epi32(a, 20), vec_u32(120u << 23));
    const __m256 least = vec_float(_mm256_and_si256(small, vec_u32(0x3c800000u)));
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(c, vec_u32(0x80)), 24);

    return _mm256_or_ps(_mm256_sub_ps(vec_float(_mm256_add_epi32(bits, one)), least),
                        vec_float(sign));
}

static void decode_raw(const iso_key_codes *key, uint32_t dim, float *row)
{
    for (uint32_t c = 0; c < dim; c += RAW_GROUP) {
        const __m256 scale = _mm256_set1_ps(lane_ue8m0_f32(key->scale[c / RAW_GROUP]));

        for (uint32_t i = c; i < c + RAW_GROUP; i += 8)      /* exact: 4 bits * 2^k */
            _mm256_store_ps(row + i, _mm256_mul_ps(decode_e4m3(key->code + i), scale));
    }
}

/* The scales of a row times 1/2, because its codes are decoded to twice their value. */
static void decode_kv_scales(const uint8_t *scale, uint32_t count, float *out)
{
    const __m256 half = _mm256_set1_ps(0.5f);
    uint32_t i = 0;

    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_mul_ps(decode_e4m3(scale + i), half));
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
        const __m256 s = _mm256_set1_ps(scale[c / KV_GROUP]);
        const __m256 v0 = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(value));
        const __m256 v1 = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(value, 8)));

        _mm256_store_ps(row + c, _mm256_mul_ps(v0, s));      /* exact: 2 + 4 bits */
        _mm256_store_ps(row + c + 8, _mm256_mul_ps(v1, s));
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
        __m256 p[KEYS_AT_ONCE][2] = {0};

        for (uint32_t c = begin; c < end; c++) {
            const __m256 q0 = _mm256_load_ps(g->q[c]), q1 = _mm256_load_ps(g->q[c] + 8);

            for (uint32_t i = 0; i < count; i++) {
                const __m256 x = _mm256_broadcast_ss(key + i * STRIDE + c);

                p[i][0] = _mm256_fmadd_ps(x, q0, p[i][0]);   /* 8 + 8 bits: exact */
                p[i][1] = _mm256_fmadd_ps(x, q1, p[i][1]);   /* 8 + 8 bits: exact */
            }
        }
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t v = 0; v < 2; v++) {
                float *sum = dot[i] + 8 * v;

                _mm256_store_ps(sum, begin != 0 ? _mm256_add_ps(_mm256_load_ps(sum), p[i][v])
                                                : p[i][v]);
            }
    }
}

static void score_block(group *g, const iso_attend_args *a, const float *key, uint32_t block,
                        iso_key_span span)
{
    const __m256 scale = _mm256_set1_ps(a->scale);
    float (*score)[HEADS] = g->score[block];
    __m256i bad = g->bad;

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
    for (uint32_t v = 0; v < HEADS; v += 8) {
        __m256 max = vec_const(0xff800000u);               /* -Inf */

        for (uint32_t j = span.begin; j < span.end; j++) {
            const __m256 x = _mm256_mul_ps(_mm256_load_ps(score[j] + v), scale);
            const __m256 s = vec_clean(x, &bad);

            _mm256_store_ps(score[j] + v, s);
            max = _mm256_max_ps(max, s);
        }
        _mm256_store_ps(g->block_max[block] + v, max);
    }
    g->bad = bad;
}

/* ---- weights and values ---- */

/* Eight heads: scores -> weights rounded to bf16; returns the row sum of the exact ones. */
static __m256 weigh_block(group *g, uint32_t block, uint32_t v, iso_key_span span)
{
    const __m256 max = _mm256_load_ps(g->block_max[block] + v);
    __m256i bad = g->bad;
    __m256 e[KEYS];

    for (uint32_t j = 0; j < KEYS; j++)
        e[j] = _mm256_setzero_ps();
    for (uint32_t j = span.begin; j < span.end; j++) {
        float *p = g->score[block][j] + v;
        const __m256 x = _mm256_sub_ps(_mm256_load_ps(p), max);

        e[j] = vec_clean(vec_exp_nonpositive(x), &bad);
        _mm256_store_ps(p, _mm256_and_ps(vec_float(vec_bf16_round(e[j])),
                                         vec_const(0xffff0000u)));
    }
    g->bad = bad;
    for (uint32_t half = KEYS / 2; half != 0; half /= 2)     /* 32 lanes of two, then the tree */
        for (uint32_t j = 0; j < half; j++)
            e[j] = _mm256_add_ps(e[j], e[j + half]);
    return e[0];
}

/* acc += clean(f * sum of p V) for four heads from h on and the 16 channels that begin at key. */
static inline void value_tile(group *g, const float *key, const float *weight, iso_key_span span,
                              const float *f, float *acc)
{
    __m256i bad = g->bad;
    __m256 o[HEADS_AT_ONCE][2] = {0};

    for (uint32_t j = span.begin; j < span.end; j++) {
        const __m256 v0 = _mm256_load_ps(key + j * STRIDE);
        const __m256 v1 = _mm256_load_ps(key + j * STRIDE + 8);

        for (uint32_t i = 0; i < HEADS_AT_ONCE; i++) {
            const __m256 p = _mm256_broadcast_ss(weight + j * HEADS + i);

            o[i][0] = _mm256_fmadd_ps(p, v0, o[i][0]);       /* 8 + 8 bits: exact */
            o[i][1] = _mm256_fmadd_ps(p, v1, o[i][1]);       /* 8 + 8 bits: exact */
        }
    }
    for (uint32_t i = 0; i < HEADS_AT_ONCE; i++)
        for (uint32_t v = 0; v < 2; v++) {
            float *to = acc + i * DIM_MAX + 8 * v;
            const __m256 t = _mm256_mul_ps(o[i][v], _mm256_broadcast_ss(f + i));

            _mm256_store_ps(to, _mm256_add_ps(_mm256_load_ps(to), vec_clean(t, &bad)));
        }
    g->bad = bad;
}

static void value_block(group *g, const iso_attend_args *a, const float *key, uint32_t block,
                        iso_key_span span)
{
    _Alignas(32) float f[HEADS];

    for (uint32_t v = 0; v < HEADS; v += 8) {
        const __m256 sum = weigh_block(g, block, v, span);
        const __m256 x = _mm256_sub_ps(_mm256_load_ps(g->block_max[block] + v),
                                       _mm256_load_ps(g->max + v));
        const __m256 fv = vec_clean(vec_exp_nonpositive(x), &g->bad);
        const __m256 total = _mm256_load_ps(g->total + v);

        _mm256_store_ps(f + v, fv);
        _mm256_store_ps(g->total + v, _mm256_add_ps(total, _mm256_mul_ps(sum, fv)));
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
    for (uint32_t v = 0; v < HEADS; v += 8) {
        __m256 max = _mm256_load_ps(k->a->has_sink ? g->sink + v : g->block_max[0] + v);

        for (uint32_t b = 0; b < k->blocks; b++)
            max = _mm256_max_ps(max, _mm256_load_ps(g->block_max[b] + v));
        _mm256_store_ps(g->max + v, max);
        _mm256_store_ps(g->total + v, _mm256_setzero_ps());
    }
    memset(g->acc, 0, sizeof g->acc);
}

static void end_group(group *g, const iso_key_slots *k, uint64_t unit)
{
    const uint32_t dim = k->a->dim;
    uint16_t *out = (uint16_t *)k->at[OUT] + unit * dim;

    for (uint32_t v = 0; v < HEADS && k->a->has_sink; v += 8) {
        const __m256 x = _mm256_sub_ps(_mm256_load_ps(g->sink + v), _mm256_load_ps(g->max + v));
        const __m256 e = vec_clean(vec_exp_nonpositive(x), &g->bad);

        _mm256_store_ps(g->total + v, _mm256_add_ps(_mm256_load_ps(g->total + v), e));
    }
    for (uint32_t h = 0; h < g->count; h++) {
        const __m256 total = _mm256_set1_ps(g->total[h]);

        for (uint32_t c = 0; c < dim; c += 8)    /* acc is 0 or a multiple of 2^-73 */
            vec_store_bf16(out + h * dim + c,
                             _mm256_div_ps(_mm256_load_ps(g->acc[h] + c), total), &g->bad);
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

void iso_cpu_attend_heads_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_attend_args *a = args;
    uint32_t flags = 0;
    uint64_t count;
    work w;

    for (uint32_t i = 0; i < GROUPS; i++)
        w.groups[i].bad = _mm256_setzero_si256();
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
