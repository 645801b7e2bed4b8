/* tiny: checkpoints with made-up weights in the released layout (iso_tiny_write in isobit.h).
 *
 *   tiny_presets    which models: one row each; their config.json
 *   tiny_tokenizer  tokenizer.json, with merges learned from tiny_text.def by tiny_bpe.c
 *   tiny_shards     which tensor goes where, headers, index
 *   tiny_values     what the values are
 *   folder          files appear complete or not at all */
#ifndef ISO_CONVERT_TINY_H
#define ISO_CONVERT_TINY_H

#include "core/isobit.h"

#endif
