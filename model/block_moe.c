/* block_moe: k routed FP4 experts and one shared FP8 expert (model-v41.md 4.16). The routing weight
 * is applied before w2; the sum runs over ascending expert ids, the shared expert last. */
#include "model/blocks.h"

#include "ggml-style-ops/lane/lane.h"

static iso_value routed_linear(iso_builder *b, const char *name, iso_quantised x, iso_value ids)
{
    char codes[48], scales[48];

    snprintf(codes, sizeof codes, "ffn.experts.%s.weight", name);
    snprintf(scales, sizeof scales, "ffn.experts.%s.scale", name);
    return iso_emit(b, codes, ISO_OP_ID_matmul_experts, NULL,
                    ISO_IN(x.codes, x.scales, ids, iso_weight(b, "ffn.experts.slot"),
                           iso_weight(b, codes), iso_weight(b, scales)));
}

static iso_value routed(iso_builder *b, iso_quantised x, iso_value ids, iso_value weights)
{
    const iso_swiglu_params limit = {(float)b->config->swiglu_limit};
    const iso_value g = routed_linear(b, "w1", x, ids), u = routed_linear(b, "w3", x, ids);
    const iso_value a = iso_emit(b, "ffn.experts.swiglu", ISO_OP_ID_swiglu, &limit,
                                 ISO_IN(g, u, weights));

    return routed_linear(b, "w2", iso_quantise(b, "ffn.experts.quant", a), ids);
}

static iso_value shared(iso_builder *b, iso_quantised x)
{
    const iso_swiglu_params limit = {(float)b->config->swiglu_limit};
    const iso_value g = iso_linear(b, "ffn.shared_experts.w1", x, 0);
    const iso_value u = iso_linear(b, "ffn.shared_experts.w3", x, 0);
    const iso_value a =
        iso_emit(b, "ffn.shared_experts.swiglu", ISO_OP_ID_swiglu, &limit, ISO_IN(g, u));

    return iso_linear(b, "ffn.shared_experts.w2", iso_quantise(b, "ffn.shared_experts.quant", a),
                      0);
}

iso_value iso_block_moe(iso_builder *b, iso_value xn)
{
    const iso_matmul_params f32 = {.out_f32 = 1};
    const iso_route_params params = {
        .count = b->config->expert_picks,
        .tiny = lane_float(LANE_EPS_1E20),
        .scale = (float)b->config->route_scale,
        .temperature = (float)b->config->gate_temperature,
    };
    const iso_value logits = iso_emit(b, "ffn.gate", ISO_OP_ID_matmul_bf16, &f32,
                                      ISO_IN(xn, iso_weight(b, "ffn.gate.weight")));
    const iso_quantised x = iso_quantise(b, "ffn.x_quant", xn);
    iso_value pick[ISO_OP_OUTPUTS_MAX], y;

    iso_emit_all(b, "ffn.route", ISO_OP_ID_route, &params,
                 ISO_IN(logits, iso_weight(b, "ffn.gate.bias"),
                        iso_weight(b, "ffn.gate.bias_vl")), pick);
    y = routed(b, x, pick[0], pick[1]);
    return iso_emit(b, "ffn.sum", ISO_OP_ID_moe_sum, NULL, ISO_IN(y, shared(b, x)));
}
