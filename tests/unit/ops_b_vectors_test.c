/* ops_b_vectors: hyper-connections, experts, the Engram gate and the Engram hash against the
 * vectors of tests/golden/vectors (made by programs that share no code with isobit). */
#include "tests/unit/op_run.h"

#include "core/json.h"
#include "ggml-style-ops/gate.h"
#include "ggml-style-ops/inv_sqrt.h"
#include "ggml-style-ops/router.h"

/* ---- vectors ---- */

static iso_json_doc *open_vectors(const char *name)
{
    char path[512];
    iso_json_doc *doc = NULL;
    iso_error error = {0};

    snprintf(path, sizeof path, "%s/tests/golden/vectors/%s", ISO_SOURCE_DIR, name);
    assert_ok(iso_json_read(path, 1 << 20, &doc, &error), error);
    return doc;
}

static double number(const iso_json *value)
{
    double out = 0;

    assert_true(iso_json_number(value, &out));
    return out;
}

static double member(const iso_json *object, const char *key)
{
    return number(iso_json_get(object, key));
}

static int64_t integer(const iso_json *value)
{
    int64_t out = 0;

    assert_true(iso_json_int(value, &out));
    return out;
}

static float pattern(const iso_json *value)          /* "0x3f800000" */
{
    const char *text = iso_json_string(value, NULL);

    assert_non_null(text);
    return lane_float((uint32_t)strtoul(text, NULL, 16));
}

static void patterns(const iso_json *object, const char *key, float *to, size_t count)
{
    const iso_json *list = iso_json_get(object, key);

    assert_int_equal(iso_json_size(list), count);
    for (size_t i = 0; i < count; i++)
        to[i] = pattern(iso_json_at(list, i));
}

static void assert_near(double value, double expected, double tolerance)
{
    const double difference = value - expected;

    if (!(difference <= tolerance && -difference <= tolerance))
        fail_msg("%.12g, expected %.12g within %g", value, expected, tolerance);
}

static void split_matches_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("hc.json");
    const iso_json *split = iso_json_get(iso_json_root(doc), "split");

    (void)state;
    assert_int_equal(iso_json_size(split), 4);
    for (size_t n = 0; n < iso_json_size(split); n++) {
        const iso_json *row = iso_json_at(split, n), *comb_rows = iso_json_get(row, "comb");
        float mix[24], scale[3], base[24], pre[4], post[4], comb[16];

        patterns(row, "mix_f32", mix, 24);
        patterns(row, "scale_f32", scale, 3);
        patterns(row, "base_f32", base, 24);
        assert_int_equal(hc_split(mix, scale, base, pre, post, comb), 0);
        for (size_t j = 0; j < 4; j++) {
            assert_near(pre[j], number(iso_json_at(iso_json_get(row, "pre"), j)), 1e-6);
            assert_near(post[j], number(iso_json_at(iso_json_get(row, "post"), j)), 1e-6);
            for (size_t k = 0; k < 4; k++)
                assert_near(comb[4 * j + k],
                            number(iso_json_at(iso_json_at(comb_rows, j), k)), 1e-6);
        }
    }
    iso_json_free(&doc);
}

/* Row j of X' = post_j u + sum_i c(i, j) x_i; c is comb, or its transpose: the mistake HC-1. */
static void expand_in_binary64(const double *x, const double *u, const double *post,
                               const double *comb, bool transposed, double y[12])
{
    for (int j = 0; j < 4; j++)
        for (int d = 0; d < 3; d++) {
            y[3 * j + d] = post[j] * u[d];
            for (int i = 0; i < 4; i++)
                y[3 * j + d] += (transposed ? comb[4 * j + i] : comb[4 * i + j]) * x[3 * i + d];
        }
}

