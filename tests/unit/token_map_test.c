#include "tests/unit/text_support.h"

#include "text/token_map.h"
#include "text/unicode.h"

static iso_tokenizer *released;
static iso_json_doc *golden;

static int group_open(void **state)
{
    (void)state;
    released = released_open();
    golden = golden_open(GOLDEN("token_map.json"));
    return 0;
}

static int group_close(void **state)
{
    (void)state;
    iso_tokenizer_close(&released);
    iso_json_free(&golden);
    return 0;
}

/* The hashes are of tables whose SHA-256 the golden's maker compared with the published ones. */
static void expect_hash(const int32_t *map, size_t count, const char *key)
{
    const iso_json *hashes = iso_json_get(iso_json_root(golden), "xxh3_128_le");
    uint64_t hash[2];
    char found[40];

    iso_hash(map, count * sizeof *map, hash);
    snprintf(found, sizeof found, "%016llx%016llx", (unsigned long long)hash[1],
             (unsigned long long)hash[0]);
    assert_string_equal(found, iso_json_string(iso_json_get(hashes, key), NULL));
}

static void map_equals_published_table(void **state)
{
    const size_t count = iso_tokenizer_vocab_size(released);
    const iso_json *samples = iso_json_get(iso_json_root(golden), "samples");
    int32_t *map = calloc(count, sizeof *map);
    uint32_t keys = 0;
    iso_error error;

    (void)state;
    assert_non_null(map);
    assert_int_equal(count, 129280);
    assert_ok(iso_tokenizer_token_map(released, map, count, &keys, &error), error);
    assert_int_equal(keys, 99092);
    expect_hash(map, 128000, "128000");
    expect_hash(map, 129280, "129280");
    for (size_t id = 128000; id < count; id++)
        assert_int_equal(map[id], (int32_t)id - 30188);
    assert_true(iso_json_size(samples) > 10);
    for (size_t i = 0; i < iso_json_size(samples); i++) {
        const iso_json *row = iso_json_at(samples, i);
        int64_t id = -1, want = -1;

        assert_true(iso_json_int(iso_json_get(row, "id"), &id));
        assert_true(iso_json_int(iso_json_get(row, "compressed_id"), &want));
        assert_int_equal(map[id], want);
    }
    free(map);
}

static void normaliser_equals_goldens(void **state)
{
    const iso_json *rows = iso_json_get(iso_json_root(golden), "normaliser");

    (void)state;
    assert_true(iso_json_size(rows) > 30);
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        size_t text_bytes = 0, key_bytes = 0;
        const iso_json *row = iso_json_at(rows, i);
        const char *text = iso_json_string(iso_json_get(row, "text"), &text_bytes);
        const char *key = iso_json_string(iso_json_get(row, "key"), &key_bytes);
        iso_chars found = {0};

        iso_token_map_normalise(text, text_bytes, &found);
        if (found.used != key_bytes || memcmp(found.used == 0 ? "" : found.data, key, key_bytes))
            fail_msg("\"%s\": \"%s\" expected, \"%.*s\" found", text, key, (int)found.used,
                     found.used == 0 ? "" : found.data);
        iso_chars_deinit(&found);
    }
}

/* Longer than what is folded on the stack: U+FDFA becomes 18 characters. */
static void fold_takes_long_texts(void **state)
{
    iso_chars text = {0}, folded = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        iso_chars_add_string(&text, "\xef\xb7\xba" "É");
    iso_unicode_fold(text.data, text.used, &folded);
    assert_int_equal(folded.used, 100 * (33 + 1));
    assert_false(folded.failed);
    iso_chars_deinit(&text);
    iso_chars_deinit(&folded);
}

/* Fragments have the key of their spelling; equal spellings and texts are one key space. */
static void small_map_counts_keys(void **state)
{
    iso_tokenizer *small = small_open();
    int32_t map[263];
    uint32_t keys = 0;
    iso_chars key = {0};
    iso_error error;

    (void)state;
    assert_ok(iso_tokenizer_token_map(small, map, 263, &keys, &error), error);
    assert_int_equal(map['A'], map['a']);
    assert_int_equal(map[' '], map['\n']);
    assert_int_not_equal(map[' '], map[0x0b]);
    assert_int_not_equal(map[0xc3], map[0xe9]);
    /* 26 letters, and tab, newline and return beside the space. */
    assert_int_equal(keys, 263 - 26 - 3);
    iso_token_map_key(small, 0x80, &key);
    assert_int_equal(key.used, 2);
    assert_memory_equal(key.data, "\xc4\xa2", 2); /* U+0122 stands for byte 0x80 */
    iso_chars_deinit(&key);
    assert_fails(iso_tokenizer_token_map(small, map, 262, &keys, &error), ISO_BAD_ARGUMENT, error,
                 "263 ids expected, 262 found");
    assert_fails(iso_tokenizer_token_map(small, NULL, 263, &keys, &error), ISO_BAD_ARGUMENT, error,
                 "NULL");
    iso_tokenizer_close(&small);
}

static iso_status build_map(void *context)
{
    int32_t map[263];
    uint32_t keys = 0;

    return iso_tokenizer_token_map(context, map, 263, &keys, NULL);
}

static void map_survives_failing_allocations(void **state)
{
    iso_tokenizer *small = small_open();

    (void)state;
    expect_survives_oom(build_map, small);
    iso_tokenizer_close(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_equals_published_table),
        cmocka_unit_test(normaliser_equals_goldens),
        cmocka_unit_test(fold_takes_long_texts),
        cmocka_unit_test(small_map_counts_keys),
        cmocka_unit_test(map_survives_failing_allocations),
    };

    return cmocka_run_group_tests_name("token_map", tests, group_open, group_close);
}
