/* ops_b: hyper-connections, compressor, index, attention, experts, Engram, state and sampling, run
 * through their operator references: golden hashes of numerics A.1 and relations between
 * operators. (Vectors: ops_b_vectors_test.c; choices and moves: ops_b_integer_test.c.)
 *
 * Four golden lines use values that the operators cannot be given or do not show; they are computed
 * with the inline functions that the references are made of: attention (keys that no e4m3 or e2m1
 * row holds: attention.h), index score and pool (scores of given dots, unrounded pools:
 * index_dot.h, pool.h), engram gate (the gate itself: gate.h), sampling (draw 1: sample.h). */
#include "tests/unit/op_run.h"

#include "ggml-style-ops/attention.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/gate.h"
#include "ggml-style-ops/index_dot.h"
#include "ggml-style-ops/inv_sqrt.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/pool.h"
#include "ggml-style-ops/rows.h"
#include "ggml-style-ops/sample.h"
#include "tests/unit/golden.h"

static void put_bf16(golden *g, const uint16_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        golden_put(g, values[i]);
}

/* ---- golden hashes ---- */

static void hc_matches_golden(void **state)
{
    enum { D = 320 };
    static uint16_t x[4 * D], u[D], y[4 * D];
    float mix[24], scale[3], base[24], pre[4], post[4], comb[16];
    golden g = golden_begin(40);

    (void)state;
    for (int t = 0; t < 20000; t++) {
        const enum golden_dist dist = t % 5 == 4 ? GOLDEN_TINY : GOLDEN_MILD;

        golden_fill_f32(&g, mix, 24, dist);
        golden_fill_f32(&g, scale, 3, GOLDEN_MILD);
        golden_fill_f32(&g, base, 24, dist);
        for (int i = 0; i < 24 && t % 7 == 0; i++)
            base[i] *= 64.0f;
        assert_int_equal(hc_split(mix, scale, base, pre, post, comb), 0);
        for (int i = 0; i < 4; i++) {
            golden_put_f32(&g, pre[i]);
            golden_put_f32(&g, post[i]);
        }
        for (int i = 0; i < 16; i++)
            golden_put_f32(&g, comb[i]);
        if (t % 100 != 0)
            continue;
        golden_fill_bf16(&g, x, 4 * D, dist);
        golden_fill_bf16(&g, u, D, dist);
        {
            const operand collapse[] = {CUBE(BF16, 1, 4, D, x), MAT(F32, 1, 4, pre)};
            const operand expand[] = {MAT(BF16, 1, D, u), CUBE(BF16, 1, 4, D, x),
                                      MAT(F32, 1, 4, post), CUBE(F32, 1, 4, 4, comb)};

            RUN(hc_collapse, NULL, collapse, y);
            put_bf16(&g, y, D);
            RUN(hc_expand, NULL, expand, y);
            put_bf16(&g, y, 4 * D);
        }
    }
    assert_int_equal(g.hash, 0x9a4e4a71b37603a0u);
}

/* Keys given as bf16 rows: a window part in blocks by position, then a list by rank. */
typedef struct bf16_keys {
    const uint16_t *window, *list;
    int64_t lo, hi;
    uint64_t window_blocks;
    uint32_t listed;
} bf16_keys;

static bool bf16_key(const void *context, uint64_t block, uint32_t slot, float *row)
{
    const bf16_keys *k = context;
    const int64_t position = ((int64_t)(block + (uint64_t)k->lo / 64)) * 64 + slot;
    const uint64_t rank = (block - k->window_blocks) * 64 + slot;
    const uint16_t *from;

    if (block < k->window_blocks) {
        if (position < k->lo || position > k->hi)
            return false;
        from = k->window + (position - k->lo) * 512;
    } else {
        if (rank >= k->listed)
            return false;
        from = k->list + rank * 512;
    }
    for (uint32_t c = 0; c < 512; c++)
        row[c] = lane_bf16_f32(from[c]);
    return true;
}

