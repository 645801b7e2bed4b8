#include "text/growing.h"

#include "core/alloc.h"

#include <string.h>

void *iso_array_grow(void *data, size_t *capacity, size_t used, size_t need, size_t element)
{
    size_t larger = *capacity == 0 ? 64 : *capacity;
    uint64_t bytes;
    void *block;

    while (larger < need && larger <= SIZE_MAX / 4)
        larger *= 2;
    if (larger < need || !iso_mul_u64(larger, element, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    block = iso_alloc((size_t)bytes, 16, "text");
    if (block == NULL)
        return NULL;
    if (used != 0)
        memcpy(block, data, used * element);
    iso_release(data, *capacity * element);
    *capacity = larger;
    return block;
}

void iso_chars_add(iso_chars *chars, const char *data, size_t bytes)
{
    void *block;

    if (bytes == 0 || chars->failed)
        return;
    if (bytes > chars->capacity - chars->used) {
        block = bytes > SIZE_MAX / 4 ? NULL
                                     : iso_array_grow(chars->data, &chars->capacity, chars->used,
                                                      chars->used + bytes, 1);
        if (block == NULL) {
            chars->failed = true;
            return;
        }
        chars->data = block;
    }
    memcpy(chars->data + chars->used, data, bytes);
    chars->used += bytes;
}

void iso_chars_add_string(iso_chars *chars, const char *string)
{
    iso_chars_add(chars, string, strlen(string));
}

void iso_chars_deinit(iso_chars *chars)
{
    iso_release(chars->data, chars->capacity);
    *chars = (iso_chars){0};
}

iso_status iso_chars_publish(const iso_chars *chars, char **text, size_t *bytes, iso_error *error)
{
    char *copy = chars->failed ? NULL : iso_alloc_public(chars->used + 1);

    if (copy == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "text of %zu bytes: out of memory", chars->used);
    if (chars->used != 0)
        memcpy(copy, chars->data, chars->used);
    copy[chars->used] = '\0';
    *text = copy;
    if (bytes != NULL)
        *bytes = chars->used;
    return ISO_OK;
}

void iso_ids_add(iso_ids *ids, int32_t id)
{
    void *block;

    if (ids->failed)
        return;
    if (ids->used == ids->capacity) {
        block = iso_array_grow(ids->data, &ids->capacity, ids->used, ids->used + 1,
                               sizeof *ids->data);
        if (block == NULL) {
            ids->failed = true;
            return;
        }
        ids->data = block;
    }
    ids->data[ids->used++] = id;
}

void iso_ids_deinit(iso_ids *ids)
{
    iso_release(ids->data, ids->capacity * sizeof *ids->data);
    *ids = (iso_ids){0};
}

iso_status iso_ids_publish(const iso_ids *ids, int32_t **out, size_t *count, iso_error *error)
{
    const size_t bytes = ids->used * sizeof *ids->data;
    /* One element at least: an empty result is a pointer, too. */
    int32_t *copy = ids->failed ? NULL : iso_alloc_public(bytes + sizeof *copy);

    if (copy == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%zu token ids: out of memory", ids->used);
    if (bytes != 0)
        memcpy(copy, ids->data, bytes);
    *out = copy;
    *count = ids->used;
    return ISO_OK;
}
