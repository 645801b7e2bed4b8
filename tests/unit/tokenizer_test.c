#include "tests/unit/text_support.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include "text/alphabet.h"
#include "text/split.h"
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
    iso_alloc_stats stats;

    (void)state;
    iso_tokenizer_close(&released);
    iso_tokenizer_close(&small);
    assert_null(released);
    iso_tokenizer_close(&released);
    iso_alloc_get_stats(&stats);
    assert_int_equal(stats.bytes_now, 0);
    return 0;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the released file ---- */

static void load_reads_released_file(void **state)
{
    static const struct {
        int32_t id;
        const char *text;
    } known[] = {
        {0, "<｜begin▁of▁sentence｜>"}, {1, "<｜end▁of▁sentence｜>"}, {2, "<｜▁pad▁｜>"},
        {128799, "<｜System｜>"},       {128803, "<｜User｜>"},       {128804, "<｜Assistant｜>"},
        {128821, "<think>"},            {128822, "</think>"},         {128825, "｜DSML｜"},
        {128828, "<｜latest_reminder｜>"}, {128829, "<｜action｜>"},  {128830, "<｜query｜>"},
        {128831, "<｜authority｜>"},    {128832, "<｜domain｜>"},     {128836, "<｜title｜>"},
        {128844, "<｜extracted_url｜>"}, {128845, "<｜read_url｜>"},
        {129264, "<｜deepseek_image｜>"}, {129279, "<|place_holder_mm_span_0442|>"},
    };
    iso_tokenizer *again = NULL;
    iso_error error;
    char path[32];
    double begin;

    (void)state;
    assert_int_equal(iso_tokenizer_vocab_size(released), 129280);
    for (size_t i = 0; i < ISO_COUNT_OF(known); i++)
        assert_int_equal(iso_tokenizer_find(released, known[i].text), known[i].id);
    assert_int_equal(iso_tokenizer_find(released, "hello"), -1);
    assert_int_equal(iso_tokenizer_find(released, "<think"), -1);
    assert_int_equal(iso_tokenizer_find(released, ""), -1);
    released_file(path);
    begin = now();
    assert_ok(iso_tokenizer_open(path, &again, &error), error);
    print_message("load: %.3f s\n", now() - begin);
    unlink(path);
    iso_tokenizer_close(&again);
}

/* ---- goldens ---- */

static void read_ids(const iso_json *array, iso_ids *ids)
{
    for (size_t i = 0; i < iso_json_size(array); i++) {
        int64_t id = -1;

        assert_true(iso_json_int(iso_json_at(array, i), &id));
        iso_ids_add(ids, (int32_t)id);
    }
}

/* The text of a case: "text", or "bytes_hex". */
static void read_text(const iso_json *row, iso_chars *text)
{
    size_t bytes = 0;
    const char *plain = iso_json_string(iso_json_get(row, "text"), &bytes);
    const char *hex = iso_json_string(iso_json_get(row, "bytes_hex"), NULL);

    if (plain != NULL)
        iso_chars_add(text, plain, bytes);
    for (; hex != NULL && *hex != '\0'; hex += 2) {
        const char pair[3] = {hex[0], hex[1], '\0'};
        const char byte = (char)strtol(pair, NULL, 16);

        iso_chars_add(text, &byte, 1);
    }
}

static void check_decoded(const iso_json *row, const int32_t *ids, size_t count)
{
    size_t want_bytes = 0, found_bytes = 0;
    const char *want = iso_json_string(iso_json_get(row, "decoded"), &want_bytes);
    char *found = NULL;
    iso_error error;

    assert_ok(iso_tokenizer_decode(released, ids, count, &found, &found_bytes, &error), error);
    assert_int_equal(found_bytes, want_bytes);
    assert_memory_equal(found, want, want_bytes + 1);
    iso_free(found);
}

