#include "text/string_map.h"

#include "core/alloc.h"
#include "core/hash.h"

#include <string.h>

bool iso_string_map_init(iso_string_map *map, size_t keys_max)
{
    size_t slot_count = 16;

    ISO_ASSERT(keys_max <= SIZE_MAX / 8);
    while (slot_count < keys_max * 2)
        slot_count *= 2;
    *map = (iso_string_map){
        .slots = iso_alloc_zero(slot_count, sizeof *map->slots, "string_map"),
        .slot_count = slot_count,
        .used_max = keys_max,
    };
    return map->slots != NULL;
}

void iso_string_map_deinit(iso_string_map *map)
{
    iso_release(map->slots, map->slot_count * sizeof *map->slots);
    *map = (iso_string_map){0};
}

static uint32_t hash_of(const char *key, size_t bytes)
{
    uint64_t hash[2];

    iso_hash(key, bytes, hash);
    return (uint32_t)hash[0];
}

/* The slot that holds the key, or the free one where it belongs. */
static iso_string_slot *slot_of(const iso_string_map *map, const char *key, size_t bytes,
                                uint32_t hash)
{
    size_t i = hash & (map->slot_count - 1);

    for (;; i = (i + 1) & (map->slot_count - 1)) {
        iso_string_slot *slot = &map->slots[i];

        if (slot->key == NULL || (slot->hash == hash && slot->bytes == bytes &&
                                  memcmp(slot->key, key, bytes) == 0))
            return slot;
    }
}

bool iso_string_map_find(const iso_string_map *map, const char *key, size_t bytes,
                         uint32_t *value)
{
    const iso_string_slot *slot = slot_of(map, key, bytes, hash_of(key, bytes));

    if (slot->key == NULL)
        return false;
    *value = slot->value;
    return true;
}

uint32_t iso_string_map_insert(iso_string_map *map, const char *key, size_t bytes,
                               uint32_t value)
{
    const uint32_t hash = hash_of(key, bytes);
    iso_string_slot *slot = slot_of(map, key, bytes, hash);

    if (slot->key != NULL)
        return slot->value;
    ISO_ASSERT(map->used < map->used_max && bytes <= UINT32_MAX);
    *slot = (iso_string_slot){key, (uint32_t)bytes, hash, value, 0};
    map->used++;
    return value;
}
