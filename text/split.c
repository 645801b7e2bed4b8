#include "text/split.h"

#include "core/alloc.h"
#include "text/growing.h"
#include "text/unicode_pin.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

/* Unicode White_Space, as the inside of a class. */
#define WHITE_SPACE                                                                               \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"   \
    "\\x{205f}\\x{3000}"

/* What unicode_pin assumes of PCRE2's data. */
#define UNICODE_MIN 14

struct iso_splitter {
    pcre2_general_context *general;
    size_t count;
    pcre2_code *code[ISO_SPLIT_PATTERNS_MAX];
};

/* PCRE2 frees without a size, so that each block carries its own. */
#define BLOCK_HEADER 16

static void *block_alloc(size_t bytes, void *context)
{
    unsigned char *block =
        bytes > SIZE_MAX / 4 ? NULL : iso_alloc(bytes + BLOCK_HEADER, 16, "split");

    (void)context;
    if (block == NULL)
        return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return block + BLOCK_HEADER;
}

static void block_free(void *memory, void *context)
{
    unsigned char *block = memory;
    size_t bytes;

    (void)context;
    if (block == NULL)
        return;
    block -= BLOCK_HEADER;
    memcpy(&bytes, block, sizeof bytes);
    iso_release(block, bytes + BLOCK_HEADER);
}

iso_status iso_splitter_create(iso_splitter **splitter, iso_error *error)
{
    char version[32] = "";   /* "14.0.0"; PCRE2 asks for 24 bytes */
    iso_splitter *made;

    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    if (strtol(version, NULL, 10) < UNICODE_MIN)
        return iso_fail(error, ISO_UNSUPPORTED, "PCRE2 with Unicode %d or newer expected, %s found",
                        UNICODE_MIN, version);
    made = iso_alloc_zero(1, sizeof *made, "split");
    if (made != NULL)
        made->general = pcre2_general_context_create(block_alloc, block_free, NULL);
    if (made == NULL || made->general == NULL) {
        iso_splitter_destroy(&made);
        return iso_fail(error, ISO_NO_MEMORY, "splitter: out of memory");
    }
    *splitter = made;
    return ISO_OK;
}

void iso_splitter_destroy(iso_splitter **splitter)
{
    if (*splitter == NULL)
        return;
    for (size_t i = 0; i < (*splitter)->count; i++)
        pcre2_code_free((*splitter)->code[i]);
    pcre2_general_context_free((*splitter)->general);
    iso_release(*splitter, sizeof **splitter);
    *splitter = NULL;
}

/* True for {L}, {M}, {N}, {P} and {S}: the categories that unicode_pin knows. */
static bool is_pinned_property(const char *text, size_t bytes)
{
    return bytes >= 3 && text[0] == '{' && text[1] != '\0' && strchr("LMNPS", text[1]) != NULL &&
           text[2] == '}';
}

/* Appends the escape that starts with a backslash at text[0]; its braces, if any, follow as plain
 * characters. False if the dialects disagree on it or its meaning here is not known. */
