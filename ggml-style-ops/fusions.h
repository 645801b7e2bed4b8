/* fusions: the rows of fusions.def as a table, in the order of choice. */
#ifndef ISO_OPS_FUSIONS_H
#define ISO_OPS_FUSIONS_H

#include "core/fusion.h"

typedef enum iso_fusion_id {
#define FUSION(name, ...) ISO_FUSION_ID_##name,
#include "ggml-style-ops/fusions.def"
#undef FUSION
    ISO_FUSION_ID_COUNT
} iso_fusion_id;

/* All rows; ISO_FUSION_ID_COUNT of them. */
const iso_fusion *iso_fusion_rows(void);

#endif
