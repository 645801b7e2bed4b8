/* block_engram: hashed n-gram memory, added to every stream before the block body (engram.md 7).
 * The 24 rows of a token arrive as codes and scales, fetched ahead by row number. */
#include "model/blocks.h"

iso_value iso_block_engram(iso_builder *b, iso_value x)
{
    const int32_t index = iso_config_engram_index(b->config, b->layer);
    const iso_norm_params norm = {(float)b->config->norm_eps};
    iso_value e, kv;

    ISO_ASSERT(index >= 0);
    e = iso_emit(b, "engram.rows", ISO_OP_ID_dequant, NULL,
                 ISO_IN(b->io.engram_codes[index], b->io.engram_scales[index]));
    kv = iso_linear(b, "engram.wkv", iso_quantise(b, "engram.quant", e), 0);
    return iso_emit(b, "engram.gate", ISO_OP_ID_engram_gate, &norm,
                    ISO_IN(x, kv, iso_weight(b, "engram.q_weight"),
                           iso_weight(b, "engram.k_weight")));
}
