/* store_safetensors: iso_store over a directory of safetensors shards, or over one file.
 *
 * A checkpoint is accepted when the index and the shards agree completely: every shard holds
 * exactly the tensors the index gives it, no name occurs twice, total_size is the sum of the spans.
 * The rules inside a shard are shard.h's. */
#ifndef ISO_CONVERT_STORE_SAFETENSORS_H
#define ISO_CONVERT_STORE_SAFETENSORS_H

#include "core/store.h"

enum {
    ISO_STORE_SHARDS_MAX = 4096,
    ISO_STORE_INDEX_MAX = 100000000      /* bytes of JSON; about 8 MB in the release */
};

#define ISO_STORE_INDEX_FILE "model.safetensors.index.json"
#define ISO_STORE_SINGLE_FILE "model.safetensors"

/* iso_store_open of isobit.h, for this format. */
iso_status iso_store_open_safetensors(const char *path, iso_store **store, iso_error *error);

#endif