static void check_encoded(const iso_json *row, size_t index)
{
    const char *mode = iso_json_string(iso_json_get(row, "mode"), NULL);
    const uint32_t flags = strcmp(mode, "control") == 0 ? ISO_ENCODE_CONTROL : ISO_ENCODE_PLAIN;
    iso_chars text = {0};
    iso_ids want = {0};
    int32_t *ids = NULL;
    size_t count = 0;
    iso_error error;

    read_text(row, &text);
    read_ids(iso_json_get(row, "ids"), &want);
    assert_ok(encode_text(released, text.data, text.used, flags, &ids, &count, &error),
              error);
    if (count != want.used || (count != 0 && memcmp(ids, want.data, count * sizeof *ids) != 0))
        fail_msg("case %zu (%s): \"%.*s\" has other ids", index, mode, (int)text.used, text.data);
    check_decoded(row, ids, count);
    iso_free(ids);
    iso_chars_deinit(&text);
    iso_ids_deinit(&want);
}

static void encode_equals_goldens(void **state)
{
    iso_json_doc *doc = golden_open(GOLDEN("encode.json"));
    const iso_json *rows = iso_json_get(iso_json_root(doc), "encode");

    (void)state;
    assert_true(iso_json_size(rows) >= 800);
    for (size_t i = 0; i < iso_json_size(rows); i++)
        check_encoded(iso_json_at(rows, i), i);
    print_message("%zu encode cases\n", iso_json_size(rows));
    iso_json_free(&doc);
}

static void decode_equals_goldens(void **state)
{
    iso_json_doc *doc = golden_open(GOLDEN("encode.json"));
    const iso_json *rows = iso_json_get(iso_json_root(doc), "decode");

    (void)state;
    assert_true(iso_json_size(rows) >= 50);
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        iso_ids ids = {0};

        read_ids(iso_json_get(iso_json_at(rows, i), "ids"), &ids);
        check_decoded(iso_json_at(rows, i), ids.data, ids.used);
        iso_ids_deinit(&ids);
    }
    iso_json_free(&doc);
}

/* The text that make_tokenizer_goldens.py makes for one block of code points. */
static void add_sweep_text(uint32_t first, uint32_t count, iso_chars *text)
{
    static const char *const around[] = {"a", "b1", "2 ", " ", "", "!", "\n"};

    text->used = 0;
    for (uint32_t code = first; code < first + count; code++) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        for (size_t i = 0; i + 1 < ISO_COUNT_OF(around); i++) {
            iso_chars_add_string(text, around[i]);
            iso_utf8_add(text, code);
        }
        iso_chars_add_string(text, around[ISO_COUNT_OF(around) - 1]);
    }
}

static void encode_equals_sweep_of_all_code_points(void **state)
{
    iso_json_doc *doc = golden_open(GOLDEN("sweep.json"));
    const iso_json *hashes = iso_json_get(iso_json_root(doc), "xxh3_128_le");
    iso_chars text = {0};
    int64_t block = 0;

    (void)state;
    assert_true(iso_json_int(iso_json_get(iso_json_root(doc), "block"), &block));
    assert_int_equal(iso_json_size(hashes) * (size_t)block, 0x110000);
    for (size_t i = 0; i < iso_json_size(hashes); i++) {
        int32_t *ids = NULL;
        size_t count = 0;
        uint64_t hash[2];
        char found[40];
        iso_error error;

        add_sweep_text((uint32_t)(i * (size_t)block), (uint32_t)block, &text);
        assert_ok(encode_text(released, text.data, text.used, ISO_ENCODE_PLAIN, &ids,
                                       &count, &error),
                  error);
        iso_hash(ids, count * sizeof *ids, hash);
        snprintf(found, sizeof found, "%016llx%016llx", (unsigned long long)hash[1],
                 (unsigned long long)hash[0]);
        assert_string_equal(found, iso_json_string(iso_json_at(hashes, i), NULL));
        iso_free(ids);
    }
    iso_chars_deinit(&text);
    iso_json_free(&doc);
}

/* ---- fuzz ---- */

static void add_random_text(uint64_t *seed, iso_chars *text)
{
    static const char *const parts[] = {" ",   "\n",  "\r\n", "123",     "he", "hello ", "_x",
                                        "...", "'ll", "漢字", "<think>", "é",  "｜DSML", "\t\t"};
    const size_t count = random_next(seed) % 24;

    text->used = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t kind = random_next(seed) % 4;
        uint32_t code = (uint32_t)(random_next(seed) % (kind == 0 ? 0x80 : 0x110000));

        if (kind == 1)
            iso_chars_add_string(text, parts[random_next(seed) % ISO_COUNT_OF(parts)]);
        else
            iso_utf8_add(text, code >= 0xd800 && code < 0xe000 ? 'x' : code);
    }
}

