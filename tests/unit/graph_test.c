/* graph: inference at append, what is refused, state versions, the hash, allocation failures. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/graph.h"
#include "tests/unit/toy_ops.h"

static iso_error error;

static iso_value append(iso_graph *graph, const char *name, const iso_op *op, float k, iso_value a,
                        iso_value b)
{
    const toy_params params = {k};
    const iso_value inputs[2] = {a, b};
    iso_value out = 0;

    assert_ok(iso_graph_append(graph, name, op, &params, inputs, &out, &error), error);
    return out;
}

static iso_status try_append(iso_graph *graph, const char *name, const iso_op *op, iso_value a,
                             iso_value b)
{
    const toy_params params = {1.0f};
    const iso_value inputs[2] = {a, b};
    iso_value out = 77;
    const iso_status status = iso_graph_append(graph, name, op, &params, inputs, &out, &error);

    assert_true(status == ISO_OK || out == 77);
    return status;
}

/* x [rows*, 4] -> affine -> accumulate into state -> output. */
static iso_status build(iso_graph **graph, float k)
{
    iso_tensor_desc rows = iso_desc2(ISO_DTYPE_F32, 8, 4);
    iso_value x = 0, w = 0, state = 0, y[1] = {0}, inputs[2];
    const toy_params params = {k};
    uint32_t scalar = 0;

    *graph = NULL;
    ISO_TRY(iso_graph_create(graph, &error));
    ISO_TRY(iso_graph_scalar(*graph, "tokens", 8, &scalar, &error));
    rows.live_scalar = scalar + 1;
    rows.live_mult = 1;
    ISO_TRY(iso_graph_input(*graph, "x", rows, &x, &error));
    ISO_TRY(iso_graph_weight(*graph, "w", iso_desc1(ISO_DTYPE_F32, 4), 3, &w, &error));
    ISO_TRY(iso_graph_state(*graph, "s", iso_desc2(ISO_DTYPE_F32, 8, 4), 9, &state, &error));
    inputs[0] = x;
    inputs[1] = w;
    ISO_TRY(iso_graph_append(*graph, "a", &toy_affine, &params, inputs, y, &error));
    ISO_TRY(iso_graph_output(*graph, "out", y[0], &error));
    inputs[0] = state;
    inputs[1] = y[0];
    ISO_TRY(iso_graph_append(*graph, "b", &toy_accumulate, NULL, inputs, y, &error));
    return iso_graph_seal(*graph, &error);
}

static void graph_infers_and_reads_back(void **state)
{
    iso_graph *graph = NULL;
    iso_value_info value;
    iso_node_info node;
    const char *name;
    uint32_t capacity;
    iso_value out;

    (void)state;
    assert_ok(build(&graph, 2.0f), error);
    assert_true(iso_graph_is_sealed(graph));
    assert_int_equal(iso_graph_node_count(graph), 2);
    assert_int_equal(iso_graph_value_count(graph), 5);
    iso_graph_node(graph, 0, &node);
    assert_string_equal(node.name, "a");
    iso_graph_value(graph, node.outputs[0], &value);
    assert_int_equal(value.kind, ISO_VALUE_RESULT);
    assert_int_equal(value.desc.live_scalar, 1);
    assert_true(value.is_output && value.storage == node.outputs[0] && value.node == 0);
    iso_graph_node(graph, 1, &node);
    iso_graph_value(graph, node.outputs[0], &value);
    iso_graph_value(graph, value.storage, &value);
    assert_int_equal(value.kind, ISO_VALUE_STATE);
    assert_int_equal(value.id, 9);
    iso_graph_scalar_info(graph, 0, &name, &capacity);
    assert_string_equal(name, "tokens");
    assert_int_equal(capacity, 8);
    iso_graph_output_at(graph, 0, &name, &out);
    assert_string_equal(name, "out");
    iso_graph_destroy(&graph);
    assert_null(graph);
    iso_graph_destroy(&graph);
}