static void attention_matches_golden(void **state)
{
    enum { D = 512, ROWS = 128 + 512 };
    static uint16_t kv[ROWS * D], q[D], o[D];
    golden g = golden_begin(50);
    uint32_t flags = 0;

    (void)state;
    for (int t = 0; t < 40; t++) {
        const enum golden_dist dist = t % 4 == 3 ? GOLDEN_TINY : GOLDEN_MILD;
        const float sink = golden_f32(&g, GOLDEN_MILD);
        bf16_keys k = {.window = kv, .list = kv + 128 * D, .hi = 3 + t * 37,
                       .listed = (uint32_t)t * 13};
        iso_keys keys = {bf16_key, &k, 0, D};

        golden_fill_bf16(&g, kv, ROWS * D, dist);
        golden_fill_bf16(&g, q, D, t % 8 == 7 ? GOLDEN_TINY : GOLDEN_MILD);
        if (t % 5 == 0)
            memcpy(kv + (t * 7 % ROWS) * D, q, sizeof q);
        k.lo = k.hi < 127 ? 0 : k.hi - 127;
        k.window_blocks = (uint64_t)(k.hi / 64 - k.lo / 64 + 1);
        keys.blocks = k.window_blocks + (k.listed + 63) / 64;
        iso_attend_row(&keys, q, iso_inv_sqrt_u32(D), t % 3 == 2 ? NULL : &sink, o, &flags);
        put_bf16(&g, o, D);
    }
    assert_int_equal(flags, 0);
    assert_int_equal(g.hash, 0xa8e30c599b30a3c7u);
}

static void topk_matches_golden(void **state)
{
    static uint16_t score[3600];
    static int32_t ids[512];
    const iso_topk_params params = {1, 512};
    golden g = golden_begin(70);

    (void)state;
    for (int t = 0; t < 40; t++) {
        const uint32_t n = 600 + golden_u32(&g) % 3000;
        int32_t rows[2] = {0, (int32_t)n - 1};
        const operand in[] = {MAT(BF16, 1, n, score), MAT(I32, 1, 2, rows), NONE};

        for (uint32_t i = 0; i < n; i++) {
            const uint16_t value = golden_bf16(&g, t & 1 ? GOLDEN_MILD : GOLDEN_TINY);

            score[i] = (golden_u32(&g) & 1) != 0 ? value : (uint16_t)(value & 0x8000);
        }
        assert_int_equal(RUN(topk_rows, &params, in, ids), 0);
        for (int i = 0; i < 512; i++)
            golden_put(&g, (uint32_t)ids[i]);
    }
    assert_int_equal(g.hash, 0x5420957e488bc1fcu);
}

static void experts_match_golden(void **state)
{
    golden g = golden_begin(71);
    float bias[6] = {0};

    (void)state;
    for (int t = 0; t < 4000; t++) {
        const enum golden_dist dist = (enum golden_dist)(t % 3);
        const uint16_t gate = golden_bf16(&g, GOLDEN_MILD), up = golden_bf16(&g, dist);
        uint16_t y[6], shared, sum;
        float logits[6], w[6];
        int32_t ids[6];
        const operand in[] = {CUBE(BF16, 1, 6, 1, y), MAT(BF16, 1, 1, &shared)};

        for (int i = 0; i < 6; i++) {
            logits[i] = golden_f32(&g, dist);
            y[i] = golden_bf16(&g, dist);
        }
        assert_int_equal(route(6, logits, bias, ids, w), 0);
        for (int i = 0; i < 6; i++)
            golden_put_f32(&g, w[i]);
        golden_put(&g, swiglu(gate, up, w));
        shared = golden_bf16(&g, GOLDEN_MILD);
        RUN(moe_sum, NULL, in, &sum);
        golden_put(&g, sum);
    }
    assert_int_equal(g.hash, 0x284b4dcd4f664135u);
}