static void check_round_trip(const char *text, size_t bytes, uint32_t flags)
{
    int32_t *ids = NULL;
    char *back = NULL;
    size_t count = 0, back_bytes = 0;
    iso_error error;

    assert_ok(encode_text(released, text, bytes, flags, &ids, &count, &error), error);
    assert_ok(iso_tokenizer_decode(released, ids, count, &back, &back_bytes, &error), error);
    assert_int_equal(back_bytes, bytes);
    if (bytes != 0)
        assert_memory_equal(back, text, bytes);
    iso_free(ids);
    iso_free(back);
}

static void round_trip_keeps_random_text(void **state)
{
    uint64_t seed = 0x9e3779b97f4a7c15u;
    iso_chars text = {0};

    (void)state;
    for (int i = 0; i < 6000; i++) {
        add_random_text(&seed, &text);
        check_round_trip(text.data, text.used, i % 2 == 0 ? ISO_ENCODE_PLAIN : ISO_ENCODE_CONTROL);
    }
    iso_chars_deinit(&text);
}

/* Bytes that are no UTF-8 encode as their repaired text does. */
static void encode_repairs_random_bytes(void **state)
{
    uint64_t seed = 0x243f6a8885a308d3u;

    (void)state;
    for (int i = 0; i < 6000; i++) {
        char raw[64];
        const size_t bytes = random_next(&seed) % sizeof raw;
        iso_chars repaired = {0};
        int32_t *ids[2] = {NULL, NULL};
        size_t count[2] = {0, 0};
        iso_error error;

        for (size_t j = 0; j < bytes; j++)
            raw[j] = (char)random_next(&seed);
        iso_utf8_repair(raw, bytes, &repaired);
        assert_true(iso_utf8_is_valid(repaired.data, repaired.used));
        assert_ok(encode_text(released, raw, bytes, 0, &ids[0], &count[0], &error),
                  error);
        assert_ok(encode_text(released, repaired.data, repaired.used, 0, &ids[1],
                                       &count[1], &error),
                  error);
        assert_int_equal(count[0], count[1]);
        assert_int_equal(memcmp(ids[0], ids[1], count[0] * sizeof *ids[0]), 0);
        iso_free(ids[0]);
        iso_free(ids[1]);
        iso_chars_deinit(&repaired);
    }
}

/* Long pieces take the heap; a quadratic merge or a recursion would not come back from these. */
static void encode_is_fast_on_long_pieces(void **state)
{
    static const char *const unit[] = {"a", " ", "\n", "漢", "ab", "é", "!", "1", "\xf0"};
    iso_chars text = {0};

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(unit); i++) {
        const double begin = now();
        int32_t *ids = NULL;
        size_t count = 0;
        iso_error error;

        text.used = 0;
        while (text.used < 1000000)
            iso_chars_add_string(&text, unit[i]);
        assert_ok(encode_text(released, text.data, text.used, 0, &ids, &count, &error),
                  error);
        iso_free(ids);
        assert_true(now() - begin < 20);
    }
    iso_chars_deinit(&text);
}

typedef struct shared_work {
    const char *text;
    size_t bytes, count;
    int32_t *ids;
    iso_status status;
} shared_work;

static void *encode_in_thread(void *context)
{
    shared_work *work = context;

    for (int i = 0; i < 20 && work->status == ISO_OK; i++) {
        iso_free(work->ids);
        work->ids = NULL;
        work->status = encode_text(released, work->text, work->bytes, ISO_ENCODE_CONTROL,
                                            &work->ids, &work->count, NULL);
    }
    return NULL;
}

static void encode_is_shared_by_threads(void **state)
{
    static const char text[] = "def f(x):\n    return x ** 2  # 漢字 and 123456 <think>hm</think>\n";
    shared_work work[4];
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        work[i] = (shared_work){.text = text, .bytes = sizeof text - 1};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_in_thread, &work[i]), 0);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(work[i].status, ISO_OK);
        assert_int_equal(work[i].count, work[0].count);
        assert_memory_equal(work[i].ids, work[0].ids, work[0].count * sizeof(int32_t));
    }
    for (size_t i = 0; i < 4; i++)
        iso_free(work[i].ids);
}

