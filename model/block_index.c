/* block_index: which compressed entries a query attends to (model-v41.md 4.13, 4.14). The keys are
 * the owner's own (ruling D1); the candidate source's blocks restrict the index sources behind. */
#include "model/blocks.h"

#include "ggml-style-ops/inv_sqrt.h"

static uint32_t round_up(uint32_t x, uint32_t to) { return (x + to - 1) / to * to; }

static iso_value scores(iso_builder *b, iso_quantised qr, iso_value xn, uint32_t ratio)
{
    const iso_config *c = b->config;
    const uint32_t owner = iso_config_kv_owner(c, b->layer);
    const iso_rope_params forward = {0};
    const iso_matmul_params bf16 = {0};
    const iso_index_params index = {
        .ratio = ratio,
        .page_rows = b->state->page_rows,
        .entries = round_up(b->bucket.context / ratio + 1, 32),
        .scale = iso_inv_sqrt_u32(c->index_heads * c->index_dim),
    };
    iso_value q, weight, out[ISO_OP_OUTPUTS_MAX];

    q = iso_linear(b, "attn.indexer.wq_b", qr, c->index_heads);
    q = iso_emit(b, "index.q_rope", ISO_OP_ID_rope, &forward, ISO_IN(q, b->io.angles[1]));
    iso_emit_all(b, "index.q_quant", ISO_OP_ID_quant_mxfp4, NULL, ISO_IN(q), out);
    weight = iso_emit(b, "index.weight", ISO_OP_ID_matmul_bf16, &bf16,
                      ISO_IN(xn, iso_weight(b, "attn.indexer.weights_proj.weight")));
    return iso_emit(b, "index.score", ISO_OP_ID_index_score, &index,
                    ISO_IN(out[0], out[1], iso_state_get(b, ISO_STATE_key_code, owner),
                           iso_state_get(b, ISO_STATE_key_scale, owner), weight, b->io.rows,
                           b->io.pages[ratio]));
}

void iso_block_index(iso_builder *b, iso_quantised qr, iso_value xn)
{
    const iso_config *c = b->config;
    const uint32_t ratio = iso_config_ratio(c, b->layer);
    const iso_topk_params topk = {ratio, c->index_topk};
    const iso_candidate_params candidate = {ratio, c->candidate_block, c->candidate_blocks};
    const bool is_source = c->candidate_source == (int32_t)b->layer;
    const bool reads = c->candidate_source >= 0 && (int32_t)b->layer > c->candidate_source;
    const iso_value score = scores(b, qr, xn, ratio);

    if (is_source)
        b->candidates = iso_emit(b, "index.candidates", ISO_OP_ID_candidate_blocks, &candidate,
                                 ISO_IN(score, b->io.rows));
    b->picks[ratio] = iso_emit(b, "index.topk", ISO_OP_ID_topk_rows, &topk,
                               ISO_IN(score, b->io.rows, reads ? b->candidates : 0));
}
