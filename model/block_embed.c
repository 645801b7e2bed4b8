/* block_embed: token ids to streams. All S streams start equal and the initial mix is one-hot. */
#include "model/blocks.h"

iso_stream iso_block_embed(iso_builder *b)
{
    const iso_stream_params streams = {b->config->streams};
    const iso_fill_row_params first = {b->config->streams, {1.0f}};
    const iso_value h = iso_emit(b, "embed", ISO_OP_ID_embed_rows, NULL,
                                 ISO_IN(b->io.ids, iso_weight(b, "embed.weight")));

    return (iso_stream){
        .x = iso_emit(b, "streams", ISO_OP_ID_stream_fill, &streams, ISO_IN(h)),
        .pre = iso_emit(b, "pre", ISO_OP_ID_fill_row, &first, ISO_IN(b->io.ids)),
    };
}
