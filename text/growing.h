/* growing: arrays of characters and of ids that grow.
 *
 * Both start as zeroed structs and end with deinit. A failed allocation sets `failed`, which stays
 * set and turns later appends into nothing: callers append freely and look once, at the end.
 * Threads: a value has one owner. */
#ifndef ISO_TEXT_GROWING_H
#define ISO_TEXT_GROWING_H

#include "core/status.h"

typedef struct iso_chars {
    char *data;              /* not NUL-terminated; NULL while nothing was appended */
    size_t used, capacity;   /* bytes */
    bool failed;
} iso_chars;

typedef struct iso_ids {
    int32_t *data;
    size_t used, capacity;   /* elements */
    bool failed;
} iso_ids;

/* Moves `data`, `used` elements of `element` bytes, to a block with room for at least `need` and
 * returns the block; NULL, and everything as before, when there is no memory. For arrays of other
 * types. */
void *iso_array_grow(void *data, size_t *capacity, size_t used, size_t need, size_t element);

void iso_chars_add(iso_chars *chars, const char *data, size_t bytes);
void iso_chars_add_string(iso_chars *chars, const char *string);
void iso_chars_deinit(iso_chars *chars);
/* A copy for the caller of the public API: NUL-terminated, freed with iso_free.
 * ISO_NO_MEMORY, also when an append failed. */
ISO_CHECKED iso_status iso_chars_publish(const iso_chars *chars, char **text, size_t *bytes,
                                         iso_error *error);

void iso_ids_add(iso_ids *ids, int32_t id);
void iso_ids_deinit(iso_ids *ids);
ISO_CHECKED iso_status iso_ids_publish(const iso_ids *ids, int32_t **out, size_t *count,
                                       iso_error *error);

#endif