/* ---- small vocabulary ---- */

static void expect_small_ids(const char *text, uint32_t flags, const int32_t *want, size_t count)
{
    int32_t *ids = NULL;
    size_t found = 0;
    iso_error error;

    assert_ok(encode_text(small, text, strlen(text), flags, &ids, &found, &error),
              error);
    assert_int_equal(found, count);
    if (count != 0)
        assert_memory_equal(ids, want, count * sizeof *want);
    iso_free(ids);
}

static void encode_merges_by_rank(void **state)
{
    (void)state;
    expect_small_ids("hello", 0, (int32_t[]){259}, 1);
    expect_small_ids("helo", 0, (int32_t[]){256, 'l', 'o'}, 3);
    expect_small_ids("lll", 0, (int32_t[]){257, 'l'}, 2);
    expect_small_ids("llll", 0, (int32_t[]){257, 257}, 2);
    expect_small_ids("", 0, NULL, 0);
    expect_small_ids("<think>", 0, (int32_t[]){'<', 't', 'h', 'i', 'n', 'k', '>'}, 7);
    expect_small_ids("h<think>e", 1, (int32_t[]){'h', 260, 'e'}, 3);
    expect_small_ids("</think><think>", 1, (int32_t[]){261, 260}, 2);
    expect_small_ids("<think", 1, (int32_t[]){'<', 't', 'h', 'i', 'n', 'k'}, 6);
}

static void alphabet_is_a_bijection(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++)
        assert_int_equal(iso_alphabet_byte(iso_alphabet_code((uint8_t)byte)), byte);
    for (uint32_t code = 0; code < 0x400; code++)
        if (iso_alphabet_byte(code) >= 0)
            assert_int_equal(iso_alphabet_code((uint8_t)iso_alphabet_byte(code)), code);
}

static void functions_refuse_bad_arguments(void **state)
{
    iso_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    char *text = NULL;
    size_t count = 7;
    iso_error error;

    (void)state;
    assert_int_equal(iso_tokenizer_open(NULL, &tokenizer, &error), ISO_BAD_ARGUMENT);
    assert_int_equal(iso_tokenizer_open("/nowhere/at/all", &tokenizer, &error), ISO_NOT_FOUND);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
    assert_int_equal(iso_tokenizer_open("/", &tokenizer, &error), ISO_NOT_FOUND);
    assert_int_equal(iso_tokenizer_open("/nowhere/at/all", &tokenizer, NULL), ISO_NOT_FOUND);
    assert_int_equal(encode_text(small, NULL, 1, 0, &ids, &count, &error),
                     ISO_BAD_ARGUMENT);
    assert_int_equal(encode_text(small, "a", 1, 2, &ids, &count, &error),
                     ISO_BAD_ARGUMENT);
    assert_int_equal(encode_text(small, "a", SIZE_MAX / 2, 0, &ids, &count, &error),
                     ISO_LIMIT);
    for (int32_t bad = -1; bad <= 263; bad += 264) {
        const int32_t row[2] = {'a', bad};

        assert_int_equal(iso_tokenizer_decode(small, row, 2, &text, &count, &error),
                         ISO_BAD_INDEX);
        assert_non_null(strstr(error.text, "ids[1]: 0..262 expected"));
    }
    assert_int_equal(count, 7);
    assert_null(ids);
    assert_null(text);
    assert_null(tokenizer);
    assert_ok(encode_text(small, NULL, 0, 1, &ids, &count, &error), error);
    assert_non_null(ids);
    assert_int_equal(count, 0);
    iso_free(ids);
}

static void open_takes_a_directory(void **state)
{
    char directory[] = "/tmp/iso_text_XXXXXX", path[64];
    iso_tokenizer *tokenizer = NULL;
    iso_chars json = {0};
    iso_error error;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_not_equal(iso_tokenizer_open(directory, &tokenizer, &error), ISO_OK);
    snprintf(path, sizeof path, "%s/tokenizer.json", directory);
    file = fopen(path, "wb");
    small_json(&json);
    assert_int_equal(fwrite(json.data, 1, json.used, file), json.used);
    fclose(file);
    assert_ok(iso_tokenizer_open(directory, &tokenizer, &error), error);
    assert_int_equal(iso_tokenizer_vocab_size(tokenizer), 263);
    iso_tokenizer_close(&tokenizer);
    unlink(path);
    rmdir(directory);
    iso_chars_deinit(&json);
}

