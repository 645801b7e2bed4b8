/* ops_b_integer: selection, routing, sampling and state: choices with one right answer, compared
 * with plain sorting or known by hand. */
#include "tests/unit/op_run.h"

#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/router.h"
#include "ggml-style-ops/sample.h"
#include "tests/unit/golden.h"

/* ---- selection ---- */

/* NUM-4: ties straddle the cut; the lower index wins, each time. */
static void topk_decides_ties(void **state)
{
    enum { N = 100, K = 30 };
    const iso_topk_params params = {1, K};
    uint16_t score[N];
    int32_t rows[2] = {0, N - 1}, ids[K], expected[K], found = 0;
    const operand in[] = {MAT(BF16, 1, N, score), MAT(I32, 1, 2, rows), NONE};

    (void)state;
    for (int i = 0; i < N; i++)                          /* 10 twos, 60 ones, 30 zeros */
        score[i] = i % 10 == 9 ? 0x4000 : i % 10 < 6 ? 0x3f80 : 0;
    for (int i = 0, ones = 0; i < N; i++)
        if (score[i] == 0x4000 || (score[i] == 0x3f80 && ones++ < K - 10))
            expected[found++] = i;
    assert_int_equal(found, K);
    for (int t = 0; t < 100; t++) {
        memset(ids, 0xff, sizeof ids);
        assert_int_equal(RUN(topk_rows, &params, in, ids), 0);
        assert_memory_equal(ids, expected, sizeof ids);
    }
}

static void candidates_keep_the_last_block(void **state)
{
    const iso_candidate_params params = {1, 8, 2};
    uint16_t score[64];
    int32_t rows[2] = {0, 41};                           /* 42 visible: block 5 holds 40 and 41 */
    uint32_t bits[2];
    const operand in[] = {MAT(BF16, 1, 64, score), MAT(I32, 1, 2, rows)};

    (void)state;
    for (int i = 0; i < 64; i++)
        score[i] = i >= 42 ? 0x7000 : i / 8 == 2 ? 0x4000 : 0x3f80;
    score[40] = score[41] = 0xc000;                      /* the pinned block is the worst one */
    assert_int_equal(RUN(candidate_blocks, &params, in, bits), 0);
    assert_int_equal(bits[0], 0x00ff0000u);
    assert_int_equal(bits[1], 0x00000300u);
}

/* MOE-2: the bias selects and never enters the weights. */
static void bias_selects_but_does_not_weigh(void **state)
{
    float logits[12], bias[12] = {0}, zero[12] = {0}, w[6], w_plain[6], sum = 0;
    int32_t ids[6], plain[6];
    uint32_t flags = 0;

    (void)state;
    for (int e = 0; e < 12; e++)
        logits[e] = (float)(12 - e) * 0.25f;
    bias[11] = 10.0f;
    assert_int_equal(route(12, logits, zero, plain, w_plain), 0);
    assert_int_equal(route(12, logits, bias, ids, w), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ids[i], plain[i]);
    assert_int_equal(plain[5], 5);
    assert_int_equal(ids[5], 11);
    for (int i = 0; i < 6; i++)
        sum = sum + iso_router_score(logits[ids[i]], 1.0f, &flags);
    assert_true(w[5] == lane_div(iso_router_score(logits[11], 1.0f, &flags), sum) * 1.5f);
}

static void bias_of_images_is_another(void **state)
{
    float logits[2 * 8] = {0}, bias[8] = {0}, bias_vl[8] = {0}, w[12];
    int32_t image[2] = {0, 1}, ids[12];
    const iso_route_params params = {6, lane_float(LANE_EPS_1E20), 1.5f, 1.0f};
    const operand in[] = {MAT(F32, 2, 8, logits), VEC(F32, 8, bias), VEC(F32, 8, bias_vl),
                          VEC(I32, 2, image)};

    (void)state;
    bias[0] = bias[1] = -1.0f;
    bias_vl[2] = bias_vl[7] = -1.0f;
    assert_int_equal(RUN(route, &params, in, ids, w), 0);
    assert_memory_equal(ids, ((int32_t[12]){2, 3, 4, 5, 6, 7, 0, 1, 3, 4, 5, 6}), sizeof ids);
}

