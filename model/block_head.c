/* block_head: the last mix collapses the streams; rows whose logits are wanted are gathered, so the
 * head is computed for those only. */
#include "model/blocks.h"

iso_value iso_block_head(iso_builder *b, iso_stream stream)
{
    const iso_matmul_params f32 = {.out_f32 = 1};
    iso_value y = iso_emit(b, "head.collapse", ISO_OP_ID_hc_collapse, NULL,
                           ISO_IN(stream.x, stream.pre));

    y = iso_emit(b, "head.rows", ISO_OP_ID_embed_rows, NULL, ISO_IN(b->io.logit_ids, y));
    y = iso_norm(b, "head.norm", "norm.weight", y);
    return iso_emit(b, "head.logits", ISO_OP_ID_matmul_bf16, &f32,
                    ISO_IN(y, iso_weight(b, "head.weight")));
}