/* ---- hostile files ---- */

/* Replaces the first `from` of the small file by `to` and opens the result. */
static iso_status open_changed(const char *from, const char *to, iso_tokenizer **tokenizer,
                               iso_error *error)
{
    iso_chars json = {0}, changed = {0};
    iso_status status;
    char path[32];
    const char *at;

    small_json(&json);
    iso_chars_add(&json, "", 1);
    at = strstr(json.data, from);
    if (at == NULL)
        fail_msg("the small file holds no %s", from);
    iso_chars_add(&changed, json.data, (size_t)(at - json.data));
    iso_chars_add_string(&changed, to);
    iso_chars_add_string(&changed, at + strlen(from));
    write_file(changed.data, changed.used, path);
    status = iso_tokenizer_open(path, tokenizer, error);
    if (status != ISO_OK)
        assert_non_null(strstr(error->text, path));
    unlink(path);
    iso_chars_deinit(&json);
    iso_chars_deinit(&changed);
    return status;
}

static const struct hostile {
    const char *from, *to;
    iso_status status;
    const char *says;        /* part of the error */
} hostile[] = {
    {"\"version\"", "version", ISO_BAD_JSON, "line 1"},
    {"\"padding\": null", "\"truncation\": null", ISO_BAD_JSON, "duplicate object key"},
    {"\"BPE\"", "\"WordPiece\"", ISO_BAD_TOKENIZER, "model.type: \"BPE\" expected, \"WordPiece\""},
    {"\"type\": \"BPE\"", "\"kind\": 1", ISO_BAD_TOKENIZER, "model.type"},
    {"\"BPE\"", "7", ISO_BAD_TOKENIZER, "an integer found"},
    {"\"model\":", "\"modal\":", ISO_BAD_TOKENIZER, "model.type"},
    {"\"dropout\": null", "\"dropout\": 0.1", ISO_BAD_TOKENIZER, "model.dropout"},
    {"\"fuse_unk\": false", "\"byte_fallback\": true", ISO_BAD_TOKENIZER, "model.byte_fallback"},
    {"\"fuse_unk\": false", "\"ignore_merges\": true", ISO_BAD_TOKENIZER, "model.ignore_merges"},
    {"\"fuse_unk\": false", "\"unk_token\": \"x\"", ISO_BAD_TOKENIZER, "model.unk_token"},
    {"\"truncation\": null", "\"truncation\": {}", ISO_BAD_TOKENIZER, "truncation"},
    {"\"normalizers\": []", "\"normalizers\": [1]", ISO_BAD_TOKENIZER, "1 entries found"},
    {"{\"type\": \"Sequence\", \"normalizers\": []}", "{\"type\": \"NFC\"}", ISO_BAD_TOKENIZER,
     "normalizer.type: \"Sequence\" expected, \"NFC\" found"},
    {"\"decoder\": {\"type\": \"ByteLevel\"}", "\"decoder\": {\"type\": \"Metaspace\"}",
     ISO_BAD_TOKENIZER, "decoder.type: \"ByteLevel\" expected, \"Metaspace\" found"},
    {"\"decoder\"", "\"encoder\"", ISO_BAD_TOKENIZER, "decoder.type"},
    {"\"post_processor\": null", "\"post_processor\": {\"type\": \"TemplateProcessing\"}",
     ISO_BAD_TOKENIZER, "post_processor.type"},
    {"{\"type\": \"Sequence\", \"pretokenizers\"", "{\"type\": \"Bert\", \"pretokenizers\"",
     ISO_BAD_TOKENIZER, "pre_tokenizer.type: \"Sequence\" expected, \"Bert\" found"},
    {"\"pretokenizers\": [", "\"pretokenizers\": [], \"x\": [", ISO_BAD_TOKENIZER,
     "a list of steps"},
    {"{\"type\": \"Split\"", "{\"type\": \"Digits\"", ISO_BAD_TOKENIZER,
     "pre_tokenizer.pretokenizers[0].type: \"Split\" expected, \"Digits\" found"},
    {"\"Isolated\"", "\"Removed\"", ISO_BAD_TOKENIZER, "behavior"},
    {"\"invert\": false", "\"invert\": true", ISO_BAD_TOKENIZER, "invert: false expected"},
    {"{\"Regex\"", "{\"String\"", ISO_BAD_TOKENIZER, "pattern.Regex: a string expected"},
    {"\\\\p{N}{1,3}", "(", ISO_BAD_TOKENIZER, "pattern.Regex: offset"},
    {"\\\\p{N}{1,3}", "", ISO_BAD_TOKENIZER, "the pattern is empty"},
    {"\\\\p{N}{1,3}", "a*", ISO_BAD_TOKENIZER, "can match the empty string"},
    {"\\\\p{N}{1,3}", "\\\\d+", ISO_BAD_TOKENIZER, "escape \\d is not supported"},
    {"\\\\p{N}{1,3}", "a\\\\Kb", ISO_BAD_TOKENIZER, "escape \\K is not supported"},
    {"\\\\p{N}{1,3}", "\\\\p{Han}+", ISO_BAD_TOKENIZER, "escape \\p is not supported"},
    {"\\\\p{N}{1,3}", "a\\\\", ISO_BAD_TOKENIZER, "escape"},
    {"\\\\p{N}{1,3}", "^a", ISO_BAD_TOKENIZER, "'^' is not supported"},
    {"\\\\p{N}{1,3}", "(?i)a", ISO_BAD_TOKENIZER, "'(' is not supported"},
    {"\\\\p{N}{1,3}", "(*UCP)a", ISO_BAD_TOKENIZER, "'(' is not supported"},
    {"\\\\p{N}{1,3}", "[[:alpha:]]", ISO_BAD_TOKENIZER, "'[' is not supported"},
    {"\\\\p{N}{1,3}", "[a", ISO_BAD_TOKENIZER, "pattern.Regex"},
    {"\"add_prefix_space\": false", "\"add_prefix_space\": true", ISO_BAD_TOKENIZER,
     "pretokenizers[1].add_prefix_space"},
    {"\"use_regex\": false", "\"use_regex\": true", ISO_BAD_TOKENIZER, "use_regex: false expected"},
    {"\"vocab\": {", "\"vocab\": [], \"x\": {", ISO_BAD_TOKENIZER, "model.vocab: an object"},
    {"\"merges\": [", "\"merges\": null, \"x\": [", ISO_BAD_TOKENIZER, "model.merges: an array"},
    {"\"he\": 256", "\"he\": 257", ISO_BAD_TOKENIZER, "id 257 is given to \"he\" and \"ll\""},
    {"\"he\": 256", "\"he\": -1", ISO_BAD_TOKENIZER, "0..262 expected, -1 found"},
    {"\"he\": 256", "\"he\": 263", ISO_BAD_TOKENIZER, "0..262 expected, 263 found"},
    {"\"he\": 256", "\"he\": 4294967552", ISO_BAD_TOKENIZER, "4294967552 found"},
    {"\"he\": 256", "\"he\": 256.0", ISO_BAD_TOKENIZER, "an integer expected"},
    {"\"he\": 256", "\"he\": \"256\"", ISO_BAD_TOKENIZER, "an integer expected, a string found"},
    {"\"\\u0041\": 65, ", "", ISO_BAD_TOKENIZER, "byte 0x41 (\"A\") is missing"},
    {"\"h e\", ", "\"h e\", \"h e\", ", ISO_BAD_TOKENIZER,
     "model.merges[1]: the pair is listed twice"},
    {"\"h e\"", "\"h x\"", ISO_BAD_TOKENIZER, "model.merges[0]: \"hx\" expected in model.vocab"},
    {"\"h e\"", "\"hx e\"", ISO_BAD_TOKENIZER, "model.merges[0]: \"hx\" expected in model.vocab"},
    {"\"h e\"", "\"he\"", ISO_BAD_TOKENIZER, "\"left right\" or [left, right] expected"},
    {"\"h e\"", "\" he\"", ISO_BAD_TOKENIZER, "model.merges[0]"},
    {"\"h e\"", "\"h e l\"", ISO_BAD_TOKENIZER, "model.merges[0]"},
    {"\"h e\"", "[\"h\", \"e\", \"l\"]", ISO_BAD_TOKENIZER, "model.merges[0]"},
    {"\"h e\"", "[\"h\", 5]", ISO_BAD_TOKENIZER, "model.merges[0]"},
    {"\"h e\"", "null", ISO_BAD_TOKENIZER, "model.merges[0]"},
    {"\"h e\"", "\"<think> e\"", ISO_BAD_TOKENIZER, "model.merges[0]"},
    {"\"added_tokens\": [", "\"added_tokens\": 1, \"x\": [", ISO_BAD_TOKENIZER,
     "added_tokens: an array expected"},
    {"\"id\": 260", "\"id\": 259", ISO_BAD_TOKENIZER,
     "id 259 is given to \"hello\" and \"<think>\""},
    {"\"id\": 260", "\"id\": 261", ISO_BAD_TOKENIZER, "id 261 is given"},
    {"\"id\": 260", "\"id\": 999999999999", ISO_BAD_TOKENIZER, "added_tokens: id of \"<think>\""},
    {"\"id\": 260", "\"id\": null", ISO_BAD_TOKENIZER, "added_tokens[0]"},
    {"\"</think>\"", "\"<think>\"", ISO_BAD_TOKENIZER, "\"<think>\" has id 260 already, 261 found"},
    {"\"</think>\"", "\"hello\"", ISO_BAD_TOKENIZER, "\"hello\" has id 259 already, 261 found"},
    {"\"</think>\"", "\"\"", ISO_BAD_TOKENIZER, "added_tokens[1]"},
    {"\"lstrip\": false", "\"lstrip\": true", ISO_BAD_TOKENIZER, "added_tokens[0].lstrip: false"},
    {"\"normalized\": true", "\"normalised\": true", ISO_BAD_TOKENIZER, "added_tokens[0]"},
    {"\"ll\": 257", "\"ll l\": 257", ISO_BAD_TOKENIZER, "model.merges[1]"},
};