static void graph_refuses_bad_appends(void **state)
{
    iso_graph *graph = NULL;
    iso_tensor_desc counted = iso_desc2(ISO_DTYPE_F32, 8, 4);
    iso_value x, ids, y, other;

    (void)state;
    assert_ok(iso_graph_create(&graph, &error), error);
    assert_ok(iso_graph_input(graph, "x", iso_desc2(ISO_DTYPE_F32, 8, 4), &x, &error), error);
    assert_ok(iso_graph_input(graph, "i", iso_desc1(ISO_DTYPE_I32, 8), &ids, &error), error);
    y = append(graph, "y", &toy_affine, 1.0f, x, 0);
    assert_fails(try_append(graph, "z", &toy_affine, ids, 0), ISO_BAD_SHAPE, error,
                 "z: toy_affine: x is not");
    assert_fails(try_append(graph, "z", &toy_affine, 99, 0), ISO_BAD_ARGUMENT, error, "value 99");
    assert_fails(try_append(graph, "y", &toy_affine, x, 0), ISO_BAD_ARGUMENT, error, "this name");
    assert_fails(try_append(graph, "", &toy_affine, x, 0), ISO_BAD_ARGUMENT, error, "a name");
    assert_fails(try_append(graph, "u", &toy_accumulate, y, x), ISO_BAD_ARGUMENT, error,
                 "must be state");
    counted.live_scalar = 1;
    assert_fails(iso_graph_input(graph, "c", counted, &other, &error), ISO_BAD_ARGUMENT, error,
                 "scalar 0 of 0");
    assert_fails(iso_graph_input(graph, "n", iso_desc_none(), &other, &error), ISO_BAD_DTYPE,
                 error, "dtype");
    assert_fails(iso_graph_output(graph, "o", x, &error), ISO_BAD_ARGUMENT, error, "no result");
    assert_fails(iso_graph_output(graph, "o", 0, &error), ISO_BAD_ARGUMENT, error, "value 0");
    assert_ok(iso_graph_output(graph, "o", y, &error), error);
    assert_fails(iso_graph_output(graph, "p", y, &error), ISO_BAD_ARGUMENT, error, "already");
    other = append(graph, "z", &toy_affine, 1.0f, y, 0);
    assert_fails(iso_graph_output(graph, "o", other, &error), ISO_BAD_ARGUMENT, error, "already");
    assert_ok(iso_graph_seal(graph, &error), error);
    assert_fails(try_append(graph, "late", &toy_affine, x, 0), ISO_BAD_ARGUMENT, error, "seal");
    assert_fails(iso_graph_seal(graph, &error), ISO_BAD_ARGUMENT, error, "sealed");
    iso_graph_destroy(&graph);
}

static void graph_orders_state(void **state)
{
    iso_graph *graph = NULL;
    iso_value x, s0, s1, again;

    (void)state;
    assert_ok(iso_graph_create(&graph, &error), error);
    assert_ok(iso_graph_input(graph, "x", iso_desc2(ISO_DTYPE_F32, 8, 4), &x, &error), error);
    assert_ok(iso_graph_state(graph, "s", iso_desc2(ISO_DTYPE_F32, 8, 4), 5, &s0, &error), error);
    assert_fails(iso_graph_state(graph, "t", iso_desc2(ISO_DTYPE_F32, 8, 4), 5, &again, &error),
                 ISO_BAD_ARGUMENT, error, "already s");
    (void)append(graph, "before", &toy_affine, 1.0f, s0, 0);
    s1 = append(graph, "update", &toy_accumulate, 1.0f, s0, x);
    assert_fails(try_append(graph, "old", &toy_affine, s0, 0), ISO_BAD_ARGUMENT, error,
                 "old version of state s");
    (void)append(graph, "after", &toy_affine, 1.0f, s1, 0);
    assert_fails(iso_graph_output(graph, "o", s1, &error), ISO_BAD_ARGUMENT, error, "no result");
    assert_fails(try_append(graph, "self", &toy_accumulate, s1, s1), ISO_BAD_ARGUMENT, error,
                 "reads the state it changes");
    iso_graph_destroy(&graph);
}

static void graph_finds_duplicates_among_many(void **state)
{
    iso_graph *graph = NULL;
    char name[32];
    iso_value x;

    (void)state;
    assert_ok(iso_graph_create(&graph, &error), error);
    assert_ok(iso_graph_input(graph, "x", iso_desc2(ISO_DTYPE_F32, 2, 4), &x, &error), error);
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "layers.%d.op", i);
        (void)append(graph, name, &toy_affine, 1.0f, x, 0);
    }
    for (int i = 0; i < 2000; i += 37) {
        snprintf(name, sizeof name, "layers.%d.op", i);
        assert_fails(try_append(graph, name, &toy_affine, x, 0), ISO_BAD_ARGUMENT, error, name);
    }
    iso_graph_destroy(&graph);
}

static void graph_hash_depends_on_everything(void **state)
{
    iso_graph *a = NULL, *b = NULL, *c = NULL;
    uint64_t hash_a[2], hash_b[2], hash_c[2];

    (void)state;
    assert_ok(build(&a, 2.0f), error);
    assert_ok(build(&b, 2.0f), error);
    assert_ok(build(&c, 3.0f), error);
    iso_graph_hash(a, hash_a);
    iso_graph_hash(b, hash_b);
    iso_graph_hash(c, hash_c);
    assert_memory_equal(hash_a, hash_b, sizeof hash_a);
    assert_memory_not_equal(hash_a, hash_c, sizeof hash_a);
    iso_graph_destroy(&a);
    iso_graph_destroy(&b);
    iso_graph_destroy(&c);
}

static void graph_survives_no_memory(void **state)
{
    iso_alloc_stats before, after;
    iso_graph *graph = NULL;
    iso_status status;
    uint64_t n = 0;

    (void)state;
    iso_alloc_get_stats(&before);
    do {
        iso_alloc_fail_at(++n);
        status = build(&graph, 1.0f);
        iso_alloc_fail_at(0);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
        iso_graph_destroy(&graph);
        iso_alloc_get_stats(&after);
        assert_int_equal(after.bytes_now, before.bytes_now);
    } while (status != ISO_OK);
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graph_infers_and_reads_back),
        cmocka_unit_test(graph_refuses_bad_appends),
        cmocka_unit_test(graph_orders_state),
        cmocka_unit_test(graph_finds_duplicates_among_many),
        cmocka_unit_test(graph_hash_depends_on_everything),
        cmocka_unit_test(graph_survives_no_memory),
    };

    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
