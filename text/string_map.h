/* string_map: strings -> u32, for loading and for building the token map. Open addressing; the
 * map lends its keys from the caller, who keeps them alive. Nothing depends on the slot order: the
 * map is never walked. Threads: read-only use may be shared. */
#ifndef ISO_TEXT_STRING_MAP_H
#define ISO_TEXT_STRING_MAP_H

#include "core/status.h"

typedef struct iso_string_slot {
    const char *key;         /* NULL: free */
    uint32_t bytes;
    uint32_t hash;
    uint32_t value;
    uint32_t pad;
} iso_string_slot;

typedef struct iso_string_map {
    iso_string_slot *slots;
    size_t slot_count;       /* a power of two, at least twice the keys */
    size_t used, used_max;
} iso_string_map;

/* Room for `keys_max` keys; false when there is no memory. */
bool iso_string_map_init(iso_string_map *map, size_t keys_max);
void iso_string_map_deinit(iso_string_map *map);

/* Value of a key; false if absent. */
bool iso_string_map_find(const iso_string_map *map, const char *key, size_t bytes,
                         uint32_t *value);

/* Inserts key -> value unless the key is there; returns the value that the map now holds. */
uint32_t iso_string_map_insert(iso_string_map *map, const char *key, size_t bytes,
                               uint32_t value);

#endif
