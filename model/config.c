#include "model/config.h"

#include "core/json.h"
#include "model/config_rules.h"

#include <stdio.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 22 };

/* The two spellings of one file: which path to follow for a key. */
typedef struct reader {
    const iso_json *root;
    const char *what;
    bool is_nested;
    iso_config *config;
    iso_error *error;
} reader;

/* One row of config.def. */
typedef struct key {
    bool required;
    const char *nested, *flat;
} key;

/* Follows "a.b.c" from the root; NULL if a part is absent. */
static const iso_json *follow(const iso_json *value, const char *path)
{
    char part[64];

    while (value != NULL && *path != '\0') {
        const size_t bytes = strcspn(path, ".");

        if (bytes >= sizeof part)
            return NULL;
        memcpy(part, path, bytes);
        part[bytes] = '\0';
        value = iso_json_get(value, part);
        path += bytes + (path[bytes] == '.');
    }
    return value;
}

static const iso_json *look_up(const reader *in, const key *row, const char **name)
{
    *name = in->is_nested ? row->nested : row->flat;
    return follow(in->root, *name);
}

static iso_status missing(const reader *in, const char *name)
{
    return iso_fail(in->error, ISO_BAD_CONFIG, "%s: key %s is missing", in->what, name);
}

static bool is_absent(const iso_json *value)
{
    return value == NULL || iso_json_type_of(value) == ISO_JSON_NULL;
}

static iso_status wrong_type(const reader *in, const char *name, const iso_json *value,
                             const char *expected)
{
    return iso_fail(in->error, ISO_BAD_CONFIG, "%s: %s is %s, expected %s", in->what, name,
                    iso_json_type_name(iso_json_type_of(value)), expected);
}

typedef struct int_range {
    int64_t low, high, fallback;
} int_range;

static iso_status read_int(const reader *in, key row, int_range range, int64_t *out)
{
    const char *name;
    const iso_json *value = look_up(in, &row, &name);

    if (is_absent(value)) {
        if (row.required)
            return missing(in, name);
        *out = range.fallback;
        return ISO_OK;
    }
    if (!iso_json_int(value, out))
        return wrong_type(in, name, value, "an integer");
    if (*out < range.low || *out > range.high)
        return iso_fail(in->error, ISO_BAD_CONFIG, "%s: %s is %lld, expected %lld to %lld",
                        in->what, name, (long long)*out, (long long)range.low,
                        (long long)range.high);
    return ISO_OK;
}

static iso_status read_u32(const reader *in, key row, int_range range, uint32_t *out)
{
    int64_t value = 0;

    ISO_TRY(read_int(in, row, range, &value));
    *out = (uint32_t)value;
    return ISO_OK;
}

static iso_status read_i32(const reader *in, key row, int_range range, int32_t *out)
{
    int64_t value = 0;

    ISO_TRY(read_int(in, row, range, &value));
    *out = (int32_t)value;
    return ISO_OK;
}

typedef struct real_range {
    double low, high, fallback;
} real_range;

static iso_status read_real(const reader *in, key row, real_range range, double *out)
{
    const char *name;
    const iso_json *value = look_up(in, &row, &name);

    if (is_absent(value)) {
        if (row.required)
            return missing(in, name);
        *out = range.fallback;
        return ISO_OK;
    }
    if (!iso_json_number(value, out))
        return wrong_type(in, name, value, "a number");
    if (!(*out >= range.low && *out <= range.high))
        return iso_fail(in->error, ISO_BAD_CONFIG, "%s: %s is %g, expected %g to %g", in->what,
                        name, *out, range.low, range.high);
    return ISO_OK;
}

static iso_status read_list(const reader *in, key row, int_range range, iso_config_list *out)
{
    const char *name;
    const iso_json *value = look_up(in, &row, &name);
    const size_t count = iso_json_size(value);

    out->count = 0;
    if (is_absent(value))
        return row.required ? missing(in, name) : ISO_OK;
    if (iso_json_type_of(value) != ISO_JSON_ARRAY)
        return wrong_type(in, name, value, "an array");
    if (count > ISO_CONFIG_LIST_MAX)
        return iso_fail(in->error, ISO_BAD_CONFIG, "%s: %s has %zu entries, expected at most %d",
                        in->what, name, count, ISO_CONFIG_LIST_MAX);
    for (size_t i = 0; i < count; i++) {
        int64_t entry;

        if (!iso_json_int(iso_json_at(value, i), &entry))
            return iso_fail(in->error, ISO_BAD_CONFIG, "%s: %s[%zu] is no integer", in->what,
                            name, i);
        if (entry < range.low || entry > range.high)
            return iso_fail(in->error, ISO_BAD_CONFIG,
                            "%s: %s[%zu] is %lld, expected %lld to %lld", in->what, name, i,
                            (long long)entry, (long long)range.low, (long long)range.high);
        out->at[i] = (int32_t)entry;
    }
    out->count = (uint32_t)count;
    return ISO_OK;
}

static iso_status read_word(const reader *in, key row, const char *expected)
{
    const char *name, *text;
    const iso_json *value = look_up(in, &row, &name);

    if (is_absent(value))
        return row.required ? missing(in, name) : ISO_OK;
    text = iso_json_string(value, NULL);
    if (text == NULL || strcmp(text, expected) != 0)
        return iso_fail(in->error, ISO_BAD_CONFIG, "%s: %s is \"%s\", expected \"%s\"", in->what,
                        name, text == NULL ? iso_json_type_name(iso_json_type_of(value)) : text,
                        expected);
    return ISO_OK;
}