static void index_and_pool_match_golden(void **state)
{
    golden g = golden_begin(72);
    const float *vp[128], *gp[128];
    float a[128], b[128];
    uint16_t wt[32];
    uint32_t flags = 0;

    (void)state;
    for (int i = 0; i < 128; i++) {
        vp[i] = b + i;
        gp[i] = a + i;
    }
    for (int t = 0; t < 4000; t++) {
        float sum = 0.0f;

        golden_fill_f32(&g, a, 32, (enum golden_dist)(t % 3));
        golden_fill_bf16(&g, wt, 32, (enum golden_dist)(t % 2));
        for (int h = 0; h < 32; h++)
            sum = iso_index_add(sum, a[h], lane_bf16_f32(wt[h]), &flags);
        golden_put(&g, lane_bf16(sum, &flags));
        golden_fill_f32(&g, b, 128, (enum golden_dist)(t % 3));
        golden_fill_f32(&g, a, 128, t & 1 ? GOLDEN_TINY : GOLDEN_MILD);
        sum = iso_pool_channel(vp, gp, t % 3 == 0 ? 2 : t % 3 == 1 ? 8 : 128, 0, &flags);
        golden_put_f32(&g, lane_clean(sum, &flags));
    }
    assert_int_equal(flags, 0);
    assert_int_equal(g.hash, 0xdab34d37f277b757u);
}

static void engram_gate_matches_golden(void **state)
{
    enum { D = 5120 };
    static uint16_t h[D], kv[2 * D], qw[D], kw[D], y[D];
    const iso_norm_params params = {0x1.79ca1p-67f};
    golden g = golden_begin(80);

    (void)state;
    for (int t = 0; t < 60; t++) {
        const operand in[] = {CUBE(BF16, 1, 1, D, h), MAT(BF16, 1, 2 * D, kv), MAT(BF16, 1, D, qw),
                              MAT(BF16, 1, D, kw), NONE};
        const enum golden_dist dist = (enum golden_dist)(t % 3);
        const iso_gate_rows rows = {h, kv, qw, kw, D, params.eps, iso_inv_sqrt_u32(D)};
        uint32_t flags = 0;
        float gate;

        golden_fill_bf16(&g, h, D, dist);
        golden_fill_bf16(&g, kv, D, dist);
        golden_fill_bf16(&g, qw, D, GOLDEN_MILD);
        golden_fill_bf16(&g, kw, D, t & 4 ? GOLDEN_TINY : GOLDEN_MILD);
        gate = iso_gate_of_dot(iso_gate_dot(&rows, &flags), &flags);
        golden_put(&g, lane_bf16(gate, &flags));
        golden_put_f32(&g, gate);
        assert_int_equal(flags, 0);
        for (int i = 0; i < D; i++)                      /* the operator adds this gate's value */
            kv[D + i] = 0x3f80;
        assert_int_equal(RUN(engram_gate, &params, in, y), 0);
        for (int i = 0; i < D; i++)
            assert_int_equal(y[i], lane_bf16(lane_bf16_f32(h[i]) + gate, &flags));
    }
    assert_int_equal(g.hash, 0x82d783c9f5097b71u);
}

static void sampling_matches_golden(void **state)
{
    static float logits[1000];
    static uint32_t weight[1000], scratch[1000];
    golden g = golden_begin(81);

    (void)state;
    for (uint32_t t = 0; t < 400; t++) {
        const uint64_t random = iso_sample_random(12345, 678, t, 1, 0);
        uint32_t params[ISO_SAMPLE_WORDS] = {[ISO_SAMPLE_SEED_LOW] = 12345,
                                             [ISO_SAMPLE_SEED_HIGH] = 678,
                                             [ISO_SAMPLE_POSITION] = t};
        const operand in[] = {MAT(F32, 1, 1000, logits), MAT(U32, 1, ISO_SAMPLE_WORDS, params)};
        float max = -1e9f;
        int32_t id;

        for (int i = 0; i < 1000; i++) {
            const float x = golden_f32(&g, GOLDEN_MILD);

            logits[i] = -lane_float(lane_bits(x) & 0x7fffffffu) * 40.0f;
            max = logits[i] > max ? logits[i] : max;
            weight[i] = iso_sample_weight(logits[i], 0.0f, 1.25f);
        }
        golden_put(&g, (uint32_t)random);
        golden_put(&g, iso_sample_pick(weight, 1000, random));
        assert_true(max == 0.0f);
        params[ISO_SAMPLE_INV_T] = lane_bits(1.25f); /* the operator: the same weights, draw 0 */
        assert_int_equal(RUN(sample, NULL, in, &id, scratch), 0);
        assert_memory_equal(scratch, weight, sizeof weight);
        assert_int_equal(id, iso_sample_pick(weight, 1000,
                                             iso_sample_random(12345, 678, t, 0, 0)));
    }
    assert_int_equal(g.hash, 0x658a5ec6dfa26d67u);
}