static void open_refuses_hostile_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(hostile); i++) {
        iso_tokenizer *tokenizer = NULL;
        iso_error error = {0};
        iso_alloc_stats before, after;
        iso_status status;

        iso_alloc_get_stats(&before);
        status = open_changed(hostile[i].from, hostile[i].to, &tokenizer, &error);
        if (status != hostile[i].status || strstr(error.text, hostile[i].says) == NULL)
            fail_msg("%s -> %s: %s: %s", hostile[i].from, hostile[i].to, iso_status_name(status),
                     error.text);
        assert_null(tokenizer);
        iso_alloc_get_stats(&after);
        assert_int_equal(before.bytes_now, after.bytes_now);
    }
    print_message("%zu hostile files\n", ISO_COUNT_OF(hostile));
}

static void open_accepts_equal_spellings(void **state)
{
    static const struct {
        const char *from, *to;
    } same[] = {
        {"\"h e\", \"l l\"", "[\"h\", \"e\"], [\"l\", \"l\"]"},
        {"{\"type\": \"Sequence\", \"normalizers\": []}", "null"},
        {"\"dropout\": null, ", ""},
        {"\"post_processor\": null", "\"post_processor\": {\"type\": \"ByteLevel\"}"},
    };

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(same); i++) {
        iso_tokenizer *tokenizer = NULL, *before = small;
        iso_error error;

        assert_ok(open_changed(same[i].from, same[i].to, &tokenizer, &error), error);
        small = tokenizer;
        expect_small_ids("hello<think>", 1, (int32_t[]){259, 260}, 2);
        small = before;
        iso_tokenizer_close(&tokenizer);
    }
}

