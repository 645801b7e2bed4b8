#include "text/token_map.h"

#include "core/alloc.h"
#include "text/alphabet.h"
#include "text/string_map.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <string.h>

/* Stands for a key of exactly one space while both ends are stripped. */
#define SENTINEL 0xe000u

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Appends the text with each run of blanks replaced by one space. */
static void add_joined_blanks(const iso_chars *text, iso_chars *out)
{
    for (size_t i = 0; i < text->used; i++) {
        if (!is_blank(text->data[i]))
            iso_chars_add(out, &text->data[i], 1);
        else if (i == 0 || !is_blank(text->data[i - 1]))
            iso_chars_add(out, " ", 1);
    }
}

/* Appends the text without white space at its ends; a sentinel becomes a space again. */
static void add_stripped(const iso_chars *text, iso_chars *out)
{
    size_t first = SIZE_MAX, last = 0, taken;  /* what is not white is in [first, last) */
    uint32_t code = 0;

    for (size_t i = 0; i < text->used; i += taken) {
        (void)iso_utf8_next(text->data + i, text->used - i, &code, &taken);
        if (iso_unicode_is_white(code))
            continue;
        if (first == SIZE_MAX)
            first = i;
        last = i + taken;
    }
    for (size_t i = first; i < last; i += taken) {
        (void)iso_utf8_next(text->data + i, text->used - i, &code, &taken);
        if (code == SENTINEL)
            iso_chars_add(out, " ", 1);
        else
            iso_chars_add(out, text->data + i, taken);
    }
}

void iso_token_map_normalise(const char *text, size_t bytes, iso_chars *out)
{
    const size_t before = out->used;
    iso_chars folded = {0}, joined = {0};

    iso_unicode_fold(text, bytes, &folded);
    add_joined_blanks(&folded, &joined);
    if (joined.used == 1 && joined.data[0] == ' ') {
        joined.used = 0;
        iso_utf8_add(&joined, SENTINEL);
    }
    add_stripped(&joined, out);
    if (out->used == before)
        iso_chars_add(out, text, bytes);
    out->failed = out->failed || folded.failed || joined.failed;
    iso_chars_deinit(&folded);
    iso_chars_deinit(&joined);
}

/* True if the text decodes to something with U+FFFD: it is ill-formed, or holds that character. */
static bool is_fragment(const char *text, size_t bytes)
{
    size_t taken;
    uint32_t code = 0;

    for (size_t i = 0; i < bytes; i += taken)
        if (iso_utf8_next(text + i, bytes - i, &code, &taken) != ISO_UTF8_CHAR || code == 0xfffd)
            return true;
    return false;
}

void iso_token_map_key(const iso_tokenizer *tokenizer, int32_t id, iso_chars *out)
{
    size_t bytes;
    const char *text = iso_tokenizer_bytes(tokenizer, id, &bytes);

    if (!is_fragment(text, bytes)) {
        iso_token_map_normalise(text, bytes, out);
    } else if (tokenizer->is_added[id] != 0) {
        iso_chars_add(out, text, bytes);
    } else {
        for (size_t i = 0; i < bytes; i++)
            iso_utf8_add(out, iso_alphabet_code((uint8_t)text[i]));
    }
}

/* Key i is keys[ends[i - 1] .. ends[i]). Keys are mapped after all of them are made: the block
 * moves while it grows. */
static void number_keys(const iso_chars *keys, const size_t *ends, size_t count,
                        iso_string_map *seen, int32_t *map)
{
    size_t begin = 0;

    for (size_t id = 0; id < count; id++) {
        map[id] = (int32_t)iso_string_map_insert(seen, keys->data + begin, ends[id] - begin,
                                                 (uint32_t)seen->used);
        begin = ends[id];
    }
}

iso_status iso_tokenizer_token_map(const iso_tokenizer *tokenizer, int32_t *map, size_t count,
                                   uint32_t *key_count, iso_error *error)
{
    iso_string_map seen = {0};
    iso_chars keys = {0};
    size_t *ends = NULL;
    iso_status status = ISO_OK;

    if (tokenizer == NULL || map == NULL || key_count == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_tokenizer_token_map: NULL argument");
    if (count != tokenizer->vocab_size)
        return iso_fail(error, ISO_BAD_ARGUMENT, "token map: %zu ids expected, %zu found",
                        tokenizer->vocab_size, count);
    ends = iso_alloc_zero(count, sizeof *ends, "token_map");
    if (ends == NULL || !iso_string_map_init(&seen, count)) {
        status = iso_fail(error, ISO_NO_MEMORY, "token map: out of memory");
        goto done;
    }
    for (size_t id = 0; id < count; id++) {
        iso_token_map_key(tokenizer, (int32_t)id, &keys);
        ends[id] = keys.used;
    }
    if (keys.failed) {
        status = iso_fail(error, ISO_NO_MEMORY, "token map: out of memory");
        goto done;
    }
    number_keys(&keys, ends, count, &seen, map);
    *key_count = (uint32_t)seen.used;
done:
    iso_release(ends, count * sizeof *ends);
    iso_string_map_deinit(&seen);
    iso_chars_deinit(&keys);
    return status;
}