/* ---- what attend and index_score read ---- */

enum { POOL_ROWS = 7 * 16, LISTED = 70 };

static const int32_t two_seqs[8] = {1, 200, 0, 1, 0, 151, 1, 2};     /* slot, base, first, count */
static const int32_t page_of[2][6] = {{6, 0, 3, 5, 1, 2}, {2, 4, -1, 0, 6, 3}};

/* e2m1 code c of a packed row, and e4m3, by tables and powers, not by lane code. */
static double half_bytes(const uint8_t *row, uint32_t c)
{
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const uint32_t code = c % 2 == 0 ? row[c / 2] & 15u : row[c / 2] / 16u;

    return code < 8 ? magnitude[code] : -magnitude[code - 8];
}

static double eight_bits(uint8_t code)
{
    const int exponent = code / 8 % 16, mantissa = code % 8;
    double value = exponent == 0 ? mantissa : 8 + mantissa;

    for (int i = exponent == 0 ? 1 : exponent; i > 1; i--)
        value *= 2;
    return (code >= 128 ? -value : value) / 512;
}

static double two_to(int exponent)       /* |exponent| < 64 */
{
    return exponent < 0 ? 1 / (double)((uint64_t)1 << -exponent)
                        : (double)((uint64_t)1 << exponent);
}

/* Two heads of row 2 (sequence 1, position 152): 24 window positions in the ring, two in the step,
 * and a list of 70 entries in pages 2, 4, (none), 0, 6, 3. */
static void attend_reads_the_right_rows(void **state)
{
    enum { D = 512, W = 26, H = 2 };
    static uint8_t ring[2 * W * D], ring_scale[2 * W * 16], own[3 * D], own_scale[3 * 16];
    static uint8_t kv[POOL_ROWS * D / 2], kv_scale[POOL_ROWS * 32];
    static uint16_t q[3 * H * D], out[3 * H * D], expected[D], window[W * D], list[LISTED * D];
    static int32_t ids[3][LISTED + 1];
    int32_t rows[6] = {0, 200, 1, 151, 1, 152}, seqs[8], pages[2][6];
    float sink[H] = {1.5f, -0.25f};
    const iso_attend_params params = {W, 16, iso_inv_sqrt_u32(D)};
    const operand in[] = {
        CUBE(BF16, 3, H, D, q), CUBE(E4M3, 2, W, D, ring), CUBE(UE8M0, 2, W, 16, ring_scale),
        MAT(E4M3, 3, D, own), MAT(UE8M0, 3, 16, own_scale), MAT(E2M1, POOL_ROWS, D, kv),
        MAT(E4M3, POOL_ROWS, 32, kv_scale), MAT(I32, 2, 6, pages), MAT(I32, 3, LISTED + 1, ids),
        MAT(I32, 3, 2, rows), MAT(I32, 2, 4, seqs), VEC(F32, H, sink)};
    const bf16_keys k = {window, list, 152 - W + 1, 152, 2, LISTED};
    const iso_keys keys = {bf16_key, &k, 2 + 2, D};
    golden g = golden_begin(5);
    uint32_t flags = 0;

    (void)state;
    golden_fill_bf16(&g, q, 3 * H * D, GOLDEN_MILD);
    for (int i = 0; i < 2 * W * D; i++)
        ring[i] = golden_e4m3(&g);
    for (int i = 0; i < 3 * D; i++)
        own[i] = golden_e4m3(&g);
    for (int i = 0; i < 2 * W * 16; i++)
        ring_scale[i] = (uint8_t)(116 + golden_u32(&g) % 6);
    for (int i = 0; i < 3 * 16; i++)
        own_scale[i] = (uint8_t)(116 + golden_u32(&g) % 6);
    for (int i = 0; i < POOL_ROWS * D / 2; i++)
        kv[i] = (uint8_t)golden_u32(&g);
    for (int i = 0; i < POOL_ROWS * 32; i++)
        kv_scale[i] = (uint8_t)(1 + golden_u32(&g) % 0x47);
    memcpy(seqs, two_seqs, sizeof seqs);
    memcpy(pages, page_of, sizeof pages);
    memset(ids, 0xff, sizeof ids);
    for (int r = 0; r < LISTED; r++) {                   /* entries 0..31, then 48..85 */
        const int entry = r < 32 ? r : r + 16, row = page_of[1][entry / 16] * 16 + entry % 16;

        ids[2][r] = entry;
        for (uint32_t c = 0; c < D; c++)
            list[(uint32_t)(r * D) + c] = bf16_of(half_bytes(kv + row * D / 2, c)
                                                * eight_bits(kv_scale[row * 32 + (int)c / 16]));
    }
    for (int t = 152 - W + 1; t <= 152; t++)
        for (int c = 0; c < D; c++) {
            const int row = t >= 151 ? 1 + t - 151 : t % W;          /* sequence 1 has slot 0 */
            const uint8_t code = (t >= 151 ? own : ring)[row * D + c];
            const uint8_t scale = (t >= 151 ? own_scale : ring_scale)[row * 16 + c / 32];

            window[(t - 152 + W - 1) * D + c] = bf16_of(eight_bits(code) * two_to(scale - 127));
        }
    assert_int_equal(RUN(attend, &params, in, out), 0);
    for (int h = 0; h < H; h++) {
        iso_attend_row(&keys, q + (2 * H + h) * D, params.scale, sink + h, expected, &flags);
        assert_memory_equal(out + (2 * H + h) * D, expected, sizeof expected);
    }
}

