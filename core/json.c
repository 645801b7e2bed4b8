#include "core/json.h"

#include "core/alloc.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* A document is jansson's root; values are jansson's values. The casts live in this file only. */
static json_t *of(const iso_json *value) { return (json_t *)(uintptr_t)value; }
static const iso_json *wrap(const json_t *value) { return (const iso_json *)value; }

iso_status iso_json_parse(const char *text, size_t bytes, const char *what, iso_json_doc **doc,
                          iso_error *error)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_error_t why;
    json_t *root = json_loadb(text, bytes, flags, &why);

    if (root == NULL && json_error_code(&why) == json_error_out_of_memory)
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory while reading JSON", what);
    if (root == NULL)
        return iso_fail(error, ISO_BAD_JSON, "%s: line %d column %d: %s", what, why.line,
                        why.column, why.text);
    *doc = (iso_json_doc *)root;
    return ISO_OK;
}

/* Twice the memory (and one byte) with the same contents, or NULL with the old memory freed. */
static char *grow(char *buffer, size_t used, size_t *capacity)
{
    char *larger = iso_alloc_public(*capacity * 2 + 1);

    if (larger != NULL)
        memcpy(larger, buffer, used);
    iso_free(buffer);
    *capacity *= 2;
    return larger;
}

static iso_status read_all(FILE *file, const char *path, size_t bytes_max, char **text,
                           size_t *bytes, iso_error *error)
{
    size_t used = 0, capacity = 1 << 16, got = 1;
    char *buffer = iso_alloc_public(capacity + 1);

    while (buffer != NULL && got != 0 && used <= bytes_max) {
        if (used == capacity)
            buffer = grow(buffer, used, &capacity);
        got = buffer != NULL ? fread(buffer + used, 1, capacity - used, file) : 0;
        used += got;
    }
    if (buffer == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory", path);
    if (used > bytes_max || ferror(file)) {
        iso_free(buffer);
        return used > bytes_max
                   ? iso_fail(error, ISO_LIMIT, "%s: longer than %zu bytes", path, bytes_max)
                   : iso_fail(error, errno == EISDIR ? ISO_NOT_FOUND : ISO_IO, "%s: %s", path,
                              strerror(errno));
    }
    buffer[used] = '\0';
    *text = buffer;
    *bytes = used;
    return ISO_OK;
}

iso_status iso_json_read_text(const char *path, size_t bytes_max, char **text, size_t *bytes,
                              iso_error *error)
{
    FILE *file = fopen(path, "rb");
    iso_status status;

    if (file == NULL)
        return iso_fail(error, errno == ENOENT ? ISO_NOT_FOUND : ISO_IO, "%s: %s", path,
                        strerror(errno));
    status = read_all(file, path, bytes_max, text, bytes, error);
    fclose(file);
    return status;
}

iso_status iso_json_read(const char *path, size_t bytes_max, iso_json_doc **doc, iso_error *error)
{
    char *text = NULL;
    size_t bytes = 0;

    ISO_TRY(iso_json_read_text(path, bytes_max, &text, &bytes, error));
    {
        const iso_status status = iso_json_parse(text, bytes, path, doc, error);

        iso_free(text);
        return status;
    }
}

void iso_json_free(iso_json_doc **doc)
{
    if (*doc != NULL)
        json_decref((json_t *)*doc);
    *doc = NULL;
}

const iso_json *iso_json_root(const iso_json_doc *doc) { return (const iso_json *)doc; }

iso_json_type iso_json_type_of(const iso_json *value)
{
    if (value == NULL)
        return ISO_JSON_NULL;
    switch (json_typeof(of(value))) {
    case JSON_TRUE:
    case JSON_FALSE:
        return ISO_JSON_BOOL;
    case JSON_INTEGER:
        return ISO_JSON_INT;
    case JSON_REAL:
        return ISO_JSON_REAL;
    case JSON_STRING:
        return ISO_JSON_STRING;
    case JSON_ARRAY:
        return ISO_JSON_ARRAY;
    case JSON_OBJECT:
        return ISO_JSON_OBJECT;
    default:
        return ISO_JSON_NULL;
    }
}

const char *iso_json_type_name(iso_json_type type)
{
    static const char *const name[] = {"null",   "a boolean", "an integer", "a real number",
                                       "a string", "an array", "an object"};

    ISO_ASSERT((size_t)type < ISO_COUNT_OF(name));
    return name[type];
}

size_t iso_json_size(const iso_json *value)
{
    if (value == NULL)
        return 0;
    return json_is_array(of(value)) ? json_array_size(of(value)) : json_object_size(of(value));
}

const iso_json *iso_json_at(const iso_json *array, size_t index)
{
    return array == NULL ? NULL : wrap(json_array_get(of(array), index));
}

const iso_json *iso_json_get(const iso_json *object, const char *key)
{
    return object == NULL ? NULL : wrap(json_object_get(of(object), key));
}

bool iso_json_next(const iso_json *object, iso_json_cursor *cursor, const char **key,
                   const iso_json **value)
{
    if (object == NULL || !json_is_object(of(object)))
        return false;
    cursor->state = cursor->state == NULL ? json_object_iter(of(object))
                                          : json_object_iter_next(of(object), cursor->state);
    if (cursor->state == NULL)
        return false;
    *key = json_object_iter_key(cursor->state);
    *value = wrap(json_object_iter_value(cursor->state));
    return true;
}

bool iso_json_int(const iso_json *value, int64_t *out)
{
    if (value == NULL || !json_is_integer(of(value)))
        return false;
    *out = json_integer_value(of(value));
    return true;
}

bool iso_json_number(const iso_json *value, double *out)
{
    if (value == NULL || !json_is_number(of(value)))
        return false;
    *out = json_number_value(of(value));
    return true;
}

bool iso_json_bool(const iso_json *value, bool *out)
{
    if (value == NULL || !json_is_boolean(of(value)))
        return false;
    *out = json_is_true(of(value));
    return true;
}

const char *iso_json_string(const iso_json *value, size_t *bytes)
{
    if (value == NULL || !json_is_string(of(value)))
        return NULL;
    if (bytes != NULL)
        *bytes = json_string_length(of(value));
    return json_string_value(of(value));
}
