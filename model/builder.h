/* builder: what the block files append nodes with. Errors are sticky: after the first failure every
 * call returns 0 and does nothing, so that a forward pass reads as a list of formulas. */
#ifndef ISO_MODEL_BUILDER_H
#define ISO_MODEL_BUILDER_H

#include "core/graph.h"
#include "ggml-style-ops/ops.h"
#include "ggml-style-ops/params.h"
#include "model/load.h"
#include "model/state.h"

/* Capacities that a graph is built for. Bits never depend on them. */
typedef struct iso_bucket {
    uint32_t tokens;                     /* T */
    uint32_t sequences;                  /* B */
    uint32_t logit_rows;                 /* L */
    uint32_t context;                    /* tokens any sequence of the step has at its end */
} iso_bucket;

/* Host-written inputs and scalars of a forward graph. Values are 0 where a model has none. */
typedef struct iso_forward_io {
    uint32_t tokens, sequences, logit_rows;              /* scalar indices */
    uint32_t groups[ISO_RATIO_MAX + 1];                  /* emitted entries, ratio > 1 */
    iso_value ids, rows, seqs, logit_ids;
    iso_value pages[ISO_RATIO_MAX + 1];
    iso_value group_list[ISO_RATIO_MAX + 1];             /* ratio 1: the rows themselves */
    iso_value group_angles[ISO_RATIO_MAX + 1];
    iso_value angles[2];                                 /* plain, YaRN */
    iso_value engram_codes[ISO_CONFIG_LIST_MAX], engram_scales[ISO_CONFIG_LIST_MAX];
} iso_forward_io;

typedef struct iso_builder {
    const iso_config *config;
    const iso_weight_directory *weights;
    const iso_state_spec *state;
    iso_bucket bucket;
    iso_graph *graph;
    iso_error *error;
    iso_status status;
    iso_forward_io io;
    char prefix[24];                     /* "layers.3." */
    uint32_t layer;
    iso_value *state_value;              /* newest version by state id; 0: not used yet */
    iso_value picks[ISO_RATIO_MAX + 1];  /* selected rows of the current index source, by ratio */
    iso_value candidates;                /* bits of the candidate source, or 0 */
} iso_builder;

/* Operands of a node, in the operator's order; missing ones are absent. */
#define ISO_IN(...) ((const iso_value[ISO_OP_INPUTS_MAX]){__VA_ARGS__})

/* Appends one node named prefix + name; returns output 0. */
iso_value iso_emit(iso_builder *b, const char *name, iso_op_id op, const void *params,
                   const iso_value *inputs);
/* The same for operators with several outputs. */
void iso_emit_all(iso_builder *b, const char *name, iso_op_id op, const void *params,
                  const iso_value *inputs, iso_value *outputs);

/* The weight prefix + name; 0 and a failed builder when the directory has none. */
iso_value iso_weight(iso_builder *b, const char *name);
/* Newest version of a state tensor of a layer; iso_state_set stores the one an update returned. */
iso_value iso_state_get(iso_builder *b, iso_state_kind kind, uint32_t layer);
void iso_state_set(iso_builder *b, iso_state_kind kind, uint32_t layer, iso_value value);

/* y = x w^T for an FP8 weight `name` (weight and scale): quantised input in, bf16 out. */
typedef struct iso_quantised {
    iso_value codes, scales;
} iso_quantised;
iso_quantised iso_quantise(iso_builder *b, const char *name, iso_value x);
iso_value iso_linear(iso_builder *b, const char *name, iso_quantised x, uint32_t heads);
iso_value iso_norm(iso_builder *b, const char *name, const char *weight, iso_value x);

#endif