/* With a window of 1 and no sink the only key is the token's own row, and that is the output. */
static void attend_sees_window_positions_only(void **state)
{
    enum { D = 32, T = 3 };
    static uint8_t ring[D], ring_scale[1], own[T * D], own_scale[T];
    static uint16_t q[T * D], out[T * D];
    int32_t rows[2 * T] = {0, 0, 0, 1, 0, 2}, seqs[4] = {0, 0, 0, T};
    const iso_attend_params params = {1, 0, iso_inv_sqrt_u32(D)};
    const operand in[] = {CUBE(BF16, T, 1, D, q), CUBE(E4M3, 1, 1, D, ring),
                          CUBE(UE8M0, 1, 1, 1, ring_scale), MAT(E4M3, T, D, own),
                          MAT(UE8M0, T, 1, own_scale), NONE, NONE, NONE, NONE,
                          MAT(I32, T, 2, rows), MAT(I32, 1, 4, seqs), NONE};
    golden g = golden_begin(7);

    (void)state;
    golden_fill_bf16(&g, q, T * D, GOLDEN_MILD);
    for (int i = 0; i < T * D; i++)
        own[i] = golden_e4m3(&g);
    memset(own_scale, 120, sizeof own_scale);
    assert_int_equal(RUN(attend, &params, in, out), 0);
    for (int i = 0; i < T * D; i++)
        assert_int_equal(out[i], bf16_of(eight_bits(own[i]) * two_to(-7)));
}

/* Row 1 (sequence 1, position 50, ratio 2: 25 visible entries) against dots in binary64, which are
 * exact because the scales span few powers of two. */
