/* json: types, integers, duplicates, and text written by core/text.c read back. */
#include "tests/unit/unit.h"

#include "core/json.h"
#include "core/text.h"

static const iso_json *parse(const char *text, iso_json_doc **doc)
{
    iso_error error;

    assert_ok(iso_json_parse(text, strlen(text), "test", doc, &error), error);
    return iso_json_root(*doc);
}

static void json_reads_types(void **state)
{
    iso_json_doc *doc = NULL;
    const iso_json *root = parse("{\"i\": 9007199254740993, \"r\": 0.5, \"s\": \"a\\u0000b\","
                                 " \"b\": true, \"n\": null, \"a\": [1, 2], \"o\": {}}", &doc);
    int64_t integer = 0;
    double number = 0;
    bool boolean = false;
    size_t bytes = 0;

    (void)state;
    assert_int_equal(iso_json_size(root), 7);
    assert_true(iso_json_int(iso_json_get(root, "i"), &integer));
    assert_true(integer == INT64_C(9007199254740993));       /* not through a double */
    assert_false(iso_json_int(iso_json_get(root, "r"), &integer));
    assert_true(iso_json_number(iso_json_get(root, "r"), &number) && number == 0.5);
    assert_true(iso_json_bool(iso_json_get(root, "b"), &boolean) && boolean);
    assert_non_null(iso_json_string(iso_json_get(root, "s"), &bytes));
    assert_int_equal(bytes, 3);
    assert_int_equal(iso_json_type_of(iso_json_get(root, "n")), ISO_JSON_NULL);
    assert_int_equal(iso_json_size(iso_json_get(root, "a")), 2);
    assert_null(iso_json_get(root, "none"));
    assert_null(iso_json_at(iso_json_get(root, "a"), 2));
    assert_null(iso_json_string(NULL, NULL));
    assert_string_equal(iso_json_type_name(ISO_JSON_ARRAY), "an array");
    iso_json_free(&doc);
    assert_null(doc);
}

static void json_walks_in_file_order(void **state)
{
    iso_json_doc *doc = NULL;
    const iso_json *root = parse("{\"z\":0,\"a\":1,\"m\":2}", &doc), *value;
    iso_json_cursor cursor = {0};
    char keys[4] = "";
    const char *key;

    (void)state;
    while (iso_json_next(root, &cursor, &key, &value))
        strncat(keys, key, 1);
    assert_string_equal(keys, "zam");
    iso_json_free(&doc);
}

static void json_refuses(void **state)
{
    static const char *const bad[] = {"", "{", "{\"a\":1,\"a\":2}", "[1,]", "\"\xff\"", "nul",
                                      "1 2", "99999999999999999999"};
    iso_json_doc *doc = NULL;
    iso_error error;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fails(iso_json_parse(bad[i], strlen(bad[i]), "bad", &doc, &error), ISO_BAD_JSON,
                     error, "bad: line");
        assert_null(doc);
    }
    assert_fails(iso_json_read("/nonexistent/file.json", 100, &doc, &error), ISO_NOT_FOUND, error,
                 "/nonexistent/file.json");
}

static void text_writes_valid_strings(void **state)
{
    iso_text text = {0};
    iso_json_doc *doc = NULL;
    iso_error error;
    char *out = NULL;

    (void)state;
    iso_text_printf(&text, "[");
    iso_text_json(&text, "q\"b\\n\n\t\x01 caf\xc3\xa9 \xf0\x9f\x98\x80 bad"
                         "\xff\xc0\x80\xed\xa0\x80");
    iso_text_printf(&text, ",%d]", 12);
    assert_ok(iso_text_take(&text, &out, &error), error);
    assert_string_equal(
        iso_json_string(iso_json_at(parse(out, &doc), 0), NULL),
        "q\"b\\n\n\t\x01 caf\xc3\xa9 \xf0\x9f\x98\x80 bad"
        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    iso_json_free(&doc);
    iso_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_reads_types),
        cmocka_unit_test(json_walks_in_file_order),
        cmocka_unit_test(json_refuses),
        cmocka_unit_test(text_writes_valid_strings),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
