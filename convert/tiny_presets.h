/* tiny_presets: the models that iso_tiny_write can make up; one row of tiny_presets.def each. */
#ifndef ISO_CONVERT_TINY_PRESETS_H
#define ISO_CONVERT_TINY_PRESETS_H

#include "core/text.h"
#include "model/config.h"

typedef struct iso_tiny_preset {
    const char *name, *description;
    uint32_t shard_count;
    bool is_sparse;                  /* payload is a hole: shapes without values */
    bool has_tokenizer;              /* writes tokenizer.json; engram_keys is counted from it */
    /* What the row states. Left open: family, source, has_*; engram_rows (derived), engram_keys and
     * the ids of protocol tokens (from the tokenizer), optional values that keep their default. */
    iso_config config;
} iso_tiny_preset;

/* NULL past the end, or for an unknown name. */
const iso_tiny_preset *iso_tiny_preset_at(uint32_t index);
const iso_tiny_preset *iso_tiny_preset_find(const char *name);

/* Appends config.json of the configuration in the released, nested spelling. */
void iso_tiny_config_text(const iso_config *config, iso_text *text);

#endif