static void index_scores_the_right_rows(void **state)
{
    enum { D = 128, H = 3, R = 32 };
    static uint8_t q[2 * H * D / 2], qs[2 * H * 4], key[POOL_ROWS * D / 2], ks[POOL_ROWS * 4];
    uint16_t wt[2 * H], score[2 * R];
    int32_t rows[4] = {0, 9, 1, 50}, pages[2][6];
    const iso_index_params params = {2, 16, R, iso_inv_sqrt_u32(H * D)};
    const operand in[] = {CUBE(E2M1, 2, H, D, q), CUBE(UE8M0, 2, H, 4, qs),
                          MAT(E2M1, POOL_ROWS, D, key), MAT(UE8M0, POOL_ROWS, 4, ks),
                          MAT(BF16, 2, H, wt), MAT(I32, 2, 2, rows), MAT(I32, 2, 6, pages)};
    golden g = golden_begin(6);
    uint32_t flags = 0;

    (void)state;
    memcpy(pages, page_of, sizeof pages);
    golden_fill_bf16(&g, wt, 2 * H, GOLDEN_MILD);
    for (int i = 0; i < 2 * H * D / 2; i++)
        q[i] = (uint8_t)golden_u32(&g);
    for (int i = 0; i < POOL_ROWS * D / 2; i++)
        key[i] = (uint8_t)golden_u32(&g);
    for (int i = 0; i < 2 * H * 4; i++)
        qs[i] = (uint8_t)(125 + golden_u32(&g) % 4);
    for (int i = 0; i < POOL_ROWS * 4; i++)
        ks[i] = (uint8_t)(125 + golden_u32(&g) % 4);
    assert_int_equal(RUN(index_score, &params, in, score), 0);
    for (int j = 0; j < R; j++) {
        const int row = page_of[1][j / 16] * 16 + j % 16;
        float sum = 0.0f;

        for (int h = 0; h < H; h++) {
            const float w = lane_bf16_f32(bf16_of(lane_bf16_f32(wt[H + h]) * params.scale));
            double dot = 0;

            for (int c = 0; c < D; c++)
                dot += half_bytes(q + (H + h) * D / 2, (uint32_t)c)
                     * half_bytes(key + row * D / 2, (uint32_t)c)
                     * two_to(qs[(H + h) * 4 + c / 32] + ks[row * 4 + c / 32] - 254);
            sum = iso_index_add(sum, (float)dot, w, &flags);
        }
        assert_int_equal(score[R + j], j < 25 ? lane_bf16(sum, &flags) : 0);
    }
}

/* ---- state: where a row lies does not matter ---- */

enum { LENGTH = 300, DIM = 64, SCALES = DIM / 32, WINDOW = 128 };

static uint8_t key_code[LENGTH * DIM], key_scale[LENGTH * SCALES];

/* attend of the last `count` of `end` positions as rows of one step, the rest from a ring that
 * state_commit filled in steps of 50. */
static void attend_last(uint16_t *q, int32_t end, int32_t count, uint16_t *out)
{
    static uint8_t ring_code[WINDOW * DIM], ring_scale[WINDOW * SCALES];
    static int32_t rows[LENGTH * 2];
    const iso_attend_params params = {WINDOW, 0, iso_inv_sqrt_u32(DIM)};
    const int32_t base = end - count;
    int32_t seqs[4] = {0, base, 0, count};
    const operand in[] = {
        CUBE(BF16, count, 2, DIM, q + base * 2 * DIM), CUBE(E4M3, 1, WINDOW, DIM, ring_code),
        CUBE(UE8M0, 1, WINDOW, SCALES, ring_scale), MAT(E4M3, count, DIM, key_code + base * DIM),
        MAT(UE8M0, count, SCALES, key_scale + base * SCALES), NONE, NONE, NONE, NONE,
        MAT(I32, count, 2, rows), MAT(I32, 1, 4, seqs), NONE};

    for (int32_t at = 0; at < base; at += 50) {
        int32_t step = base - at < 50 ? base - at : 50, seq[4] = {0, at, 0, step};
        const operand code[] = {CUBE(E4M3, 1, WINDOW, DIM, ring_code),
                                MAT(E4M3, step, DIM, key_code + at * DIM), MAT(I32, 1, 4, seq),
                                VEC(I32, 1, &step)};
        const operand scale[] = {CUBE(UE8M0, 1, WINDOW, SCALES, ring_scale),
                                 MAT(UE8M0, step, SCALES, key_scale + at * SCALES),
                                 MAT(I32, 1, 4, seq), VEC(I32, 1, &step)};

        assert_int_equal(RUN(state_commit, NULL, code, ring_code), 0);
        assert_int_equal(RUN(state_commit, NULL, scale, ring_scale), 0);
    }
    for (int32_t i = 0; i < count; i++) {
        rows[2 * i] = 0;
        rows[2 * i + 1] = base + i;
    }
    assert_int_equal(RUN(attend, &params, in, out), 0);
}

