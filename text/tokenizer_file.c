#include "text/tokenizer.h"

#include "core/alloc.h"

#include <stdio.h>
#include <string.h>

#define FILE_NAME "tokenizer.json"

/* A member that must be absent, null, false, or "": settings that would change ids. */
static iso_status expect_unset(const iso_json *object, const char *where, const char *key,
                               iso_error *error)
{
    const iso_json *value = iso_json_get(object, key);
    const iso_json_type type = iso_json_type_of(value);
    bool flag = false;
    size_t bytes = 0;

    if (value == NULL || type == ISO_JSON_NULL)
        return ISO_OK;
    if (iso_json_bool(value, &flag) && !flag)
        return ISO_OK;
    if (iso_json_string(value, &bytes) != NULL && bytes == 0)
        return ISO_OK;
    return iso_fail(error, ISO_BAD_TOKENIZER, "%s%s: null or false expected, %s found", where, key,
                    flag ? "true" : iso_json_type_name(type));
}

static iso_status expect_bool(const iso_json *object, const char *where, const char *key,
                              bool expected, iso_error *error)
{
    bool found = !expected;

    if (iso_json_bool(iso_json_get(object, key), &found) && found == expected)
        return ISO_OK;
    return iso_fail(error, ISO_BAD_TOKENIZER, "%s.%s: %s expected, %s found", where, key,
                    expected ? "true" : "false", expected ? "false or nothing" : "something else");
}

static iso_status expect_string(const iso_json *object, const char *where, const char *key,
                                const char *expected, iso_error *error)
{
    const iso_json *value = iso_json_get(object, key);
    const char *found = iso_json_string(value, NULL);

    if (found == NULL)
        return iso_fail(error, ISO_BAD_TOKENIZER, "%s.%s: \"%s\" expected, %s found", where, key,
                        expected,
                        value == NULL ? "nothing" : iso_json_type_name(iso_json_type_of(value)));
    if (strcmp(found, expected) != 0)
        return iso_fail(error, ISO_BAD_TOKENIZER, "%s.%s: \"%s\" expected, \"%s\" found", where,
                        key, expected, found);
    return ISO_OK;
}

static iso_status check_model(const iso_json *model, iso_error *error)
{
    static const char *const unset[] = {"dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges"};

    ISO_TRY(expect_string(model, "model", "type", "BPE", error));
    for (size_t i = 0; i < ISO_COUNT_OF(unset); i++)
        ISO_TRY(expect_unset(model, "model.", unset[i], error));
    return ISO_OK;
}

/* null, or a Sequence of nothing. */
static iso_status check_normalizer(const iso_json *normalizer, iso_error *error)
{
    const size_t count = iso_json_size(iso_json_get(normalizer, "normalizers"));

    if (normalizer == NULL || iso_json_type_of(normalizer) == ISO_JSON_NULL)
        return ISO_OK;
    ISO_TRY(expect_string(normalizer, "normalizer", "type", "Sequence", error));
    if (count != 0)
        return iso_fail(error, ISO_BAD_TOKENIZER,
                        "normalizer.normalizers: nothing expected, %zu entries found", count);
    return ISO_OK;
}

/* The post-processor may only be one that leaves ids alone. */
static iso_status check_post_processor(const iso_json *post, iso_error *error)
{
    if (post == NULL || iso_json_type_of(post) == ISO_JSON_NULL)
        return ISO_OK;
    return expect_string(post, "post_processor", "type", "ByteLevel", error);
}

static iso_status read_split(iso_tokenizer *tokenizer, const iso_json *split, const char *where,
                             iso_error *error)
{
    const iso_json *pattern = iso_json_get(split, "pattern");
    size_t bytes = 0;
    const char *regex = iso_json_string(iso_json_get(pattern, "Regex"), &bytes);
    iso_status status;

    ISO_TRY(expect_string(split, where, "type", "Split", error));
    ISO_TRY(expect_string(split, where, "behavior", "Isolated", error));
    ISO_TRY(expect_bool(split, where, "invert", false, error));
    if (regex == NULL)
        return iso_fail(error, ISO_BAD_TOKENIZER, "%s.pattern.Regex: a string expected", where);
    status = iso_splitter_add(tokenizer->splitter, regex, bytes, error);
    return status == ISO_OK ? ISO_OK : iso_fail_in(error, status, "%s.pattern.Regex", where);
}

