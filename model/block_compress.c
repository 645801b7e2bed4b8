/* block_compress: the compressed entries that a kv source layer emits in this step: a latent per
 * complete group of m tokens, its index key, and its packed main-KV row (model-v41.md 4.12, 4.13).
 * The latent before rotation feeds the key; both rotate at the group's first position. */
#include "model/blocks.h"

/* m > 1: pool the group's values by the softmax of its gates; open groups wait in the state. */
static iso_value pooled_latent(iso_builder *b, iso_value xn, uint32_t ratio)
{
    const iso_matmul_params f32 = {.out_f32 = 1};
    const iso_pool_params pool = {ratio};
    const iso_value v = iso_emit(b, "compress.v", ISO_OP_ID_matmul_bf16, &f32,
                                 ISO_IN(xn, iso_weight(b, "attn.compressor.wkv.weight")));
    const iso_value g = iso_emit(b, "compress.g", ISO_OP_ID_matmul_bf16, &f32,
                                 ISO_IN(xn, iso_weight(b, "attn.compressor.wgate.weight")));

    iso_state_set(b, ISO_STATE_pend_v, b->layer,
                  iso_emit(b, "compress.keep_v", ISO_OP_ID_state_keep, NULL,
                           ISO_IN(iso_state_get(b, ISO_STATE_pend_v, b->layer), v)));
    iso_state_set(b, ISO_STATE_pend_g, b->layer,
                  iso_emit(b, "compress.keep_g", ISO_OP_ID_state_keep, NULL,
                           ISO_IN(iso_state_get(b, ISO_STATE_pend_g, b->layer), g)));
    return iso_emit(b, "compress.pool", ISO_OP_ID_compress_pool, &pool,
                    ISO_IN(v, g, iso_state_get(b, ISO_STATE_group_v, b->layer),
                           iso_state_get(b, ISO_STATE_group_g, b->layer),
                           b->io.group_list[ratio], b->io.seqs));
}

static void append(iso_builder *b, const char *name, iso_state_kind kind, iso_value src,
                   uint32_t ratio)
{
    const iso_page_params page = {b->state->page_rows};

    iso_state_set(b, kind, b->layer,
                  iso_emit(b, name, ISO_OP_ID_state_append, &page,
                           ISO_IN(iso_state_get(b, kind, b->layer), src,
                                  b->io.group_list[ratio], b->io.pages[ratio])));
}

void iso_block_compress(iso_builder *b, iso_value xn)
{
    const uint32_t ratio = iso_config_ratio(b->config, b->layer);
    const iso_rope_params forward = {0};
    const iso_matmul_params bf16 = {0};
    iso_value latent, key, out[ISO_OP_OUTPUTS_MAX];

    latent = ratio > 1 ? pooled_latent(b, xn, ratio)
                       : iso_emit(b, "compress.v", ISO_OP_ID_matmul_bf16, &bf16,
                                  ISO_IN(xn, iso_weight(b, "attn.compressor.wkv.weight")));
    latent = iso_norm(b, "compress.norm", "attn.compressor.norm.weight", latent);

    key = iso_emit(b, "index.k", ISO_OP_ID_matmul_bf16, &bf16,
                   ISO_IN(latent, iso_weight(b, "attn.indexer.wk.weight")));
    key = iso_norm(b, "index.k_norm", "attn.indexer.k_norm.weight", key);
    key = iso_emit(b, "index.k_rope", ISO_OP_ID_rope, &forward,
                   ISO_IN(key, b->io.group_angles[ratio]));
    iso_emit_all(b, "index.k_quant", ISO_OP_ID_quant_mxfp4, NULL, ISO_IN(key), out);
    append(b, "index.k_append", ISO_STATE_key_code, out[0], ratio);
    append(b, "index.k_append_scale", ISO_STATE_key_scale, out[1], ratio);

    latent = iso_emit(b, "compress.rope", ISO_OP_ID_rope, &forward,
                      ISO_IN(latent, b->io.group_angles[ratio]));
    iso_emit_all(b, "compress.quant", ISO_OP_ID_quant_nvfp4, NULL, ISO_IN(latent), out);
    append(b, "compress.append", ISO_STATE_kv_code, out[0], ratio);
    append(b, "compress.append_scale", ISO_STATE_kv_scale, out[1], ratio);
}
