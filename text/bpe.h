/* bpe: byte-pair encoding of one piece of text. The piece starts as one id per byte; the pair with
 * the lowest rank is merged, the leftmost first among equals, until no pair has a rank.
 * Threads: a finished iso_bpe is immutable and may be shared. */
#ifndef ISO_TEXT_BPE_H
#define ISO_TEXT_BPE_H

#include "text/growing.h"

typedef struct iso_bpe iso_bpe;

/* byte_ids: the ids of the 256 single bytes; copied. merge_count: the merges that will be added. */
ISO_CHECKED iso_status iso_bpe_create(const int32_t byte_ids[256], size_t merge_count,
                                      iso_bpe **bpe, iso_error *error);
void iso_bpe_destroy(iso_bpe **bpe);

/* Merge number `rank`: left, right -> result. False if the pair has a rank already. */
bool iso_bpe_add(iso_bpe *bpe, uint32_t rank, int32_t left, int32_t right, int32_t result);

/* Appends the ids of a piece of at most ISO_BPE_PIECE_MAX bytes. ISO_NO_MEMORY. */
#define ISO_BPE_PIECE_MAX ((size_t)INT32_MAX)
ISO_CHECKED iso_status iso_bpe_encode(const iso_bpe *bpe, const char *piece, size_t bytes,
                                      iso_ids *ids, iso_error *error);

#endif
