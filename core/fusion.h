/* fusion: several operators as one step. The table of fusions is ggml-style-ops/fusions.def; core/
 * and backends/ take pointers to rows of it.
 *
 * A fusion has no contract of its own: it means its parts, one after the other, bit for bit. */
#ifndef ISO_CORE_FUSION_H
#define ISO_CORE_FUSION_H

#include "core/op.h"

enum { ISO_FUSION_PARTS_MAX = 6 };

typedef struct iso_fusion {
    const char *name;
    uint32_t part_count;                     /* >= 2 */
    const char *part[ISO_FUSION_PARTS_MAX];  /* names of operators */
} iso_fusion;

/* Where an input of a part comes from. */
typedef struct iso_fused_link {
    uint32_t part;                           /* 1 + index of an earlier part; 0: from outside */
    uint32_t output;
} iso_fused_link;

/* One match of a fusion: the calls of its parts and how they hang together. */
typedef struct iso_fused_call {
    const iso_fusion *fusion;
    const iso_op_call *part[ISO_FUSION_PARTS_MAX];
    iso_fused_link link[ISO_FUSION_PARTS_MAX][ISO_OP_INPUTS_MAX];
    /* Bit o: output o of the part is read outside the fusion (or is state), so it must be stored.
     * The other outputs live inside. */
    uint32_t stored[ISO_FUSION_PARTS_MAX];
} iso_fused_call;

#endif