static void numbers(const iso_json *object, const char *key, double *to, size_t count)
{
    const iso_json *list = iso_json_get(object, key);
    const bool nested = iso_json_type_of(iso_json_at(list, 0)) == ISO_JSON_ARRAY;
    const size_t width = nested ? iso_json_size(iso_json_at(list, 0)) : 1;

    assert_int_equal(iso_json_size(list) * width, count);
    for (size_t i = 0; i < count; i++)
        to[i] = number(nested ? iso_json_at(iso_json_at(list, i / width), i % width)
                              : iso_json_at(list, i));
}

static void collapse_and_expand_match_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("hc.json");
    const iso_json *row = iso_json_get(iso_json_root(doc), "collapse_expand");
    double x[12], pre[4], u[3], post[4], comb[16], collapse[3], expand[12], wrong[12];
    uint16_t xb[12], ub[3], y[12];
    float pf[4], qf[4], cf[16];
    int different = 0;
    const operand to_one[] = {CUBE(BF16, 1, 4, 3, xb), MAT(F32, 1, 4, pf)};
    const operand to_four[] = {MAT(BF16, 1, 3, ub), CUBE(BF16, 1, 4, 3, xb), MAT(F32, 1, 4, qf),
                               CUBE(F32, 1, 4, 4, cf)};

    (void)state;
    numbers(row, "stream", x, 12);
    numbers(row, "pre", pre, 4);
    numbers(row, "sublayer_output", u, 3);
    numbers(row, "post", post, 4);
    numbers(row, "comb", comb, 16);
    numbers(row, "collapse", collapse, 3);
    numbers(row, "expand", expand, 12);
    for (int i = 0; i < 16; i++) {
        cf[i] = (float)comb[i];
        xb[i % 12] = bf16_of(x[i % 12]);
        ub[i % 3] = bf16_of(u[i % 3]);
        pf[i % 4] = (float)pre[i % 4];
        qf[i % 4] = (float)post[i % 4];
    }
    assert_int_equal(RUN(hc_collapse, NULL, to_one, y), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(y[i], bf16_of(collapse[i]));
    assert_int_equal(RUN(hc_expand, NULL, to_four, y), 0);
    expand_in_binary64(x, u, post, comb, true, wrong);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(y[i], bf16_of(expand[i]));
        different += y[i] != bf16_of(wrong[i]);
    }
    assert_true(different > 0);                          /* HC-1: the transposed mix is not it */
    iso_json_free(&doc);
}

static void gates_match_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("gate.json");
    const iso_json *root = iso_json_root(doc), *list = iso_json_get(root, "engram_gate");
    uint32_t flags = 0;

    (void)state;
    assert_int_equal(lane_bits(iso_inv_sqrt_u32(5120)),
                     lane_bits(pattern(iso_json_get(iso_json_get(root, "engram_dim_scale"),
                                                    "f32"))));
    assert_int_equal(iso_json_size(list), 15);
    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *row = iso_json_at(list, i);
        const float dot = pattern(iso_json_get(row, "dot_f32"));
        const bool is_minus_zero = lane_bits(dot) == 0x80000000u;
        const float gate = iso_gate_of_dot(lane_clean(dot, &flags), &flags);

        /* Exception listed in the vectors' README: the contract counts d = -0 as +0. */
        assert_near(gate, is_minus_zero ? 1.0 - member(row, "gate") : member(row, "gate"), 2e-7);
    }
    list = iso_json_get(root, "moe_scores");
    assert_int_equal(iso_json_size(list), 14);
    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *row = iso_json_at(list, i);
        const double score = member(row, "score");

        assert_near(iso_router_score(pattern(iso_json_get(row, "logit_f32")), 1.0f, &flags), score,
                    score * 0x1p-22);
    }
    assert_int_equal(flags, 0);
    iso_json_free(&doc);
}