/* A file of 64 MiB and a byte is refused before it is parsed; a cut file at any length. */
static void open_refuses_sizes(void **state)
{
    iso_tokenizer *tokenizer = NULL;
    iso_chars json = {0};
    iso_error error;
    char path[32];

    (void)state;
    small_json(&json);
    for (size_t bytes = 0; bytes + 2 < json.used; bytes += 61) {
        write_file(json.data, bytes, path);
        assert_int_not_equal(iso_tokenizer_open(path, &tokenizer, &error), ISO_OK);
        unlink(path);
    }
    write_file(json.data, json.used, path);
    assert_int_equal(truncate(path, ((off_t)64 << 20) + 1), 0);
    assert_int_equal(iso_tokenizer_open(path, &tokenizer, &error), ISO_LIMIT);
    unlink(path);
    iso_chars_deinit(&json);
}

/* A pattern that backtracks exponentially ends in an error, not in a hang. */
static void encode_limits_backtracking(void **state)
{
    iso_tokenizer *tokenizer = NULL;
    iso_chars text = {0};
    int32_t *ids = NULL;
    size_t count = 0;
    iso_error error;

    (void)state;
    assert_ok(open_changed("\\\\p{N}{1,3}", "(a|aa|aaa)+\\\\p{N}", &tokenizer, &error), error);
    for (int i = 0; i < 100; i++)
        iso_chars_add_string(&text, "a");
    assert_int_equal(
        encode_text(tokenizer, text.data, text.used, 0, &ids, &count, &error), ISO_LIMIT);
    assert_null(ids);
    iso_chars_deinit(&text);
    iso_tokenizer_close(&tokenizer);
}