/* Scores that underflow to 0 give weights of 0, not 0 / 0; a temperature divides the logits. */
static void weights_survive_zero_and_temperature(void **state)
{
    float low[6], logits[6] = {4, 3, 2, 1, 0, -1}, half[6], bias[6] = {0}, w[6], warm[6];
    const iso_route_params params = {6, lane_float(LANE_EPS_1E20), 1.5f, 2.0f};
    const operand in[] = {MAT(F32, 1, 6, logits), VEC(F32, 6, bias), NONE, NONE};
    int32_t ids[6];

    (void)state;
    for (int i = 0; i < 6; i++) {
        low[i] = -200.0f;
        half[i] = logits[i] * 0.5f;
    }
    assert_int_equal(route(6, low, bias, ids, w), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(lane_bits(w[i]), 0);
    assert_int_equal(route(6, half, bias, ids, w), 0);
    assert_int_equal(RUN(route, &params, in, ids, warm), 0);
    assert_memory_equal(w, warm, sizeof w);
}

static void argmax_takes_the_first(void **state)
{
    float logits[2 * 5] = {-1, 3, 2, 3, 3, -5, -4, -0.0f, 0, 0};
    const operand in[] = {MAT(F32, 2, 5, logits)};
    int32_t ids[2];

    (void)state;
    assert_int_equal(RUN(argmax, NULL, in, ids), 0);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);                         /* -0 and +0 are one value */
}

/* ---- sampling ---- */

enum { VOCABULARY = 97 };