static void experts_match_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("gate.json");
    const iso_json *root = iso_json_root(doc), *list = iso_json_get(root, "clamped_swiglu");
    const iso_json *row = iso_json_get(root, "moe_weights");
    double logits[6], weights[6];
    float lf[6], bias[6] = {0}, w[6];
    int32_t ids[6];

    (void)state;
    numbers(row, "logits", logits, 6);
    numbers(row, "weights", weights, 6);
    assert_true(member(row, "route_scale") == 1.5);
    for (int i = 0; i < 6; i++)
        lf[i] = (float)logits[i];
    assert_int_equal(route(6, lf, bias, ids, w), 0);
    for (int i = 0; i < 6; i++)
        assert_near(w[i], weights[i], 1e-6);
    assert_int_equal(iso_json_size(list), 6);
    for (size_t i = 0; i < iso_json_size(list); i++) {
        const double act = member(iso_json_at(list, i), "act");
        const uint16_t y = swiglu(bf16_of(member(iso_json_at(list, i), "gate")),
                                  bf16_of(member(iso_json_at(list, i), "up")), NULL);

        assert_near(lane_bf16_f32(y), act, (act < 0 ? -act : act) * 0x1.01p-8);
    }
    iso_json_free(&doc);
}

/* ---- engram ---- */

typedef struct hash_table {
    uint32_t mult[8], prime[24], offset[24];
    uint32_t orders, heads;
    int32_t pad;
} hash_table;

static void table_multiplier(hash_table *table, uint32_t i, uint64_t m)
{
    table->mult[2 * i] = (uint32_t)m;
    table->mult[2 * i + 1] = (uint32_t)(m >> 32);
}

/* Rows of the last position of ids[0 .. position], through the operator. */
static void hash_rows(hash_table *table, const int32_t *ids, int64_t position, uint32_t *rows)
{
    const int64_t columns = (int64_t)table->orders * table->heads;
    const iso_engram_params params = {table->heads, table->pad};
    int32_t history[4];
    const operand in[] = {MAT(I32, 1, table->orders + 1, history),
                          MAT(U32, table->orders + 1, 2, table->mult),
                          VEC(U32, columns, table->prime), VEC(U32, columns, table->offset)};

    for (int64_t s = 0; s < 4; s++)
        history[s] = s <= position ? ids[position - s] : -1;
    assert_int_equal(RUN(engram_hash, &params, in, rows), 0);
}

static hash_table table_of_layer(const iso_json *layer)
{
    static const char *orders[] = {"2", "3", "4"};
    hash_table table = {.orders = 3, .heads = 8, .pad = 2};

    for (uint32_t i = 0; i < 4; i++)
        table_multiplier(&table, i,
                         (uint64_t)integer(iso_json_at(iso_json_get(layer, "multipliers"), i)));
    for (uint32_t i = 0; i < 24; i++) {
        const iso_json *primes = iso_json_get(iso_json_get(layer, "primes"), orders[i / 8]);

        table.prime[i] = (uint32_t)integer(iso_json_at(primes, i % 8));
        table.offset[i] = (uint32_t)integer(iso_json_at(iso_json_get(layer, "offsets"), i));
    }
    return table;
}

static size_t check_case(hash_table tables[2], const iso_json *test)
{
    const iso_json *list = iso_json_get(test, "compressed_ids");
    int32_t ids[16];
    uint32_t rows[24];
    size_t checked = 0;

    assert_true(iso_json_size(list) <= 16);
    for (size_t i = 0; i < iso_json_size(list); i++)
        ids[i] = (int32_t)integer(iso_json_at(list, i));
    for (size_t layer = 0; layer < 2; layer++) {
        const iso_json *positions = iso_json_get(iso_json_at(iso_json_get(test, "layers"), layer),
                                                 "positions");

        for (size_t i = 0; i < iso_json_size(positions); i++, checked++) {
            const iso_json *row = iso_json_at(positions, i);

            hash_rows(&tables[layer], ids, integer(iso_json_get(row, "pos")), rows);
            for (size_t c = 0; c < 24; c++)
                assert_int_equal(rows[c], integer(iso_json_at(iso_json_get(row, "rows"), c)));
        }
    }
    return checked;
}