static void attend_ignores_chunks_and_rings(void **state)
{
    static const int32_t ends[] = {1, 2, 64, 127, 128, 129, 200, 256, 257, LENGTH};
    static uint16_t q[LENGTH * 2 * DIM], whole[LENGTH * 2 * DIM], part[LENGTH * 2 * DIM];
    golden g = golden_begin(1);

    (void)state;
    golden_fill_bf16(&g, q, LENGTH * 2 * DIM, GOLDEN_MILD);
    for (int i = 0; i < LENGTH * DIM; i++)
        key_code[i] = golden_e4m3(&g);
    for (int i = 0; i < LENGTH * SCALES; i++)
        key_scale[i] = (uint8_t)(116 + golden_u32(&g) % 6);
    attend_last(q, LENGTH, LENGTH, whole);
    for (size_t i = 0; i < ISO_COUNT_OF(ends); i++)
        for (int32_t count = 1; count <= ends[i]; count = count * 3 + 1) {
            attend_last(q, ends[i], count, part);
            assert_memory_equal(part, whole + (ends[i] - count) * 2 * DIM,
                                (size_t)count * 2 * DIM * sizeof *part);
        }
}

/* Groups of m pooled over two steps, the first committed, equal groups pooled in one. */
static void pool_ignores_steps(void **state)
{
    enum { M = 3, N = 24, D = 5 };
    static float v[N * D], g[N * D], ring_v[M * D], ring_g[M * D];
    const iso_pool_params params = {M};
    golden random = golden_begin(2);
    uint16_t whole[N / M * D], part[N / M * D];
    int32_t groups[N / M * 2], seqs[4] = {0, 0, 0, N};

    (void)state;
    golden_fill_f32(&random, v, N * D, GOLDEN_MILD);
    golden_fill_f32(&random, g, N * D, GOLDEN_MILD);
    for (int32_t j = 0; j < N / M; j++) {
        groups[2 * j] = 0;
        groups[2 * j + 1] = j;
    }
    for (int32_t base = 0; base < N; base++) {
        int32_t from = base / M, seq[4] = {0, 0, 0, base};
        const operand in[] = {MAT(F32, N - base, D, v + base * D),
                              MAT(F32, N - base, D, g + base * D), CUBE(F32, 1, M, D, ring_v),
                              CUBE(F32, 1, M, D, ring_g),
                              MAT(I32, N / M - from, 2, groups + 2 * from), MAT(I32, 1, 4, seqs)};
        const operand commit_v[] = {CUBE(F32, 1, M, D, ring_v), MAT(F32, base, D, v),
                                    MAT(I32, 1, 4, seq), VEC(I32, 1, &base)};
        const operand commit_g[] = {CUBE(F32, 1, M, D, ring_g), MAT(F32, base, D, g),
                                    MAT(I32, 1, 4, seq), VEC(I32, 1, &base)};

        seqs[ISO_SEQ_BASE] = base;
        seqs[ISO_SEQ_COUNT] = N - base;
        assert_int_equal(RUN(state_commit, NULL, commit_v, ring_v), 0);
        assert_int_equal(RUN(state_commit, NULL, commit_g, ring_g), 0);
        assert_int_equal(RUN(compress_pool, &params, in, base == 0 ? whole : part), 0);
        if (base != 0)
            assert_memory_equal(part, whole + from * D,
                                (size_t)(N / M - from) * D * sizeof *part);
    }
}

