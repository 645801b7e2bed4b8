/* config: config.json (nested, released) or inference/config.json (flat) -> one struct. Names on
 * the left are ours; the two spellings, ranges and defaults are the rows of config.def.
 * Source: spec/model-v41.md section 1, spec/checkpoint.md sections 3 and 4. */
#ifndef ISO_MODEL_CONFIG_H
#define ISO_MODEL_CONFIG_H

#include "core/store.h"

enum { ISO_CONFIG_LIST_MAX = 544 };

typedef struct iso_config_list {
    uint32_t count;
    int32_t at[ISO_CONFIG_LIST_MAX];
} iso_config_list;

typedef struct iso_config {
#define U32(member, required, nested, flat, low, high, fallback) uint32_t member;
#define I32(member, required, nested, flat, low, high, fallback) int32_t member;
#define REAL(member, required, nested, flat, low, high, fallback) double member;
#define LIST(member, required, nested, flat, low, high) iso_config_list member;
#define WORD(required, nested, flat, expected)
#include "model/config.def"
#undef U32
#undef I32
#undef REAL
#undef LIST
#undef WORD
    uint32_t tile;                   /* side of an FP8 weight tile: 32 in V4.1 */
    bool has_engram, has_vision;
    const char *family;              /* "deepseek_v41"; static */
    char source[32];                 /* "config.json" or "inference/config.json", for messages */
} iso_config;

/* Reads config.json of a store, or inference/config.json when the first does not exist, and checks
 * every relation of checkpoint.md section 4 that needs no tensor. Errors name key, value, limit. */
iso_status iso_config_read(const iso_store *store, iso_config *config, iso_error *error);
/* The same from JSON text; `what` names the source. */
iso_status iso_config_parse(const char *text, size_t bytes, const char *what, iso_config *config,
                            iso_error *error);

/* Roles of a backbone layer (model-v41.md 1.3). */
uint32_t iso_config_ratio(const iso_config *config, uint32_t layer);         /* m: 0, 1, 2 */
bool iso_config_is_kv_source(const iso_config *config, uint32_t layer);
bool iso_config_is_index_source(const iso_config *config, uint32_t layer);
uint32_t iso_config_kv_owner(const iso_config *config, uint32_t layer);      /* layer with m > 0 */
uint32_t iso_config_index_owner(const iso_config *config, uint32_t layer);   /* layer with m > 0 */
int32_t iso_config_engram_index(const iso_config *config, uint32_t layer);   /* -1: none */

/* Bytes of growing state per token, and of window rings per sequence (model-v41.md 4.4). */
uint64_t iso_config_kv_bytes_per_token(const iso_config *config);
uint64_t iso_config_ring_bytes(const iso_config *config);

#endif
