#include "core/array.h"

#include "core/alloc.h"

#include <string.h>

/* The owner's pointer has its own type, so it is read and written as bytes. */
static void *load(const void *items)
{
    void *memory;

    memcpy(&memory, items, sizeof memory);
    return memory;
}

bool iso_array_reserve(void *items, uint32_t *capacity, uint32_t count, uint32_t more,
                       size_t item_bytes, const char *tag)
{
    uint64_t wanted = (uint64_t)count + more, bytes;
    void *old = load(items), *grown;

    if (wanted <= *capacity)
        return true;
    wanted = wanted < 16 ? 16 : wanted + wanted / 2;
    if (wanted > UINT32_MAX || !iso_mul_u64(wanted, item_bytes, &bytes))
        return false;
    grown = iso_alloc((size_t)bytes, 64, tag);
    if (grown == NULL)
        return false;
    if (count != 0)
        memcpy(grown, old, count * item_bytes);
    iso_release(old, *capacity * item_bytes);
    memcpy(items, &grown, sizeof grown);
    *capacity = (uint32_t)wanted;
    return true;
}

void iso_array_free(void *items, uint32_t *capacity, size_t item_bytes)
{
    void *none = NULL;

    iso_release(load(items), *capacity * item_bytes);
    memcpy(items, &none, sizeof none);
    *capacity = 0;
}
