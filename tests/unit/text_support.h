/* text_support: what the tests of text/ share: goldens, the released vocabulary, a small one. */
#ifndef ISO_TESTS_TEXT_SUPPORT_H
#define ISO_TESTS_TEXT_SUPPORT_H

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hash.h"
#include "core/json.h"
#include "text/growing.h"

/* Encoding and rendering into single variables, as the tests want them; each may be NULL. */
static inline iso_status encode_text(const iso_tokenizer *tokenizer, const char *text,
                                     size_t bytes, uint32_t flags, int32_t **ids, size_t *count,
                                     iso_error *error)
{
    iso_token_list tokens = {NULL, 0};
    const iso_status status =
        iso_tokenizer_encode(tokenizer, text, bytes, flags, ids != NULL ? &tokens : NULL, error);

    if (status == ISO_OK) {
        *ids = tokens.ids;
        *count = tokens.count;
    }
    return status;
}

static inline iso_status render_chat(const iso_tokenizer *tokenizer, const char *json,
                                     size_t bytes, const iso_chat_options *options, char **text,
                                     int32_t **ids, size_t *count, iso_error *error)
{
    iso_chat_prompt prompt = {0};
    const iso_status status =
        iso_chat_render(ids != NULL ? tokenizer : NULL, json, bytes, options, &prompt, error);

    if (status != ISO_OK)
        return status;
    if (text != NULL)
        *text = prompt.text;
    else
        iso_free(prompt.text);
    if (ids != NULL) {
        *ids = prompt.tokens.ids;
        *count = prompt.tokens.count;
    }
    return status;
}

#define GOLDEN(name) ISO_SOURCE_DIR "/tests/golden/text/" name

static inline iso_json_doc *golden_open(const char *path)
{
    iso_json_doc *doc = NULL;
    iso_error error;

    assert_ok(iso_json_read(path, (size_t)64 << 20, &doc, &error), error);
    return doc;
}

/* The decompressed tokenizer.json in a fresh temporary file; the caller unlinks it. */
static inline void released_file(char path[32])
{
    char command[512], block[1 << 14];
    FILE *pipe, *out;
    size_t got;
    int fd;

    strcpy(path, "/tmp/iso_text_XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    out = fdopen(fd, "wb");
    snprintf(command, sizeof command, "xz -dc '%s'", GOLDEN("tokenizer.json.xz"));
    pipe = popen(command, "r");
    assert_non_null(pipe);
    while ((got = fread(block, 1, sizeof block, pipe)) > 0)
        assert_int_equal(fwrite(block, 1, got, out), got);
    assert_int_equal(fclose(out), 0);
    if (pclose(pipe) != 0)
        fail_msg("xz could not read tokenizer.json.xz");
}

static inline iso_tokenizer *released_open(void)
{
    iso_tokenizer *tokenizer = NULL;
    iso_error error;
    char path[32];

    released_file(path);
    assert_ok(iso_tokenizer_open(path, &tokenizer, &error), error);
    unlink(path);
    return tokenizer;
}

/* Writes text to a fresh temporary file. */
static inline void write_file(const char *text, size_t bytes, char path[32])
{
    FILE *out;
    int fd;

    strcpy(path, "/tmp/iso_text_XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    out = fdopen(fd, "wb");
    assert_int_equal(fwrite(text, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
}

/* A tokenizer.json with the 256 bytes (ids 0..255), the merges "h e", "l l", "he ll", "hell o"
 * (ids 256..259), and the added tokens <think>, </think>, <｜User｜> (ids 260..262). */
static inline void small_json(iso_chars *out)
{
    static const char head[] =
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n"
        "\"added_tokens\": [\n"
        "{\"id\": 260, \"content\": \"<think>\", \"single_word\": false, \"lstrip\": false,"
        " \"rstrip\": false, \"normalized\": true, \"special\": false},\n"
        "{\"id\": 261, \"content\": \"</think>\", \"normalized\": true, \"special\": false},\n"
        "{\"id\": 262, \"content\": \"<｜User｜>\", \"normalized\": false, \"special\": true}],\n"
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": []},\n"
        "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\p{N}{1,3}\"},"
        " \"behavior\": \"Isolated\", \"invert\": false},\n"
        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true,"
        " \"use_regex\": false}]},\n"
        "\"post_processor\": null,\n"
        "\"decoder\": {\"type\": \"ByteLevel\"},\n"
        "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"fuse_unk\": false,\n"
        "\"merges\": [\"h e\", \"l l\", \"he ll\", \"hell o\"],\n\"vocab\": {";
    static const char tail[] =
        "\"he\": 256, \"ll\": 257, \"hell\": 258, \"hello\": 259}}}\n";
    int next = 0;

    iso_chars_add_string(out, head);
    for (int byte = 0; byte < 256; byte++) {
        char entry[32];
        const int keeps = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);

        snprintf(entry, sizeof entry, "\"\\u%04x\": %d, ",
                 (unsigned)(keeps ? byte : 256 + next), byte);
        next += !keeps;
        iso_chars_add_string(out, entry);
    }
    iso_chars_add_string(out, tail);
}

static inline iso_tokenizer *small_open(void)
{
    iso_tokenizer *tokenizer = NULL;
    iso_chars json = {0};
    iso_error error;
    char path[32];

    small_json(&json);
    write_file(json.data, json.used, path);
    iso_chars_deinit(&json);
    assert_ok(iso_tokenizer_open(path, &tokenizer, &error), error);
    unlink(path);
    return tokenizer;
}

/* Runs `body` with the 1st, 2nd, ... allocation failing, as often as it allocates. Each run ends
 * in ISO_OK or ISO_NO_MEMORY and leaves nothing behind. */
static inline void expect_survives_oom(iso_status (*body)(void *), void *context)
{
    iso_alloc_stats before, after;
    uint64_t count;

    iso_alloc_get_stats(&before);
    assert_int_equal(body(context), ISO_OK);
    iso_alloc_get_stats(&after);
    assert_int_equal(before.bytes_now, after.bytes_now);
    /* Public memory is not counted: some more runs, in which nothing fails, do no harm. */
    count = after.count_total - before.count_total + 8;
    for (uint64_t n = 1; n <= count; n++) {
        iso_status status;

        iso_alloc_fail_at(n);
        status = body(context);
        iso_alloc_fail_at(0);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
        iso_alloc_get_stats(&after);
        assert_int_equal(before.bytes_now, after.bytes_now);
        assert_int_equal(before.count_now, after.count_now);
    }
}

static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
