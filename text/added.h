/* added: finds added tokens in text: leftmost, and the longest of those that start there.
 * Threads: immutable once created. */
#ifndef ISO_TEXT_ADDED_H
#define ISO_TEXT_ADDED_H

#include "core/status.h"

typedef struct iso_added iso_added;

typedef struct iso_added_token {
    const char *text;        /* lent; must outlive the set */
    uint32_t bytes;          /* >= 1 */
    int32_t id;
} iso_added_token;

typedef struct iso_added_hit {
    size_t offset, bytes;    /* in the searched text */
    int32_t id;
} iso_added_hit;

/* Copies the rows. The texts must all differ. ISO_NO_MEMORY. */
ISO_CHECKED iso_status iso_added_create(const iso_added_token *tokens, size_t count,
                                        iso_added **added, iso_error *error);
void iso_added_destroy(iso_added **added);

/* First hit at or after `from`; false if there is none. */
bool iso_added_next(const iso_added *added, const char *text, size_t bytes, size_t from,
                    iso_added_hit *hit);

/* Id of the token with exactly this text, or -1. */
int32_t iso_added_find(const iso_added *added, const char *text, size_t bytes);

#endif
