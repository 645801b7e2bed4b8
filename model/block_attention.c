/* block_attention: window keys of this layer and selected compressed rows of its kv source, one
 * latent for keys and values of all heads (model-v41.md 4.11). No per-head norm in V4.1. */
#include "model/blocks.h"

#include "ggml-style-ops/inv_sqrt.h"

/* This step's window rows: quantised whole, rotary lanes included, kept as pending state. */
static void window_rows(iso_builder *b, iso_quantised x, iso_value angles)
{
    const iso_rope_params forward = {0};
    const iso_quant_params quant = {32};
    iso_value kv, out[ISO_OP_OUTPUTS_MAX];

    kv = iso_norm(b, "attn.kv_norm", "attn.kv_norm.weight", iso_linear(b, "attn.wkv", x, 0));
    kv = iso_emit(b, "attn.kv_rope", ISO_OP_ID_rope, &forward, ISO_IN(kv, angles));
    iso_emit_all(b, "attn.kv_quant", ISO_OP_ID_quant_fp8, &quant, ISO_IN(kv), out);
    iso_state_set(b, ISO_STATE_pend_code, b->layer,
                  iso_emit(b, "attn.kv_keep", ISO_OP_ID_state_keep, NULL,
                           ISO_IN(iso_state_get(b, ISO_STATE_pend_code, b->layer), out[0])));
    iso_state_set(b, ISO_STATE_pend_scale, b->layer,
                  iso_emit(b, "attn.kv_keep_scale", ISO_OP_ID_state_keep, NULL,
                           ISO_IN(iso_state_get(b, ISO_STATE_pend_scale, b->layer), out[1])));
}

static iso_value attend(iso_builder *b, iso_value q)
{
    const iso_config *c = b->config;
    const uint32_t ratio = iso_config_ratio(c, b->layer);
    const uint32_t owner = ratio > 0 ? iso_config_kv_owner(c, b->layer) : 0;
    const iso_attend_params params = {
        .window = c->window,
        .page_rows = b->state->page_rows,
        .scale = iso_inv_sqrt_u32(c->head_dim),
    };
    iso_value code = 0, scale = 0, pages = 0, picks = 0;

    if (ratio > 0) {
        code = iso_state_get(b, ISO_STATE_kv_code, owner);
        scale = iso_state_get(b, ISO_STATE_kv_scale, owner);
        pages = b->io.pages[ratio];
        picks = b->picks[ratio];
    }
    return iso_emit(b, "attn.attend", ISO_OP_ID_attend, &params,
                    ISO_IN(q, iso_state_get(b, ISO_STATE_ring_code, b->layer),
                           iso_state_get(b, ISO_STATE_ring_scale, b->layer),
                           iso_state_get(b, ISO_STATE_pend_code, b->layer),
                           iso_state_get(b, ISO_STATE_pend_scale, b->layer), code, scale, pages,
                           picks, b->io.rows, b->io.seqs, iso_weight(b, "attn.attn_sink")));
}

/* Grouped output projection: bf16 activations, exactly dequantised weights. */
static iso_value output(iso_builder *b, iso_value o)
{
    const iso_groups_params groups = {.tile = b->config->tile, .groups = b->config->o_groups};
    const iso_value z = iso_emit(b, "attn.wo_a", ISO_OP_ID_matmul_groups, &groups,
                                 ISO_IN(o, iso_weight(b, "attn.wo_a.weight"),
                                        iso_weight(b, "attn.wo_a.scale")));

    return iso_linear(b, "attn.wo_b", iso_quantise(b, "attn.z_quant", z), 0);
}

iso_value iso_block_attention(iso_builder *b, iso_value xn)
{
    const iso_config *c = b->config;
    const uint32_t ratio = iso_config_ratio(c, b->layer);
    const iso_value angles = b->io.angles[ratio > 0];
    const iso_rope_params forward = {0}, inverse = {.inverse = 1};
    const iso_quantised x = iso_quantise(b, "attn.x_quant", xn);
    iso_quantised qr;
    iso_value q, o;

    q = iso_norm(b, "attn.q_norm", "attn.q_norm.weight", iso_linear(b, "attn.wq_a", x, 0));
    qr = iso_quantise(b, "attn.q_quant", q);
    q = iso_linear(b, "attn.wq_b", qr, c->head_count);
    q = iso_emit(b, "attn.q_rope", ISO_OP_ID_rope, &forward, ISO_IN(q, angles));
    window_rows(b, x, angles);
    if (iso_config_is_kv_source(c, b->layer))
        iso_block_compress(b, xn);
    if (iso_config_is_index_source(c, b->layer))
        iso_block_index(b, qr, xn);
    o = attend(b, q);
    o = iso_emit(b, "attn.unrope", ISO_OP_ID_rope, &inverse, ISO_IN(o, angles));
    return output(b, o);
}