static void hash_matches_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("engram.json");
    const iso_json *root = iso_json_root(doc), *cases = iso_json_get(root, "cases");
    hash_table tables[2];
    size_t checked = 0;

    (void)state;
    for (size_t layer = 0; layer < 2; layer++)
        tables[layer] = table_of_layer(iso_json_at(iso_json_get(root, "layers"), layer));
    for (size_t i = 0; i < iso_json_size(cases); i++)
        checked += check_case(tables, iso_json_at(cases, i));
    assert_int_equal(checked, 2 * (6 + 1 + 6 + 8 + 4));
    iso_json_free(&doc);
}

static void hash_matches_synthetic_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("engram.json");
    const iso_json *test = iso_json_get(iso_json_root(doc), "synthetic");
    const iso_json *tokens = iso_json_get(test, "token_ids");
    const iso_json *rows = iso_json_get(test, "rows");
    int32_t ids[24];
    uint32_t found[9];

    (void)state;
    assert_int_equal(iso_json_size(tokens), 24);
    for (size_t i = 0; i < 24; i++)
        ids[i] = (int32_t)integer(iso_json_at(iso_json_get(test, "token_map"),
                                              (size_t)integer(iso_json_at(tokens, i))));
    for (size_t layer = 0; layer < 2; layer++) {
        const iso_json *primes = iso_json_at(iso_json_get(test, "primes"), layer);
        const iso_json *mult = iso_json_at(iso_json_get(test, "multipliers"), layer);
        hash_table table = {.orders = 3, .heads = 3};

        table.pad = (int32_t)integer(iso_json_get(test, "pad_compressed_id"));
        for (uint32_t i = 0; i < 4; i++)
            table_multiplier(&table, i, (uint64_t)integer(iso_json_at(mult, i)));
        for (uint32_t i = 0; i < 9; i++) {
            table.prime[i] = (uint32_t)integer(iso_json_at(iso_json_at(primes, i / 3), i % 3));
            table.offset[i] = i == 0 ? 0 : table.offset[i - 1] + table.prime[i - 1];
        }
        for (size_t t = 0; t < 24; t++) {
            const iso_json *row = iso_json_at(iso_json_at(rows, t), layer);

            hash_rows(&table, ids, (int64_t)t, found);
            for (size_t c = 0; c < 9; c++)
                assert_int_equal(found[c], integer(iso_json_at(row, c)));
        }
    }
    iso_json_free(&doc);
}

/* ENG-1: with a small compressed vocabulary multipliers exceed 2^53; rounded to a double they give
 * other rows that look valid. */
static void hash_needs_64_bit_multipliers(void **state)
{
    static const uint64_t mult[4] = {0x20000000000003u, 0x2fffffffffffedu, 0x3123456789abcdu,
                                     0x3ffffffffffff1u};
    hash_table exact = {.orders = 3, .heads = 8, .pad = 2}, rounded;
    uint32_t a[24], b[24];
    int32_t ids[4];

    (void)state;
    for (uint32_t i = 0; i < 24; i++) {
        exact.prime[i] = 16000057 + 2 * i;
        exact.offset[i] = i * 16000057;
    }
    rounded = exact;
    for (uint32_t i = 0; i < 4; i++) {
        table_multiplier(&exact, i, mult[i]);
        table_multiplier(&rounded, i, (uint64_t)(double)mult[i]);
    }
    for (int32_t t = 0; t < 100; t++) {
        for (int32_t i = 0; i < 4; i++)
            ids[i] = 1 + (t * 37 + i * 101) % 511;
        hash_rows(&exact, ids, 3, a);
        hash_rows(&rounded, ids, 3, b);
        for (int c = 0; c < 24; c++)
            assert_int_not_equal(a[c], b[c]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_matches_vectors),
        cmocka_unit_test(collapse_and_expand_match_vectors),
        cmocka_unit_test(gates_match_vectors),
        cmocka_unit_test(experts_match_vectors),
        cmocka_unit_test(hash_matches_vectors),
        cmocka_unit_test(hash_matches_synthetic_vectors),
        cmocka_unit_test(hash_needs_64_bit_multipliers),
    };

    return cmocka_run_group_tests_name("ops_b_vectors", tests, NULL, NULL);
}
