/* store_safetensors: iso_store over a directory of safetensors shards, or over one file.
 *
 * iso_store_open (isobit.h) accepts a checkpoint when the index and the shards agree completely:
 * every shard holds exactly the tensors the index gives it, no name occurs twice, total_size is the
 * sum of the spans. The rules inside a shard are shard.h's. */
#ifndef ISO_CONVERT_STORE_SAFETENSORS_H
#define ISO_CONVERT_STORE_SAFETENSORS_H

#include "core/store.h"

enum {
    ISO_STORE_SHARDS_MAX = 4096,
    ISO_STORE_INDEX_MAX = 100000000      /* bytes of JSON; about 8 MB in the release */
};

#define ISO_STORE_INDEX_FILE "model.safetensors.index.json"
#define ISO_STORE_SINGLE_FILE "model.safetensors"

#endif