/* Each stream has its own weights and gate; an image token passes through. */
static void gate_is_per_stream(void **state)
{
    enum { D = 37, S = 3 };
    uint16_t x[2 * S * D], kv[2 * (S + 1) * D], qw[S * D], kw[S * D], y[2 * S * D];
    uint16_t one_kv[2 * D], one_y[D];
    int32_t image[2] = {0, 1};
    const iso_norm_params params = {lane_float(LANE_EPS_1E20)};
    const operand all[] = {CUBE(BF16, 2, S, D, x), MAT(BF16, 2, (S + 1) * D, kv),
                           MAT(BF16, S, D, qw), MAT(BF16, S, D, kw), VEC(I32, 2, image)};
    golden g = golden_begin(8);

    (void)state;
    golden_fill_bf16(&g, x, 2 * S * D, GOLDEN_MILD);
    golden_fill_bf16(&g, kv, 2 * (S + 1) * D, GOLDEN_MILD);
    golden_fill_bf16(&g, qw, S * D, GOLDEN_MILD);
    golden_fill_bf16(&g, kw, S * D, GOLDEN_MILD);
    assert_int_equal(RUN(engram_gate, &params, all, y), 0);
    assert_memory_equal(y + S * D, x + S * D, S * D * sizeof *y);
    for (int s = 0; s < S; s++) {
        const operand one[] = {CUBE(BF16, 1, 1, D, x + s * D), MAT(BF16, 1, 2 * D, one_kv),
                               MAT(BF16, 1, D, qw + s * D), MAT(BF16, 1, D, kw + s * D), NONE};

        memcpy(one_kv, kv + s * D, D * sizeof *kv);
        memcpy(one_kv + D, kv + S * D, D * sizeof *kv);
        assert_int_equal(RUN(engram_gate, &params, one, one_y), 0);
        assert_memory_equal(y + s * D, one_y, sizeof one_y);
    }
}

/* ---- small functions ---- */

/* Two equal maxima give l = 2: a weight of 2^-50 / 2 is outside the domain and becomes +0. */
static void pool_cleans_its_weights(void **state)
{
    const float g[3] = {0.0f, 0.0f, -34.625f}, v[3] = {0.0f, 0.0f, 0x1p49f};
    const float *gp[3] = {&g[0], &g[1], &g[2]}, *vp[3] = {&v[0], &v[1], &v[2]};
    uint32_t flags = 0;

    (void)state;
    assert_true(lane_clean(lane_exp(g[2]), &flags) != 0.0f);
    assert_int_equal(lane_bits(iso_pool_channel(vp, gp, 3, 0, &flags)), 0);
    assert_int_equal(flags, 0);
}

/* (2 m - 1)^2 n < 4 / u^2 < (2 m + 1)^2 n for the mantissa m and unit u of the result. */
static void inv_sqrt_is_correctly_rounded(void **state)
{
    (void)state;
    assert_int_equal(lane_bits(iso_inv_sqrt_u32(512)), 0x3d3504f3);
    assert_int_equal(lane_bits(iso_inv_sqrt_u32(5120)), 0x3c64f92e);
    assert_int_equal(lane_bits(iso_inv_sqrt_u32(8192)), 0x3c3504f3);
    assert_int_equal(lane_bits(iso_inv_sqrt_u32(4096)), 0x3c800000);
    assert_int_equal(lane_bits(iso_inv_sqrt_u32(1)), 0x3f800000);
    for (uint32_t i = 0; i < 20000; i++) {
        const uint32_t n = i < 10000 ? i + 1 : i * 214741u + 1;          /* up to 2^32 */
        const uint32_t u = lane_bits(iso_inv_sqrt_u32(n));
        const uint64_t m = (u & 0x7fffff) | 0x800000;
        const uint32_t shift = 2 * (150 - (u >> 23)) + 2;
        const uint64_t q = iso_pow2_quotient(shift, n);          /* floor(4 / (u^2 n)) */

        assert_true((2 * m - 1) * (2 * m - 1) <= q);
        assert_true(q < (2 * m + 1) * (2 * m + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hc_matches_golden),
        cmocka_unit_test(attention_matches_golden),
        cmocka_unit_test(topk_matches_golden),
        cmocka_unit_test(experts_match_golden),
        cmocka_unit_test(index_and_pool_match_golden),
        cmocka_unit_test(engram_gate_matches_golden),
        cmocka_unit_test(sampling_matches_golden),
        cmocka_unit_test(attend_reads_the_right_rows),
        cmocka_unit_test(attend_sees_window_positions_only),
        cmocka_unit_test(index_scores_the_right_rows),
        cmocka_unit_test(attend_ignores_chunks_and_rings),
        cmocka_unit_test(pool_ignores_steps),
        cmocka_unit_test(gate_is_per_stream),
        cmocka_unit_test(pool_cleans_its_weights),
        cmocka_unit_test(inv_sqrt_is_correctly_rounded),
    };

    return cmocka_run_group_tests_name("ops_b", tests, NULL, NULL);
}
