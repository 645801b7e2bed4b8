/* build: the graphs of a model: prelude (what depends on ids and positions only), forward, commit.
 * The forward pass is the same for 1 token and for 1,024; every row carries its sequence. */
#ifndef ISO_MODEL_BUILD_H
#define ISO_MODEL_BUILD_H

#include "model/builder.h"

typedef struct iso_model_parts {
    const iso_config *config;
    const iso_weight_directory *weights;
    const iso_state_spec *state;
} iso_model_parts;

/* Forward graph, sealed; output 0 is the logits f32 [L,V]. *io says where the host writes. */
iso_status iso_build_forward(const iso_model_parts *parts, const iso_bucket *bucket,
                             iso_graph **graph, iso_forward_io *io, iso_error *error);

/* Prelude graph, sealed: rotary angles of rows and of emitted groups, Engram row ids. */
typedef struct iso_prelude_io {
    uint32_t tokens, groups[ISO_RATIO_MAX + 1];          /* scalars */
    iso_value positions;                                 /* i32 [T] */
    iso_value group_positions[ISO_RATIO_MAX + 1];        /* i32 [G]: first position, ratio > 1 */
    iso_value history;                                   /* i32 [T,ngram], newest first */
    int32_t out_angles[2], out_group_angles[ISO_RATIO_MAX + 1];      /* output indices; -1 none */
    int32_t out_engram[ISO_CONFIG_LIST_MAX];
} iso_prelude_io;
iso_status iso_build_prelude(const iso_model_parts *parts, const iso_bucket *bucket,
                             iso_graph **graph, iso_prelude_io *io, iso_error *error);

/* Commit graph, sealed: folds the first commit[b] pending rows of each sequence into its rings. */
typedef struct iso_commit_io {
    uint32_t sequences;
    iso_value seqs, commit;                              /* i32 [B,4], i32 [B] */
} iso_commit_io;
iso_status iso_build_commit(const iso_model_parts *parts, uint32_t sequences, iso_graph **graph,
                            iso_commit_io *io, iso_error *error);

/* Emitted entries of ratio m in a step of T rows: at most one per row. */
uint32_t iso_bucket_groups(const iso_bucket *bucket, uint32_t ratio);

#endif
