/* array: growing arrays of PODs. The owner keeps `items`, `count` and `capacity`; items move when
 * the array grows. */
#ifndef ISO_CORE_ARRAY_H
#define ISO_CORE_ARRAY_H

#include "core/check.h"

/* `items` is the address of the owner's pointer to its items. Makes room for `more` items behind
 * `count`; false (and nothing changed) when there is no memory. Start with a NULL pointer and
 * *capacity 0. `tag` must be a literal. */
bool iso_array_reserve(void *items, uint32_t *capacity, uint32_t count, uint32_t more,
                       size_t item_bytes, const char *tag);
/* Frees and zeroes. */
void iso_array_free(void *items, uint32_t *capacity, size_t item_bytes);

#endif