static bool translate_escape(const char *text, size_t bytes, bool in_class, iso_chars *out)
{
    const char letter = bytes > 1 ? text[1] : '\0';

    if (letter == 's') {
        iso_chars_add_string(out, in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
        return true;
    }
    if (letter == 'S' && !in_class) {
        iso_chars_add_string(out, "[^" WHITE_SPACE "]");
        return true;
    }
    if (letter == 'p' || letter == 'P') {
        if (!is_pinned_property(text + 2, bytes - 2))
            return false;
    } else if (letter == '\0' || strchr("rnt!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", letter) == NULL) {
        return false;
    }
    iso_chars_add(out, text, 2);
    return true;
}

/* True if both dialects read this character, which is no part of an escape, alike: no nested or
 * intersected classes, no anchors, no dot, no groups but (...), (?:...), (?=...) and (?!...). */
static bool is_common(const char *pattern, size_t bytes, size_t at, bool in_class)
{
    const char next = at + 1 < bytes ? pattern[at + 1] : '\0';
    const char after = at + 2 < bytes ? pattern[at + 2] : '\0';

    if (in_class)
        return pattern[at] != '[' && !(pattern[at] == '&' && next == '&');
    if (pattern[at] == '(' && next == '?')
        return after == ':' || after == '=' || after == '!';
    if (pattern[at] == '(')
        return next != '*';
    return pattern[at] != '^' && pattern[at] != '$' && pattern[at] != '.';
}

/* Oniguruma's pattern -> PCRE2's. */
static iso_status translate(const char *pattern, size_t bytes, iso_chars *out, iso_error *error)
{
    bool in_class = false;

    for (size_t i = 0; i < bytes; i++) {
        const char next = i + 1 < bytes ? pattern[i + 1] : '\0';

        if (pattern[i] == '\\') {
            if (!translate_escape(pattern + i, bytes - i, in_class, out))
                return iso_fail(error, ISO_BAD_TOKENIZER,
                                "offset %zu: escape \\%c is not supported", i,
                                next >= ' ' && next < 0x7f ? next : '?');
            i++;
            continue;
        }
        if (!is_common(pattern, bytes, i, in_class))
            return iso_fail(error, ISO_BAD_TOKENIZER, "offset %zu: '%c' is not supported here",
                            i, pattern[i]);
        iso_chars_add(out, &pattern[i], 1);
        if (!in_class && pattern[i] == '[') {
            in_class = true;
            if (next == '^') {
                iso_chars_add(out, &next, 1);
                i++;
            }
        } else if (in_class && pattern[i] == ']') {
            in_class = false;
        }
    }
    if (out->failed)
        return iso_fail(error, ISO_NO_MEMORY, "pattern: out of memory");
    return ISO_OK;
}

static iso_status compile(const iso_splitter *splitter, const iso_chars *pattern,
                          pcre2_code **code, iso_error *error)
{
    pcre2_compile_context *context = pcre2_compile_context_create(splitter->general);
    pcre2_code *made = NULL;
    uint32_t matches_empty = 1;
    int why = 0;
    PCRE2_SIZE where = 0;
    iso_status status = ISO_OK;

    if (context == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "pattern: out of memory");
    made = pcre2_compile((PCRE2_SPTR)pattern->data, pattern->used,
                         PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE, &why,
                         &where, context);
    if (made == NULL) {
        PCRE2_UCHAR text[128] = "unknown error";

        pcre2_get_error_message(why, text, sizeof text);
        status = why == PCRE2_ERROR_HEAP_FAILED
                     ? iso_fail(error, ISO_NO_MEMORY, "pattern: out of memory")
                     : iso_fail(error, ISO_BAD_TOKENIZER, "offset %zu (translated): %s", where,
                                (const char *)text);
        goto done;
    }
    pcre2_pattern_info(made, PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty != 0) {
        pcre2_code_free(made);
        status = iso_fail(error, ISO_BAD_TOKENIZER, "the pattern can match the empty string");
        goto done;
    }
    /* A refusal only costs speed: the interpreter then matches. */
    (void)pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
    *code = made;
done:
    pcre2_compile_context_free(context);
    return status;
}

iso_status iso_splitter_add(iso_splitter *splitter, const char *pattern, size_t bytes,
                            iso_error *error)
{
    iso_chars translated = {0};
    iso_status status;

    if (splitter->count == ISO_SPLIT_PATTERNS_MAX)
        return iso_fail(error, ISO_LIMIT, "at most %d patterns expected",
                        ISO_SPLIT_PATTERNS_MAX);
    if (bytes == 0)
        return iso_fail(error, ISO_BAD_TOKENIZER, "the pattern is empty");
    status = translate(pattern, bytes, &translated, error);
    if (status == ISO_OK)
        status = compile(splitter, &translated, &splitter->code[splitter->count], error);
    if (status == ISO_OK)
        splitter->count++;
    iso_chars_deinit(&translated);
    return status;
}

/* Patterns run over `pinned`; pieces are lent from `text`, at the same offsets. */
typedef struct splitting {
    const iso_splitter *splitter;
    const char *text, *pinned;
    pcre2_match_data *data;
    pcre2_match_context *context;
    iso_piece_fn *fn;
    void *fn_context;
    iso_error *error;
} splitting;

/* A match in the text it was looked for; begin == end when there is none. */
typedef struct match {
    size_t begin, end;
} match;

/* The next match in text[from..bytes). */
static iso_status find(const splitting *run, size_t level, const char *text, size_t bytes,
                       size_t from, match *out)
{
    const pcre2_code *code = run->splitter->code[level];
    int found = pcre2_match(code, (PCRE2_SPTR)text, bytes, from, PCRE2_NO_UTF_CHECK, run->data,
                            run->context);

    /* JIT code has a fixed stack, the interpreter has not; both give the same matches. */
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(code, (PCRE2_SPTR)text, bytes, from,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, run->data, run->context);
    if (found == PCRE2_ERROR_NOMATCH) {
        *out = (match){bytes, bytes};
        return ISO_OK;
    }
    if (found == PCRE2_ERROR_NOMEMORY || found == PCRE2_ERROR_HEAPLIMIT)
        return iso_fail(run->error, ISO_NO_MEMORY, "splitting text: out of memory");
    if (found < 0)
        return iso_fail(run->error, ISO_LIMIT, "splitting text: pattern %zu backtracks too much",
                        level);
    *out = (match){pcre2_get_ovector_pointer(run->data)[0],
                   pcre2_get_ovector_pointer(run->data)[1]};
    /* The pattern was checked for empty matches; an end before the start takes \K, an escape that
     * is refused. */
    ISO_ASSERT(out->begin >= from && out->begin < out->end && out->end <= bytes);
    return ISO_OK;
}

/* Depth of the recursion: the number of patterns. */
static iso_status split_level(const splitting *run, size_t level, const char *text, size_t bytes)
{
    match found = {0, 0};
    size_t at = 0;

    if (level == run->splitter->count)
        return run->fn(run->fn_context, run->text + (text - run->pinned), bytes);
    while (at < bytes) {
        ISO_TRY(find(run, level, text, bytes, at, &found));
        if (found.begin > at)
            ISO_TRY(split_level(run, level + 1, text + at, found.begin - at));
        if (found.end > found.begin)
            ISO_TRY(split_level(run, level + 1, text + found.begin, found.end - found.begin));
        at = found.end;
    }
    return ISO_OK;
}

iso_status iso_splitter_run(const iso_splitter *splitter, const char *text, size_t bytes,
                            iso_piece_fn *fn, void *context, iso_error *error)
{
    /* A run of white space is scanned a few times, so that the limit grows with the text; a
     * pattern that backtracks exponentially meets it soon. */
    const uint64_t limit = 1000000u + 16 * (uint64_t)bytes;
    splitting run = {
        .splitter = splitter, .text = text, .fn = fn, .fn_context = context, .error = error};
    iso_chars pinned = {0};
    iso_status status;

    run.pinned = iso_unicode_pin(text, bytes, &pinned) ? pinned.data : text;
    run.data = pcre2_match_data_create(1, splitter->general);
    run.context = pcre2_match_context_create(splitter->general);
    if (run.data == NULL || run.context == NULL || pinned.failed) {
        status = iso_fail(error, ISO_NO_MEMORY, "splitting text: out of memory");
    } else {
        pcre2_set_match_limit(run.context, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
        status = split_level(&run, 0, run.pinned, bytes);
    }
    pcre2_match_data_free(run.data);
    pcre2_match_context_free(run.context);
    iso_chars_deinit(&pinned);
    return status;
}