/* A Sequence: any number of Split, then one ByteLevel that does nothing but spell bytes. */
static iso_status read_pre_tokenizer(iso_tokenizer *tokenizer, const iso_json *pre,
                                     iso_error *error)
{
    const iso_json *steps = iso_json_get(pre, "pretokenizers");
    const size_t count = iso_json_size(steps);
    char where[64];

    ISO_TRY(expect_string(pre, "pre_tokenizer", "type", "Sequence", error));
    if (iso_json_type_of(steps) != ISO_JSON_ARRAY || count == 0)
        return iso_fail(error, ISO_BAD_TOKENIZER,
                        "pre_tokenizer.pretokenizers: a list of steps expected");
    ISO_TRY(iso_splitter_create(&tokenizer->splitter, error));
    for (size_t i = 0; i < count; i++) {
        const iso_json *step = iso_json_at(steps, i);

        snprintf(where, sizeof where, "pre_tokenizer.pretokenizers[%zu]", i);
        if (i + 1 < count) {
            ISO_TRY(read_split(tokenizer, step, where, error));
            continue;
        }
        ISO_TRY(expect_string(step, where, "type", "ByteLevel", error));
        ISO_TRY(expect_bool(step, where, "add_prefix_space", false, error));
        ISO_TRY(expect_bool(step, where, "use_regex", false, error));
    }
    return ISO_OK;
}

static iso_status read_root(iso_tokenizer *tokenizer, const iso_json *root, iso_error *error)
{
    if (iso_json_type_of(root) != ISO_JSON_OBJECT)
        return iso_fail(error, ISO_BAD_TOKENIZER, "an object expected, %s found",
                        iso_json_type_name(iso_json_type_of(root)));
    ISO_TRY(check_model(iso_json_get(root, "model"), error));
    ISO_TRY(check_normalizer(iso_json_get(root, "normalizer"), error));
    ISO_TRY(expect_string(iso_json_get(root, "decoder"), "decoder", "type", "ByteLevel", error));
    ISO_TRY(check_post_processor(iso_json_get(root, "post_processor"), error));
    ISO_TRY(expect_unset(root, "", "truncation", error));
    ISO_TRY(expect_unset(root, "", "padding", error));
    ISO_TRY(read_pre_tokenizer(tokenizer, iso_json_get(root, "pre_tokenizer"), error));
    return iso_tokenizer_read_vocabulary(tokenizer, root, error);
}

static iso_status read_text(iso_tokenizer *tokenizer, const char *text, size_t bytes,
                            const char *what, iso_error *error)
{
    iso_json_doc *doc = NULL;
    iso_status status;

    ISO_TRY(iso_json_parse(text, bytes, what, &doc, error));
    status = read_root(tokenizer, iso_json_root(doc), error);
    if (status != ISO_OK)
        status = iso_fail_in(error, status, "%s", what);
    iso_json_free(&doc);
    return status;
}

/* "path/tokenizer.json" if there is such a file, else "path". */
static void choose_path(char *joined, size_t path_bytes)
{
    FILE *file;

    joined[path_bytes] = '/';
    memcpy(joined + path_bytes + 1, FILE_NAME, sizeof FILE_NAME);
    file = fopen(joined, "rb");
    if (file == NULL)
        joined[path_bytes] = '\0';
    else
        fclose(file);
}

iso_status iso_tokenizer_read(iso_tokenizer *tokenizer, const char *path, iso_error *error)
{
    const size_t path_bytes = strlen(path);
    const size_t joined_bytes = path_bytes + 1 + sizeof FILE_NAME;
    char *joined = iso_alloc(joined_bytes, 1, "tokenizer");
    char *text = NULL;
    size_t bytes = 0;
    iso_status status;

    if (joined == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "tokenizer: out of memory");
    memcpy(joined, path, path_bytes);
    choose_path(joined, path_bytes);
    status = iso_json_read_text(joined, ISO_TOKENIZER_BYTES_MAX, &text, &bytes, error);
    if (status == ISO_OK)
        status = read_text(tokenizer, text, bytes, joined, error);
    iso_free(text);
    iso_release(joined, joined_bytes);
    return status;
}

iso_status iso_tokenizer_read_store(iso_tokenizer *tokenizer, const iso_store *store,
                                    iso_error *error)
{
    char what[4096 + sizeof FILE_NAME];
    char *text = NULL;
    size_t bytes = 0;
    iso_status status;

    snprintf(what, sizeof what, "%.4094s/" FILE_NAME, iso_store_path(store));
    ISO_TRY(iso_store_text(store, FILE_NAME, ISO_TOKENIZER_BYTES_MAX, &text, &bytes, error));
    status = read_text(tokenizer, text, bytes, what, error);
    iso_free(text);
    return status;
}
