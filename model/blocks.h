/* blocks: the parts of a forward pass; each appends its nodes, one block, one file. Formulas are
 * those of spec/model-v41.md section 4; T tokens, S streams, D hidden. */
#ifndef ISO_MODEL_BLOCKS_H
#define ISO_MODEL_BLOCKS_H

#include "model/builder.h"

/* The residual of a forward pass: X bf16 [T,S,D] and the mix that the next site collapses with. */
typedef struct iso_stream {
    iso_value x;
    iso_value pre;                       /* f32 [T,S] */
} iso_stream;

/* block_embed.c: ids -> X with equal streams, pre = [1,0,0,0]. */
iso_stream iso_block_embed(iso_builder *b);

/* block_hc.c: the coefficients of one site, and the two ends of a sublayer. */
typedef struct iso_site {
    iso_value pre, post, comb;
} iso_site;
iso_site iso_block_mix(iso_builder *b, const char *site, iso_value x);        /* "attn", "ffn" */
iso_value iso_block_collapse(iso_builder *b, const char *site, const char *norm, iso_value x,
                             iso_value pre);
iso_value iso_block_expand(iso_builder *b, const char *site, iso_value u, iso_value x,
                           const iso_site *mix);

/* block_engram.c: X -> X, before the block body. */
iso_value iso_block_engram(iso_builder *b, iso_value x);

/* block_compress.c: appends this step's compressed entries of a kv source layer. */
void iso_block_compress(iso_builder *b, iso_value xn);

/* block_index.c: scores, candidates and the selected rows of an index source layer; leaves the
 * list in b->picks. qr: quantised q_norm output; xn: attn_norm output. */
void iso_block_index(iso_builder *b, iso_quantised qr, iso_value xn);

/* block_attention.c: xn bf16 [T,D] -> bf16 [T,D]. */
iso_value iso_block_attention(iso_builder *b, iso_value xn);

/* block_moe.c: xn bf16 [T,D] -> bf16 [T,D]. */
iso_value iso_block_moe(iso_builder *b, iso_value xn);

/* block_head.c: logits f32 [L,V] of the wanted rows. */
iso_value iso_block_head(iso_builder *b, iso_stream stream);

#endif
