/* engram: the constants of the hashed n-gram memory, derived from the configuration alone:
 * multipliers (numpy PCG64 of SeedSequence), prime buckets, offsets. 64-bit integers only.
 * Source: spec/engram.md sections 3 and 4. */
#ifndef ISO_MODEL_ENGRAM_H
#define ISO_MODEL_ENGRAM_H

#include "model/config.h"

enum { ISO_ENGRAM_NGRAM_MAX = 8, ISO_ENGRAM_COLUMNS_MAX = 7 * 64 };

typedef struct iso_engram_layer {
    uint64_t multiplier[ISO_ENGRAM_NGRAM_MAX];       /* ngram of them, newest token first */
    uint32_t prime[ISO_ENGRAM_COLUMNS_MAX];          /* (ngram - 1) * heads, order-major */
    uint32_t offset[ISO_ENGRAM_COLUMNS_MAX];
    uint64_t rows;                                   /* sum of the primes */
} iso_engram_layer;

/* Constants of all Engram layers of the configuration, in order; `layers` has
 * config->engram_layers.count elements. ISO_BAD_CONFIG if the row counts of the configuration
 * (engram_num_embeddings) differ from the sums of the primes: both numbers are in the message. */
iso_status iso_engram_derive(const iso_config *config, iso_engram_layer *layers,
                             iso_error *error);

/* Columns of a row-id tuple: (ngram - 1) * heads. */
uint32_t iso_engram_columns(const iso_config *config);

#endif
