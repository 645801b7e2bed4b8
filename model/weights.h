/* weights: which tensors a checkpoint of a configuration has: name, dtype, shape, component, from
 * the rows of weights.def. One enumeration serves the check of a store, the inventory that
 * `inspect` prints, the tiny-model writer and the engine's weight directory. */
#ifndef ISO_MODEL_WEIGHTS_H
#define ISO_MODEL_WEIGHTS_H

#include "model/config.h"

typedef enum iso_component {
    ISO_COMPONENT_EMBED, ISO_COMPONENT_HEAD, ISO_COMPONENT_NORM, ISO_COMPONENT_HC,
    ISO_COMPONENT_ATTENTION, ISO_COMPONENT_COMPRESSOR, ISO_COMPONENT_INDEXER, ISO_COMPONENT_GATE,
    ISO_COMPONENT_SHARED, ISO_COMPONENT_EXPERT, ISO_COMPONENT_ENGRAM,
    ISO_COMPONENT_ENGRAM_TABLE, ISO_COMPONENT_DRAFT, ISO_COMPONENT_VISION, ISO_COMPONENT_COUNT
} iso_component;
const char *iso_component_name(iso_component component);

enum { ISO_WEIGHT_NAME_MAX = 96 };

typedef enum iso_encoding {
    ISO_ENCODING_PLAIN,              /* bf16 or f32 values */
    ISO_ENCODING_FP8_CODES,          /* e4m3 [N,K] with tile x tile scales */
    ISO_ENCODING_FP8_SCALES,
    ISO_ENCODING_FP4_CODES,          /* i8 [N,K/2] with scales per row and 32 columns */
    ISO_ENCODING_FP4_SCALES,
    ISO_ENCODING_TABLE_CODES,        /* e4m3 [R,K] with scales per row and 32 columns */
    ISO_ENCODING_TABLE_SCALES
} iso_encoding;

typedef struct iso_weight_spec {
    char name[ISO_WEIGHT_NAME_MAX];
    iso_dtype dtype;                 /* as stored */
    uint32_t rank;
    int64_t extent[2];
    iso_component component;         /* inside mtp.N: ISO_COMPONENT_DRAFT */
    iso_encoding encoding;
    int32_t layer;                   /* backbone layer, or -1 */
    int32_t draft;                   /* draft stage, or -1 */
    int32_t expert;                  /* routed expert, or -1 */
} iso_weight_spec;

/* Calls visit for every expected tensor, in a fixed order; a scale follows its codes directly.
 * Stops at the first status that is not ISO_OK and returns it. */
typedef iso_status iso_weight_visit_fn(void *context, const iso_weight_spec *spec,
                                       iso_error *error);
iso_status iso_weights_each(const iso_config *config, iso_weight_visit_fn *visit, void *context,
                            iso_error *error);

/* Bytes of a spec; checked. */
uint64_t iso_weight_spec_bytes(const iso_weight_spec *spec);

/* Inventory of a store that was checked against a configuration. */
typedef struct iso_weights_report {
    uint64_t tensors, bytes;
    uint64_t dtype_tensors[ISO_DTYPE_COUNT], dtype_bytes[ISO_DTYPE_COUNT];
    uint64_t component_tensors[ISO_COMPONENT_COUNT], component_bytes[ISO_COMPONENT_COUNT];
    uint64_t decode_bytes[ISO_COMPONENT_COUNT]; /* read for one decoded token, without drafts */
    uint64_t unknown;                /* tensors of the store that no row expects */
    char first_unknown[ISO_WEIGHT_NAME_MAX];
} iso_weights_report;

/* Every expected tensor is in the store with its dtype and shape; the first mismatch is named with
 * expected and found. ISO_BAD_TENSOR, ISO_NOT_FOUND. */
iso_status iso_weights_check(const iso_config *config, const iso_store *store,
                             iso_weights_report *report, iso_error *error);

#endif
