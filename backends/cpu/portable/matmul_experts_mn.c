/* matmul_experts, any number of tokens: 16 tokens and 16 features at a time, picks of one expert
 * side by side, so that a row of weights is decoded once for all of them.
 *
 * The integer sum of a block is exact by any means (numerics 6.5). An activation is split into two
 * 16-bit limbs, X = 1024 high + low, |low| <= 512, |high| <= 224; with |c| <= 12 a limb's sum over
 * 32 k is below 2^18, and compilers have an instruction for 16 x 16 -> 32 bit sums of products. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/tile.h"
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"

enum { X, XS, EXPERT, SLOT, W, WS, Y };
enum { BLOCK = 32, TOKENS = 16, FEATURES = 16, PAIRS_MAX = 128 };

/* One chunk of a row of activations. */
typedef struct limbs {
    int16_t low[LANE_CHUNK], high[LANE_CHUNK];
} limbs;

typedef struct pick {
    int64_t slot;                        /* -1: none */
    uint64_t pair, row;                  /* of y; of x */
    uint32_t limb;                       /* index of its row in `x` */
} pick;

typedef struct work {
    const iso_matmul_experts_args *a;
    void *const *at;
    uint64_t first_row;
    uint32_t row_count, pick_count;
    pick picks[PAIRS_MAX];               /* by slot */
    limbs x[PAIRS_MAX];
    iso_sum3 sum[FEATURES][PAIRS_MAX];
} work;

static int64_t slot_of(const iso_matmul_experts_args *a, void *const *at, uint64_t pair)
{
    const int32_t *slot = at[SLOT];
    const int32_t e = ((const int32_t *)at[EXPERT])[pair];

    if (e < 0 || (uint32_t)e >= a->experts || slot[e] < 0 || (uint32_t)slot[e] >= a->slots)
        return -1;
    return slot[e];
}

/* Lists the picks of tokens t .. t + count - 1, sorted by slot. Returns flags. */
static uint32_t list_picks(work *w, uint64_t t, uint64_t count)
{
    const iso_matmul_experts_args *a = w->a;
    uint32_t flags = 0;

    w->pick_count = 0;
    w->first_row = t * a->x_per_token;
    w->row_count = (uint32_t)(count * a->x_per_token);
    for (uint64_t pair = t * a->picks; pair < (t + count) * a->picks; pair++) {
        const uint64_t row = a->x_per_token == 1 ? pair / a->picks : pair;
        const pick made = {slot_of(a, w->at, pair), pair, row, (uint32_t)(row - w->first_row)};
        uint32_t at = w->pick_count++;

        for (; at > 0 && w->picks[at - 1].slot > made.slot; at--)
            w->picks[at] = w->picks[at - 1];
        w->picks[at] = made;
        flags |= made.slot < 0 ? ISO_FLAG_INDEX : 0;
    }
    return flags;
}

static void load_inputs(work *w, uint32_t begin, uint32_t count)
{
    const uint8_t *x = (const uint8_t *)w->at[X] + w->first_row * w->a->k + begin;
    float value[LANE_CHUNK];

    for (uint32_t r = 0; r < w->row_count; r++, x += w->a->k) {
        limbs *l = &w->x[r];

        iso_tile_e4m3(x, count, value);
        for (uint32_t i = 0; i < count; i++) {
            const int32_t v = (int32_t)(value[i] * 512.0f);      /* exact: a number of 2^-9 */
            const int32_t high = (int32_t)((uint32_t)(v + (1 << 18) + 512) >> 10) - 256;

            l->high[i] = (int16_t)high;
            l->low[i] = (int16_t)(v - high * 1024);
        }
    }
}

static int32_t block_sum(const int16_t *c, const int16_t *low, const int16_t *high)
{
    int32_t low_sum = 0, high_sum = 0;

    for (uint32_t i = 0; i < BLOCK; i++) {
        low_sum += (int32_t)c[i] * low[i];
        high_sum += (int32_t)c[i] * high[i];
    }
    return low_sum + high_sum * 1024;                            /* |S| <= 88,080,384 */
}

static float chunk_value(const int16_t *c, const limbs *x, const uint8_t *xs, const uint8_t *ws,
                         uint32_t count, uint32_t blocks_per_scale)
{
    float chunk = 0.0f;

    for (uint32_t b = 0; b < count / BLOCK; b++) {
        const int32_t exponent = (int32_t)xs[b / blocks_per_scale] + ws[b] - 254 - 10;
        const int32_t s = block_sum(c + b * BLOCK, x->low + b * BLOCK, x->high + b * BLOCK);
        const float value = (float)s * lane_pow2(exponent);

        chunk = b != 0 ? chunk + value : value;
    }
    return chunk;
}

/* One chunk of feature n for all picks. */
static void run_feature(work *w, uint64_t n, iso_sum3 *sum, uint32_t begin, uint32_t count)
{
    const iso_matmul_experts_args *a = w->a;
    const uint64_t groups = (a->k - 1) / a->group + 1;
    int16_t c[LANE_CHUNK];
    int64_t slot = -1;
    const uint8_t *ws = NULL;

    for (uint32_t i = 0; i < w->pick_count; i++) {
        const pick *p = &w->picks[i];
        const uint8_t *xs = (const uint8_t *)w->at[XS] + p->row * groups + begin / a->group;

        if (p->slot < 0)
            continue;
        if (p->slot != slot) {
            const uint64_t feature = (uint64_t)p->slot * a->n + n;

            slot = p->slot;
            iso_tile_e2m1((const uint8_t *)w->at[W] + (feature * a->k + begin) / 2, count, c);
            ws = (const uint8_t *)w->at[WS] + (feature * a->k + begin) / BLOCK;
        }
        iso_sum3_push(&sum[i], chunk_value(c, &w->x[p->limb], xs, ws, count, a->group / BLOCK));
    }
}

static uint32_t store(const work *w, uint64_t n, uint32_t features)
{
    uint16_t *y = w->at[Y];
    uint32_t flags = 0;

    for (uint32_t i = 0; i < w->pick_count; i++) {
        const pick *p = &w->picks[i];

        for (uint32_t f = 0; f < features; f++)
            y[p->pair * w->a->n + n + f] =
                p->slot < 0 ? 0 : (uint16_t)lane_bf16(iso_sum3_end(&w->sum[f][i]), &flags);
    }
    return flags;
}

void iso_cpu_matmul_experts_mn_portable(const void *args, const iso_tensors *tensors,
                                        iso_range units)
{
    const iso_matmul_experts_args *a = args;
    work w;
    uint32_t flags = 0;

    w.a = a;
    w.at = tensors->at;
    for (uint64_t t = 0; t < a->rows.count; t += TOKENS) {
        const uint64_t left = a->rows.count - t;

        flags |= list_picks(&w, t, left < TOKENS ? left : TOKENS);
        for (uint64_t n = units.begin; n < units.end; n += FEATURES) {
            const uint64_t more = units.end - n;
            const uint32_t features = more < FEATURES ? (uint32_t)more : FEATURES;

            memset(w.sum, 0, sizeof w.sum);
            for (uint32_t begin = 0; begin < a->k; begin += LANE_CHUNK) {
                const uint32_t rest = a->k - begin, count = rest < LANE_CHUNK ? rest : LANE_CHUNK;

                load_inputs(&w, begin, count);
                for (uint32_t f = 0; f < features; f++)
                    run_feature(&w, n + f, w.sum[f], begin, count);
            }
            flags |= store(&w, n, features);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}