static void pick_is_strict(void **state)
{
    static const uint32_t weight[4] = {0, 1, 0, 1};

    (void)state;
    assert_int_equal(iso_sample_pick(weight, 4, 0), 1);
    assert_int_equal(iso_sample_pick(weight, 4, UINT64_MAX / 2), 1);
    assert_int_equal(iso_sample_pick(weight, 4, (uint64_t)1 << 63), 3);      /* bound 1: not > 1 */
    assert_int_equal(iso_sample_pick(weight, 4, UINT64_MAX), 3);
    assert_true(iso_mul_high_u64(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    assert_true(iso_mul_high_u64((uint64_t)1 << 63, 6) == 3);
}

/* The filters of numerics 18 on a list sorted by insertion. */
static void filter_by_sorting(const float *logits, const uint32_t *params, uint32_t *weight)
{
    const uint32_t k = params[ISO_SAMPLE_TOP_K], p = params[ISO_SAMPLE_TOP_P];
    uint32_t order[VOCABULARY];
    uint64_t total = 0, sum = 0, target;

    for (uint32_t i = 0; i < VOCABULARY; i++) {
        uint32_t at = i;

        for (; at > 0 && logits[order[at - 1]] < logits[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (uint32_t r = 0; r < VOCABULARY; r++) {
        if (k != 0 && r >= k)
            weight[order[r]] = 0;
        total += weight[order[r]];
    }
    target = iso_mul_high_u64(total << 26, (uint64_t)p << 6);        /* total < 2^38 */
    target = target < 1 ? 1 : target;
    for (uint32_t r = 0; r < VOCABULARY && p != 0; r++) {
        if (sum >= target)
            weight[order[r]] = 0;
        sum += weight[order[r]];
    }
    for (uint32_t i = 0; i < VOCABULARY; i++)
        if (weight[i] < params[ISO_SAMPLE_MIN_P])
            weight[i] = 0;
}

static void filters_match_sorting(void **state)
{
    static const uint32_t ks[] = {0, 1, 2, 40, VOCABULARY, VOCABULARY + 5};
    static const uint32_t ps[] = {0, 1, 0x10000000u, 0x80000000u, 0xe6666666u, UINT32_MAX};
    static const uint32_t ms[] = {0, 0x06666666u, 0x80000000u};
    float logits[VOCABULARY];
    uint32_t weight[VOCABULARY], expected[VOCABULARY];
    golden g = golden_begin(9);

    (void)state;
    for (uint32_t t = 0; t < 6 * 6 * 3 * 4; t++) {
        uint32_t params[ISO_SAMPLE_WORDS] = {lane_bits(1.25f), ks[t % 6], ps[t / 6 % 6],
                                             ms[t / 36 % 3], golden_u32(&g), golden_u32(&g), t, 0};
        const operand in[] = {MAT(F32, 1, VOCABULARY, logits),
                              MAT(U32, 1, ISO_SAMPLE_WORDS, params)};
        float max = 0.0f;
        int32_t id;

        for (int i = 0; i < VOCABULARY; i++) {           /* every second time: equal logits */
            logits[i] = t % 2 == 0 ? golden_f32(&g, GOLDEN_MILD)
                                   : (float)(golden_u32(&g) % 4) - 1.0f;
            max = i == 0 || logits[i] > max ? logits[i] : max;
        }
        for (int i = 0; i < VOCABULARY; i++)
            expected[i] = iso_sample_weight(logits[i], max, 1.25f);
        filter_by_sorting(logits, params, expected);
        assert_int_equal(RUN(sample, NULL, in, &id, weight), 0);
        assert_memory_equal(weight, expected, sizeof weight);
        assert_int_equal(id, iso_sample_pick(expected, VOCABULARY,
                                             iso_sample_random(params[4], params[5], t, 0, 0)));
        params[ISO_SAMPLE_FLAGS] = ISO_SAMPLE_GREEDY;
        assert_int_equal(RUN(sample, NULL, in, &id, weight), 0);
        assert_true(logits[id] == max);
    }
}

/* ---- state ---- */

static void commit_and_append_place_rows(void **state)
{
    enum { W = 4, N = 2 };
    int32_t ring[3 * W * N], src[7 * N], pool[6 * 2 * N], pages[4] = {5, 0, 2, 4};
    int32_t seqs[8] = {2, 6, 0, 2, 0, 9, 2, 5}, commit[2] = {1, 5}, groups[6] = {1, 0, 0, 3, 1, 1};
    const iso_page_params two = {2};
    const operand to_ring[] = {CUBE(I32, 3, W, N, ring), MAT(I32, 7, N, src), MAT(I32, 2, 4, seqs),
                               VEC(I32, 2, commit)};
    const operand to_pool[] = {MAT(I32, 12, N, pool), MAT(I32, 3, N, src), MAT(I32, 3, 2, groups),
                               MAT(I32, 2, 2, pages)};

    (void)state;
    for (int i = 0; i < 7 * N; i++)
        src[i] = i / N * 10 + i % N;
    memset(ring, 0xff, sizeof ring);
    memset(pool, 0xff, sizeof pool);
    assert_int_equal(RUN(state_commit, NULL, to_ring, ring), 0);
    for (int slot = 0; slot < 3; slot++)
        for (int place = 0; place < W; place++) {
            /* slot 0: positions 10..13 of rows 3..6 (9 fell out); slot 2: position 6, row 0 */
            static const int row[3][W] = {{5, 6, 3, 4}, {-1, -1, -1, -1}, {-1, -1, 0, -1}};
            const int32_t *at = ring + (slot * W + place) * N;

            assert_int_equal(at[0], row[slot][place] < 0 ? -1 : row[slot][place] * 10);
            assert_int_equal(at[1], row[slot][place] < 0 ? -1 : row[slot][place] * 10 + 1);
        }
    assert_int_equal(RUN(state_append, &two, to_pool, pool), 0);
    for (int row = 0; row < 12; row++) {                 /* page 2: rows 4, 5; page 0: rows 0, 1 */
        const int from = row == 4 ? 0 : row == 1 ? 1 : row == 5 ? 2 : -1;

        assert_int_equal(pool[row * N], from < 0 ? -1 : from * 10);
        assert_int_equal(pool[row * N + 1], from < 0 ? -1 : from * 10 + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_decides_ties),
        cmocka_unit_test(candidates_keep_the_last_block),
        cmocka_unit_test(bias_selects_but_does_not_weigh),
        cmocka_unit_test(bias_of_images_is_another),
        cmocka_unit_test(weights_survive_zero_and_temperature),
        cmocka_unit_test(argmax_takes_the_first),
        cmocka_unit_test(pick_is_strict),
        cmocka_unit_test(filters_match_sorting),
        cmocka_unit_test(commit_and_append_place_rows),
    };

    return cmocka_run_group_tests_name("ops_b_integer", tests, NULL, NULL);
}
