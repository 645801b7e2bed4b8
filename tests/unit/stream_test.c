#include "tests/unit/text_support.h"

#include "text/tokenizer.h"
#include "text/utf8.h"

static iso_tokenizer *released, *small;

static int group_open(void **state)
{
    (void)state;
    released = released_open();
    small = small_open();
    return 0;
}

static int group_close(void **state)
{
    (void)state;
    iso_tokenizer_close(&released);
    iso_tokenizer_close(&small);
    return 0;
}

/* Pushes the ids of a golden row: each piece is valid, and they join to the decoded text. */
static void check_row(iso_text_stream *stream, const iso_json *row)
{
    const iso_json *ids = iso_json_get(row, "ids");
    size_t want_bytes = 0, bytes = 0;
    const char *want = iso_json_string(iso_json_get(row, "decoded"), &want_bytes), *piece = NULL;
    iso_chars joined = {0};
    iso_error error;

    for (size_t i = 0; i < iso_json_size(ids); i++) {
        int64_t id = 0;

        assert_true(iso_json_int(iso_json_at(ids, i), &id));
        assert_ok(iso_text_stream_push(stream, (int32_t)id, &piece, &bytes, &error), error);
        assert_true(iso_utf8_is_valid(piece, bytes));
        iso_chars_add(&joined, piece, bytes);
    }
    assert_ok(iso_text_stream_finish(stream, &piece, &bytes, &error), error);
    assert_true(iso_utf8_is_valid(piece, bytes));
    iso_chars_add(&joined, piece, bytes);
    assert_int_equal(joined.used, want_bytes);
    if (want_bytes != 0)
        assert_memory_equal(joined.data, want, want_bytes);
    iso_chars_deinit(&joined);
}

static void pieces_join_to_decoded_text(void **state)
{
    static const char *const lists[] = {"encode", "decode"};
    iso_json_doc *doc = golden_open(GOLDEN("encode.json"));
    iso_text_stream *stream = NULL;
    iso_error error;

    (void)state;
    assert_ok(iso_text_stream_create(released, &stream, &error), error);
    for (size_t i = 0; i < 2; i++) {
        const iso_json *rows = iso_json_get(iso_json_root(doc), lists[i]);

        for (size_t j = 0; j < iso_json_size(rows); j++)
            check_row(stream, iso_json_at(rows, j));
    }
    iso_text_stream_destroy(&stream);
    assert_null(stream);
    iso_text_stream_destroy(&stream);
    iso_json_free(&doc);
}

/* In the small vocabulary id i < 256 is byte i. */
static void push_expects(iso_text_stream *stream, int32_t id, const char *want)
{
    const char *piece = NULL;
    size_t bytes = 99;
    iso_error error;

    assert_ok(iso_text_stream_push(stream, id, &piece, &bytes, &error), error);
    assert_int_equal(bytes, strlen(want));
    assert_memory_equal(piece, want, bytes);
}

static void finish_expects(iso_text_stream *stream, const char *want)
{
    const char *piece = NULL;
    size_t bytes = 99;
    iso_error error;

    assert_ok(iso_text_stream_finish(stream, &piece, &bytes, &error), error);
    assert_int_equal(bytes, strlen(want));
    assert_memory_equal(piece, want, bytes);
}

static void push_holds_back_cut_characters(void **state)
{
    iso_text_stream *stream = NULL;
    iso_error error;

    (void)state;
    assert_ok(iso_text_stream_create(small, &stream, &error), error);
    push_expects(stream, 0xf0, "");
    push_expects(stream, 0x9f, "");
    push_expects(stream, 0x98, "");
    push_expects(stream, 0x80, "\xf0\x9f\x98\x80");
    push_expects(stream, 0xe2, "");
    push_expects(stream, 259, "\xef\xbf\xbdhello");
    push_expects(stream, 0x80, "\xef\xbf\xbd");
    push_expects(stream, 0xe0, "");
    push_expects(stream, 0x80, "\xef\xbf\xbd\xef\xbf\xbd");
    push_expects(stream, 0xff, "\xef\xbf\xbd");
    push_expects(stream, 0xe4, "");
    push_expects(stream, 0xbd, "");
    finish_expects(stream, "\xef\xbf\xbd");
    finish_expects(stream, "");
    push_expects(stream, 260, "<think>");
    push_expects(stream, 0xc3, "");
    push_expects(stream, 0xc3, "\xef\xbf\xbd");
    push_expects(stream, 0xa9, "é");
    finish_expects(stream, "");
    iso_text_stream_destroy(&stream);
}

