/* tiny_bpe: byte-pair merges learned from a text, the same on every machine. */
#ifndef ISO_CONVERT_TINY_BPE_H
#define ISO_CONVERT_TINY_BPE_H

#include "core/status.h"

enum { ISO_TINY_MERGES_MAX = 2048, ISO_TINY_TOKEN_MAX = 64 };

/* Tokens 0..255 are the bytes themselves; token 256 + i is merge i: its parts, and its bytes. */
typedef struct iso_tiny_merge {
    uint16_t left, right;
    uint8_t count;
    uint8_t bytes[ISO_TINY_TOKEN_MAX];
} iso_tiny_merge;

/* Learns at most merges_max merges from the lines of tiny_text.def: the most frequent pair first, a
 * tie goes to the smaller (left, right); it stops when no pair occurs twice. Pieces are letters
 * with one blank before them, and single other bytes; a byte from 0x80 counts as a letter. */
iso_status iso_tiny_learn(uint32_t merges_max, iso_tiny_merge *merges, uint32_t *merge_count,
                          iso_error *error);

#endif
