#include "convert/shard.h"

#include "core/alloc.h"
#include "core/json.h"
#include "core/os.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* ---- one entry ---- */

static iso_status fail_tensor(const iso_shard_tensor *tensor, iso_error *error, const char *what)
{
    return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: %s", tensor->shard->file, tensor->name, what);
}

static iso_status read_dtype(const iso_json *entry, iso_shard_tensor *tensor, iso_error *error)
{
    const iso_json *value = iso_json_get(entry, "dtype");
    const char *tag = iso_json_string(value, NULL);

    if (tag == NULL)
        return fail_tensor(tensor, error, value == NULL ? "key dtype is missing"
                                                        : "dtype is no string");
    tensor->dtype = iso_dtype_of_tag(tag);
    if (tensor->dtype == ISO_DTYPE_NONE)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: unknown dtype \"%.40s\"",
                        tensor->shard->file, tensor->name, tag);
    return ISO_OK;
}

static iso_status read_shape(const iso_json *entry, iso_shard_tensor *tensor, iso_error *error)
{
    const iso_json *shape = iso_json_get(entry, "shape");
    const size_t rank = iso_json_size(shape);

    if (shape == NULL || iso_json_type_of(shape) != ISO_JSON_ARRAY)
        return fail_tensor(tensor, error, shape == NULL ? "key shape is missing"
                                                        : "shape is no array");
    if (rank > ISO_RANK_MAX)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: rank %zu, expected at most %d",
                        tensor->shard->file, tensor->name, rank, ISO_RANK_MAX);
    tensor->rank = (uint32_t)rank;
    for (size_t i = 0; i < ISO_RANK_MAX; i++) {
        int64_t *extent = &tensor->extent[i];

        *extent = 1;
        if (i < rank && (!iso_json_int(iso_json_at(shape, i), extent) || *extent < 0))
            return iso_fail(error, ISO_BAD_TENSOR,
                            "%s: %s: shape entry %zu is not a whole number >= 0",
                            tensor->shard->file, tensor->name, i);
    }
    return ISO_OK;
}

static iso_status read_span(const iso_json *entry, iso_shard_tensor *tensor, iso_error *error)
{
    const iso_json *span = iso_json_get(entry, "data_offsets");
    const uint64_t payload = tensor->shard->bytes - tensor->shard->payload;
    int64_t begin, end;

    if (span == NULL)
        return fail_tensor(tensor, error, "key data_offsets is missing");
    if (iso_json_size(span) != 2 || !iso_json_int(iso_json_at(span, 0), &begin)
        || !iso_json_int(iso_json_at(span, 1), &end))
        return fail_tensor(tensor, error, "data_offsets is not an array of two whole numbers");
    if (begin < 0 || end < begin)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: data_offsets [%lld,%lld], expected "
                        "0 <= begin <= end", tensor->shard->file, tensor->name, (long long)begin,
                        (long long)end);
    if ((uint64_t)end > payload)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: data_offsets [%lld,%lld], but the file "
                        "has %llu payload bytes", tensor->shard->file, tensor->name,
                        (long long)begin, (long long)end, (ull)payload);
    tensor->begin = (uint64_t)begin;
    tensor->end = (uint64_t)end;
    return ISO_OK;
}

/* dtype x shape = end - begin. Each partial product is checked, so a wrap to a small number or to
 * 0 is not taken for a size. */
static iso_status check_bytes(const iso_shard_tensor *tensor, iso_error *error)
{
    uint64_t elems = 1, bytes = 0;
    bool fits = true;

    for (size_t i = 0; i < ISO_RANK_MAX; i++)
        fits = fits && iso_mul_u64(elems, (uint64_t)tensor->extent[i], &elems);
    if (!fits || !iso_dtype_bytes(tensor->dtype, elems, &bytes))
        return fail_tensor(tensor, error, "shape overflows 64 bits");
    if (bytes != tensor->end - tensor->begin)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: %s of its shape needs %llu bytes, "
                        "data_offsets [%llu,%llu] have %llu", tensor->shard->file, tensor->name,
                        iso_dtype_tag(tensor->dtype), (ull)bytes, (ull)tensor->begin,
                        (ull)tensor->end, (ull)(tensor->end - tensor->begin));
    return ISO_OK;
}

