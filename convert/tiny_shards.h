/* tiny_shards: writes the shards and the index of a made-up checkpoint.
 *
 * Tensors are placed as in the release: vision; embeddings; one layer each; head; one draft stage
 * each; one Engram layer each. With fewer shards than such groups, neighbours share a shard. */
#ifndef ISO_CONVERT_TINY_SHARDS_H
#define ISO_CONVERT_TINY_SHARDS_H

#include "convert/folder.h"
#include "model/config.h"

typedef struct iso_tiny_plan {
    const iso_config *config;
    uint32_t shard_count;            /* <= 200 */
    bool is_sparse;
    uint64_t seed;
} iso_tiny_plan;

iso_status iso_tiny_shards(const iso_tiny_plan *plan, iso_folder *folder, iso_error *error);

#endif
