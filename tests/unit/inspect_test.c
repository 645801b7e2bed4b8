/* inspect: the reports of made-up checkpoints add up; unknown tensors are a notice; whatever does
 * not fit the configuration is refused. */
#include "tests/unit/folders.h"

#include "core/json.h"

#define INDEX "model.safetensors.index.json"

static char checkpoint[FOLDER_PATH];

static int setup(void **state)
{
    iso_error error = {0};

    (void)state;
    folder_create(checkpoint);
    assert_ok(iso_tiny_write("v41-drafts", 1, checkpoint, &error), error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(checkpoint);
    return 0;
}

static int64_t number(const iso_json *object, const char *key)
{
    int64_t value = 0;

    assert_true(iso_json_int(iso_json_get(object, key), &value));
    return value;
}

/* Sums of the members `tensors` and `bytes` of an array of objects equal those of the root. */
static void assert_adds_up(const iso_json *root, const char *table)
{
    const iso_json *rows = iso_json_get(root, table);
    int64_t tensors = 0, bytes = 0;

    assert_true(iso_json_size(rows) > 0);
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        tensors += number(iso_json_at(rows, i), "tensors");
        bytes += number(iso_json_at(rows, i), "bytes");
    }
    assert_int_equal(tensors, number(root, "tensors"));
    assert_int_equal(bytes, number(root, "bytes"));
}

static void inspect_json_adds_up(void **state)
{
    static const char *const tags[] = {"BF16", "F32", "F8_E4M3", "F8_E8M0", "I8"};
    iso_json_doc *doc = NULL;
    iso_error error = {0};
    const iso_json *root;
    char *text = NULL;
    int64_t decode = 0;

    (void)state;
    assert_ok(iso_inspect(checkpoint, true, &text, &error), error);
    assert_ok(iso_json_parse(text, strlen(text), "report", &doc, &error), error);
    root = iso_json_root(doc);
    assert_string_equal(iso_json_string(iso_json_get(root, "family"), NULL), "deepseek_v41");
    assert_adds_up(root, "dtypes");
    assert_adds_up(root, "components");
    assert_adds_up(root, "files");
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(iso_json_string(iso_json_get(iso_json_at(iso_json_get(
                                root, "dtypes"), i), "dtype"), NULL), tags[i]);
    for (size_t i = 0; i < iso_json_size(iso_json_get(root, "components")); i++)
        decode += number(iso_json_at(iso_json_get(root, "components"), i), "decode_bytes");
    assert_int_equal(decode, number(root, "decode_bytes"));
    assert_int_equal(number(iso_json_get(root, "config"), "draft_stages"), 3);
    assert_int_equal(number(iso_json_get(root, "config"), "hidden_size"), 256);
    assert_int_equal(number(iso_json_get(root, "unknown"), "count"), 0);
    iso_json_free(&doc);
    iso_free(text);
}

static void inspect_text_has_every_part(void **state)
{
    static const char *const parts[] = {
        "family       deepseek_v41, from config.json\n",
        "model        10 layers, hidden 256, vocabulary 1,280\n",
        "compression  ratio 2 in 4 layers, ratio 1 in 4, none in 2\n",
        "engram       layer 5: ", "drafts       3 stages on layers 7 8 9; 8 experts, 3 per token\n",
        "weights      23,805,318 bytes in 1,542 tensors\n",
        "state        280 bytes per token, and 42,240 of window rings per sequence\n",
        "  F8_E8M0 ", "  routed experts ", "  model-00004-of-00004.safetensors ",
    };
    iso_error error = {0};
    char *text = NULL;

    (void)state;
    assert_ok(iso_inspect(checkpoint, false, &text, &error), error);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("\"%s\" is not in\n%s", parts[i], text);
    assert_null(strstr(text, "notice"));
    iso_free(text);
}

static void inspect_notices_unknown_tensors(void **state)
{
    iso_error error = {0};
    char *text = NULL;

    (void)state;
    shard_write(checkpoint, "more.safetensors",
                "{\"zz.extra\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]}}", -1, 16);
    file_replace(checkpoint, INDEX, "total_size", "total_sizf");
    file_replace(checkpoint, INDEX, "\"weight_map\": {",
                 "\"weight_map\": {\"zz.extra\": \"more.safetensors\",");
    assert_ok(iso_inspect(checkpoint, false, &text, &error), error);
    assert_non_null(strstr(text, "notice       1 tensor no part of this model uses, first: "
                                 "zz.extra\n"));
    assert_non_null(strstr(text, "in 1,543 tensors\n"));
    iso_free(text);
    assert_ok(iso_inspect(checkpoint, true, &text, &error), error);
    assert_non_null(strstr(text, "\"unknown\": {\"count\": 1, \"first\": \"zz.extra\"}"));
    iso_free(text);
    file_replace(checkpoint, INDEX, "\"zz.extra\": \"more.safetensors\",", "");
    file_replace(checkpoint, INDEX, "total_sizf", "total_size");
}

typedef struct edit {
    const char *file, *from, *to;
    iso_status status;
    const char *part;
} edit;

static void inspect_refuses_what_does_not_fit(void **state)
{
    static const edit edits[] = {
        {"config.json", "\"hidden_size\": 256", "\"hidden_size\": 288", ISO_BAD_TENSOR,
         "embed.weight: shape [1280,256], expected [1280,288]"},
        {"config.json", "\"n_routed_experts\": 16", "\"n_routed_experts\": 17", ISO_BAD_TENSOR,
         "layers.0.ffn.gate.weight: shape [16,256], expected [17,256]"},
        {"config.json", "\"dspark_markov_rank\": 64", "\"dspark_markov_rank\": 32",
         ISO_BAD_TENSOR, "mtp.2.markov_head.embed.weight"},
        {"config.json", "\"hidden_size\"", "\"hidden_sizf\"", ISO_BAD_CONFIG, "hidden_size"},
        {"model-00001-of-00004.safetensors", "\"embed.weight\":{\"dtype\":\"BF16\"",
         "\"embed.weight\":{\"dtype\":\"F8_E4M3\"", ISO_BAD_TENSOR,
         "embed.weight: F8_E4M3 of its shape needs 327680 bytes"},
        {INDEX, "model-00002-of-00004", "model-00009-of-00004", ISO_NOT_FOUND,
         "model-00009-of-00004.safetensors"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const edit *e = &edits[i];
        iso_error error = {0};
        char *text = NULL;

        file_replace(checkpoint, e->file, e->from, e->to);
        assert_fails(iso_inspect(checkpoint, false, &text, &error), e->status, error, e->part);
        assert_null(text);
        file_replace(checkpoint, e->file, e->to, e->from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspect_json_adds_up),
        cmocka_unit_test(inspect_text_has_every_part),
        cmocka_unit_test(inspect_notices_unknown_tensors),
        cmocka_unit_test(inspect_refuses_what_does_not_fit),
    };

    return cmocka_run_group_tests_name("inspect", tests, setup, teardown);
}