static iso_status read_entry(const iso_json *entry, iso_shard_tensor *tensor, iso_error *error)
{
    if (iso_json_type_of(entry) != ISO_JSON_OBJECT)
        return fail_tensor(tensor, error, "its header entry is no object");
    ISO_TRY(read_dtype(entry, tensor, error));
    ISO_TRY(read_shape(entry, tensor, error));
    ISO_TRY(read_span(entry, tensor, error));
    if (iso_json_size(entry) != 3)
        return fail_tensor(tensor, error, "expected only dtype, shape and data_offsets");
    return check_bytes(tensor, error);
}

/* ---- the whole header ---- */

static iso_status check_metadata(const iso_shard *shard, const iso_json *metadata,
                                 iso_error *error)
{
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *key;

    if (iso_json_type_of(metadata) != ISO_JSON_OBJECT)
        return iso_fail(error, ISO_BAD_FILE, "%s: __metadata__ is no object", shard->file);
    while (iso_json_next(metadata, &cursor, &key, &value))
        if (iso_json_type_of(value) != ISO_JSON_STRING)
            return iso_fail(error, ISO_BAD_FILE, "%s: __metadata__: %.100s is no string",
                            shard->file, key);
    return ISO_OK;
}

/* Counts tensors and the bytes of their names, and takes the memory for both. */
static iso_status size_entries(iso_shard *shard, const iso_json *header, iso_error *error)
{
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *key;
    size_t tensors = 0, bytes = 0;

    while (iso_json_next(header, &cursor, &key, &value)) {
        const size_t length = strlen(key);

        if (strcmp(key, "__metadata__") == 0) {
            ISO_TRY(check_metadata(shard, value, error));
            continue;
        }
        if (length == 0 || length > ISO_SHARD_NAME_MAX)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: tensor name \"%.40s\" has %zu bytes, "
                            "expected 1 to %d", shard->file, key, length, ISO_SHARD_NAME_MAX);
        tensors++;
        bytes += length + 1;
    }
    shard->tensor_count = tensors;
    if (tensors == 0)
        return ISO_OK;
    shard->tensors = iso_alloc_zero(tensors, sizeof *shard->tensors, "shard.tensors");
    shard->names = iso_alloc(bytes, 1, "shard.names");
    shard->names_bytes = bytes;
    if (shard->tensors == NULL || shard->names == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory for %zu tensors", shard->file,
                        tensors);
    return ISO_OK;
}

static iso_status read_entries(iso_shard *shard, const iso_json *header, iso_error *error)
{
    iso_json_cursor cursor = {0};
    iso_shard_tensor *tensor = shard->tensors;
    const iso_json *value;
    const char *key;
    char *name = shard->names;

    while (iso_json_next(header, &cursor, &key, &value)) {
        const size_t length = strlen(key);

        if (strcmp(key, "__metadata__") == 0)
            continue;
        memcpy(name, key, length + 1);
        tensor->name = name;
        tensor->shard = shard;
        ISO_TRY(read_entry(value, tensor, error));
        name += length + 1;
        tensor++;
    }
    return ISO_OK;
}