/* ---- memory ---- */

static iso_status open_and_use(void *context)
{
    static const char text[] = "hello <think> 123\xff \U0001fae9 "
                               "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll";
    iso_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    char *back = NULL;
    size_t count = 0, bytes = 0;
    iso_status status = iso_tokenizer_open(context, &tokenizer, NULL);

    if (status == ISO_OK)
        status = encode_text(tokenizer, text, sizeof text - 1, ISO_ENCODE_CONTROL, &ids,
                                      &count, NULL);
    if (status == ISO_OK)
        status = iso_tokenizer_decode(tokenizer, ids, count, &back, &bytes, NULL);
    iso_free(ids);
    iso_free(back);
    iso_tokenizer_close(&tokenizer);
    return status;
}

static void all_survives_failing_allocations(void **state)
{
    iso_chars json = {0};
    char path[32];

    (void)state;
    small_json(&json);
    write_file(json.data, json.used, path);
    iso_chars_deinit(&json);
    expect_survives_oom(open_and_use, path);
    unlink(path);
}

static void encode_speed_is_printed(void **state)
{
    static const char unit[] = "int f(const char *s)\n{\n    return s[0] == '\\0' ? 0 : 1;\n}\n"
                               "The quick brown fox jumps over 12345 lazy dogs, and then some. "
                               "天地玄黄，宇宙洪荒。Съешь ещё этих мягких булок\n";
    iso_chars text = {0};
    int32_t *ids = NULL;
    size_t count = 0;
    iso_error error;
    double begin;

    (void)state;
    while (text.used < 4000000)
        iso_chars_add_string(&text, unit);
    begin = now();
    assert_ok(encode_text(released, text.data, text.used, 0, &ids, &count, &error),
              error);
    print_message("encode: %.1f MB/s\n", (double)text.used / (now() - begin) / 1e6);
    iso_free(ids);
    iso_chars_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_reads_released_file),
        cmocka_unit_test(encode_equals_goldens),
        cmocka_unit_test(decode_equals_goldens),
        cmocka_unit_test(encode_equals_sweep_of_all_code_points),
        cmocka_unit_test(round_trip_keeps_random_text),
        cmocka_unit_test(encode_repairs_random_bytes),
        cmocka_unit_test(encode_is_fast_on_long_pieces),
        cmocka_unit_test(encode_is_shared_by_threads),
        cmocka_unit_test(encode_merges_by_rank),
        cmocka_unit_test(alphabet_is_a_bijection),
        cmocka_unit_test(functions_refuse_bad_arguments),
        cmocka_unit_test(open_takes_a_directory),
        cmocka_unit_test(open_refuses_hostile_files),
        cmocka_unit_test(open_accepts_equal_spellings),
        cmocka_unit_test(open_refuses_sizes),
        cmocka_unit_test(encode_limits_backtracking),
        cmocka_unit_test(all_survives_failing_allocations),
        cmocka_unit_test(encode_speed_is_printed),
    };

    return cmocka_run_group_tests_name("tokenizer", tests, group_open, group_close);
}