/* The family row of the file, by model_type (nested) or, in a flat file without one, by the keys
 * only V4.1 has. */
static iso_status read_family(reader *in)
{
    static const struct {
        const char *type, *name;
        uint32_t tile;
    } row[] = {
#define FAMILY(type, text_type, name, ratio_max, tile) {type, name, tile},
#include "model/family.def"
#undef FAMILY
    };
    const char *type = iso_json_string(iso_json_get(in->root, "model_type"), NULL);

    in->is_nested = iso_json_get(in->root, "text_config") != NULL;
    if (type == NULL && !in->is_nested && iso_json_get(in->root, "kv_source_layers") != NULL)
        type = row[0].type;
    if (type == NULL)
        return iso_fail(in->error, ISO_BAD_CONFIG, "%s: key model_type is missing", in->what);
    for (size_t i = 0; i < ISO_COUNT_OF(row); i++)
        if (strcmp(type, row[i].type) == 0) {
            in->config->family = row[i].name;
            in->config->tile = row[i].tile;
            return ISO_OK;
        }
    return iso_fail(in->error, ISO_BAD_CONFIG,
                    "%s: model_type is \"%s\", expected \"deepseek_v41\" (this version runs no "
                    "other family)", in->what, type);
}

/* weight_block_size is [tile, tile]; the flat file has no such key, the scale shapes decide. */
static iso_status read_tile(const reader *in)
{
    const iso_json *block = follow(in->root, "quantization_config.weight_block_size");
    int64_t rows = 0, columns = 0;

    if (is_absent(block))
        return ISO_OK;
    if (iso_json_size(block) != 2 || !iso_json_int(iso_json_at(block, 0), &rows)
        || !iso_json_int(iso_json_at(block, 1), &columns) || rows != in->config->tile
        || columns != in->config->tile)
        return iso_fail(in->error, ISO_BAD_CONFIG,
                        "%s: quantization_config.weight_block_size is [%lld,%lld], expected "
                        "[%u,%u]", in->what, (long long)rows, (long long)columns,
                        in->config->tile, in->config->tile);
    return ISO_OK;
}

static iso_status read_all(const reader *in)
{
    iso_config *c = in->config;

#define U32(member, required, nested, flat, low, high, fallback)                                  \
    ISO_TRY(read_u32(in, (key){required, nested, flat}, (int_range){low, high, fallback},         \
                     &c->member));
#define I32(member, required, nested, flat, low, high, fallback)                                  \
    ISO_TRY(read_i32(in, (key){required, nested, flat}, (int_range){low, high, fallback},         \
                     &c->member));
#define REAL(member, required, nested, flat, low, high, fallback)                                 \
    ISO_TRY(read_real(in, (key){required, nested, flat}, (real_range){low, high, fallback},       \
                      &c->member));
#define LIST(member, required, nested, flat, low, high)                                           \
    ISO_TRY(read_list(in, (key){required, nested, flat}, (int_range){low, high, 0}, &c->member));
#define WORD(required, nested, flat, expected)                                                    \
    ISO_TRY(read_word(in, (key){required, nested, flat}, expected));
#include "model/config.def"
#undef U32
#undef I32
#undef REAL
#undef LIST
#undef WORD
    return read_tile(in);
}

iso_status iso_config_parse(const char *text, size_t bytes, const char *what, iso_config *config,
                            iso_error *error)
{
    iso_json_doc *doc = NULL;
    iso_config parsed = {0};
    reader in = {.what = what, .config = &parsed, .error = error};
    iso_status status;

    ISO_GOTO(iso_json_parse(text, bytes, what, &doc, error));
    in.root = iso_json_root(doc);
    if (iso_json_type_of(in.root) != ISO_JSON_OBJECT) {
        status = iso_fail(error, ISO_BAD_CONFIG, "%s: expected an object", what);
        goto done;
    }
    ISO_GOTO(read_family(&in));
    ISO_GOTO(read_all(&in));
    parsed.has_engram = parsed.engram_layers.count != 0;
    parsed.has_vision = parsed.vision_layers != 0;
    snprintf(parsed.source, sizeof parsed.source, "%s",
             in.is_nested ? "config.json" : "inference/config.json");
    ISO_GOTO(iso_config_check(&parsed, what, error));
    *config = parsed;
done:
    iso_json_free(&doc);
    return status;
}

iso_status iso_config_read(const iso_store *store, iso_config *config, iso_error *error)
{
    static const char *const file[] = {"config.json", "inference/config.json"};
    const char *where = iso_store_path(store);
    iso_status status = ISO_NOT_FOUND;

    for (size_t i = 0; i < ISO_COUNT_OF(file) && status == ISO_NOT_FOUND; i++) {
        char path[4096];
        char *text = NULL;
        size_t bytes = 0;

        if (snprintf(path, sizeof path, "%s/%s", where, file[i]) >= (int)sizeof path)
            return iso_fail(error, ISO_LIMIT, "path too long: %s", where);
        status = iso_store_text(store, file[i], CONFIG_BYTES_MAX, &text, &bytes, error);
        if (status == ISO_OK)
            status = iso_config_parse(text, bytes, path, config, error);
        iso_free(text);
    }
    if (status == ISO_NOT_FOUND)
        return iso_fail(error, ISO_NOT_FOUND, "%s: no config.json and no inference/config.json",
                        where);
    return status;
}