static int by_begin(const void *a, const void *b)
{
    const iso_shard_tensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorted by begin, each tensor starts where the one before ends, the first at 0 and the last ends
 * with the file: no overlap, no hole, nothing behind. */
static iso_status check_cover(iso_shard *shard, iso_error *error)
{
    const uint64_t payload = shard->bytes - shard->payload;
    uint64_t covered = 0;

    if (shard->tensor_count != 0)
        qsort(shard->tensors, shard->tensor_count, sizeof *shard->tensors, by_begin);
    for (size_t i = 0; i < shard->tensor_count; i++) {
        const iso_shard_tensor *tensor = &shard->tensors[i];

        if (tensor->begin < covered)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: data_offsets [%llu,%llu] overlap %s, "
                            "which ends at %llu", shard->file, tensor->name, (ull)tensor->begin,
                            (ull)tensor->end, shard->tensors[i - 1].name, (ull)covered);
        if (tensor->begin > covered)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: data_offsets [%llu,%llu] leave a hole "
                            "behind %llu", shard->file, tensor->name, (ull)tensor->begin,
                            (ull)tensor->end, (ull)covered);
        covered = tensor->end;
    }
    if (covered != payload)
        return iso_fail(error, ISO_BAD_FILE, "%s: %llu payload bytes, but the tensors end at %llu",
                        shard->file, (ull)payload, (ull)covered);
    return ISO_OK;
}

static iso_status find_header(iso_shard *shard, uint64_t *header_bytes, iso_error *error)
{
    uint64_t bytes;

    if (shard->bytes < 8)
        return iso_fail(error, ISO_BAD_FILE, "%s: %llu bytes, expected at least 8 (truncated?)",
                        shard->file, (ull)shard->bytes);
    bytes = read_u64(shard->data);
    if (bytes > shard->bytes - 8)
        return iso_fail(error, ISO_BAD_FILE, "%s: header length %llu, but only %llu bytes follow "
                        "(truncated?)", shard->file, (ull)bytes, (ull)(shard->bytes - 8));
    if (bytes > ISO_SHARD_HEADER_MAX)
        return iso_fail(error, ISO_LIMIT, "%s: header length %llu, limit %d", shard->file,
                        (ull)bytes, ISO_SHARD_HEADER_MAX);
    if (bytes == 0 || shard->data[8] != '{')
        return iso_fail(error, ISO_BAD_FILE, "%s: the header does not start with {", shard->file);
    shard->payload = 8 + bytes;
    *header_bytes = bytes;
    return ISO_OK;
}

iso_status iso_shard_read(const void *data, uint64_t bytes, iso_shard *shard, iso_error *error)
{
    iso_json_doc *doc = NULL;
    uint64_t header_bytes = 0;
    iso_status status;

    shard->data = data;
    shard->bytes = bytes;
    ISO_GOTO(find_header(shard, &header_bytes, error));
    ISO_GOTO(iso_json_parse((const char *)shard->data + 8, (size_t)header_bytes, shard->file,
                            &doc, error));
    ISO_GOTO(size_entries(shard, iso_json_root(doc), error));
    ISO_GOTO(read_entries(shard, iso_json_root(doc), error));
    ISO_GOTO(check_cover(shard, error));
done:
    iso_json_free(&doc);
    if (status != ISO_OK)
        iso_shard_free(shard);
    return status;
}

iso_status iso_shard_open(const char *directory, const char *file, iso_shard *shard,
                          iso_error *error)
{
    char path[4096];
    const void *data = NULL;
    uint64_t bytes = 0;
    iso_status status;

    *shard = (iso_shard){0};
    if (snprintf(shard->file, sizeof shard->file, "%s", file) >= (int)sizeof shard->file
        || snprintf(path, sizeof path, "%s/%s", directory, file) >= (int)sizeof path)
        return iso_fail(error, ISO_LIMIT, "%s: file name too long", file);
    ISO_TRY(iso_os_map_file(path, &data, &bytes, error));
    status = iso_shard_read(data, bytes, shard, error);
    if (status != ISO_OK)
        iso_os_unmap(data, bytes);
    return status;
}

void iso_shard_free(iso_shard *shard)
{
    iso_release(shard->tensors, shard->tensor_count * sizeof *shard->tensors);
    iso_release(shard->names, shard->names_bytes);
    shard->tensors = NULL;
    shard->names = NULL;
    shard->tensor_count = shard->names_bytes = 0;
}

void iso_shard_close(iso_shard *shard)
{
    iso_shard_free(shard);
    iso_os_unmap(shard->data, shard->bytes);
    shard->data = NULL;
}