static void push_refuses_bad_ids(void **state)
{
    iso_text_stream *stream = NULL;
    const char *piece = NULL;
    size_t bytes = 0;
    iso_error error;

    (void)state;
    assert_int_equal(iso_text_stream_create(NULL, &stream, &error), ISO_BAD_ARGUMENT);
    assert_ok(iso_text_stream_create(small, &stream, &error), error);
    push_expects(stream, 0xc3, "");
    assert_fails(iso_text_stream_push(stream, -1, &piece, &bytes, &error), ISO_BAD_INDEX, error,
                 "id 0..262 expected, -1 found");
    assert_fails(iso_text_stream_push(stream, 263, &piece, &bytes, &error), ISO_BAD_INDEX, error,
                 "263 found");
    assert_null(piece);
    push_expects(stream, 0xa9, "é");
    iso_text_stream_destroy(&stream);
}

static iso_status use_stream(void *context)
{
    const char *piece;
    size_t bytes;
    iso_text_stream *stream = NULL;
    iso_status status = iso_text_stream_create(context, &stream, NULL);

    for (int32_t id = 250; id < 263 && status == ISO_OK; id++)
        status = iso_text_stream_push(stream, id, &piece, &bytes, NULL);
    if (status == ISO_OK)
        status = iso_text_stream_finish(stream, &piece, &bytes, NULL);
    iso_text_stream_destroy(&stream);
    return status;
}

static void stream_survives_failing_allocations(void **state)
{
    (void)state;
    expect_survives_oom(use_stream, small);
}

/* Number of U+FFFD that each ill-formed text becomes, by the maximal subparts of the standard. */
static void repair_counts_maximal_subparts(void **state)
{
    static const struct {
        const char *text;
        int count;
    } rows[] = {
        {"\x80", 1},         {"\xc0\x80", 2},         {"\xe2\x82", 1},     {"\xe2\x28\xa1", 2},
        {"\xf0\x9f\x98", 1}, {"\xf0\x80\x80\x80", 4}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4},
        {"\xf0\x90\x80", 1}, {"\xe0\x9f\x80", 3},     {"\xc3\xc3", 2},     {"\xf8\x88", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        iso_chars out = {0};
        int count = 0;

        iso_utf8_repair(rows[i].text, strlen(rows[i].text), &out);
        for (size_t j = 0; j + 2 < out.used; j++)
            count += memcmp(out.data + j, "\xef\xbf\xbd", 3) == 0;
        assert_int_equal(count, rows[i].count);
        iso_chars_deinit(&out);
    }
}

static void utf8_round_trips_each_code_point(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        iso_chars out = {0};
        uint32_t back = 0;
        size_t taken = 0;

        if (code >= 0xd800 && code < 0xe000)
            continue;
        iso_utf8_add(&out, code);
        if (iso_utf8_next(out.data, out.used, &back, &taken) != ISO_UTF8_CHAR || back != code ||
            taken != out.used)
            fail_msg("U+%04X", code);
        iso_chars_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_join_to_decoded_text),
        cmocka_unit_test(push_holds_back_cut_characters),
        cmocka_unit_test(push_refuses_bad_ids),
        cmocka_unit_test(stream_survives_failing_allocations),
        cmocka_unit_test(repair_counts_maximal_subparts),
        cmocka_unit_test(utf8_round_trips_each_code_point),
    };

    return cmocka_run_group_tests_name("stream", tests, group_open, group_close);
}
