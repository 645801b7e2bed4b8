#include "model/builder.h"

#include <stdio.h>

static void full_name(const iso_builder *b, const char *name, char text[ISO_WEIGHT_NAME_MAX])
{
    const int bytes = snprintf(text, ISO_WEIGHT_NAME_MAX, "%s%s", b->prefix, name);

    ISO_ASSERT(bytes > 0 && bytes < ISO_WEIGHT_NAME_MAX);
}

void iso_emit_all(iso_builder *b, const char *name, iso_op_id op, const void *params,
                  const iso_value *inputs, iso_value *outputs)
{
    const iso_op *row = iso_op_get(op);
    char text[ISO_WEIGHT_NAME_MAX];

    for (uint32_t i = 0; i < row->output_count; i++)
        outputs[i] = 0;
    if (b->status != ISO_OK)
        return;
    full_name(b, name, text);
    b->status = iso_graph_append(b->graph, text, row, params, inputs, outputs, b->error);
}

iso_value iso_emit(iso_builder *b, const char *name, iso_op_id op, const void *params,
                   const iso_value *inputs)
{
    iso_value outputs[ISO_OP_OUTPUTS_MAX];

    iso_emit_all(b, name, op, params, inputs, outputs);
    return outputs[0];
}

iso_value iso_weight(iso_builder *b, const char *name)
{
    char text[ISO_WEIGHT_NAME_MAX];
    iso_tensor_desc desc;
    iso_value value = 0;
    uint32_t id;

    if (b->status != ISO_OK)
        return 0;
    full_name(b, name, text);
    if (!iso_weight_find(b->weights, text, &id, &desc)) {
        b->status = iso_fail(b->error, ISO_BAD_TENSOR, "weight %s was not loaded", text);
        return 0;
    }
    b->status = iso_graph_weight(b->graph, text, desc, id, &value, b->error);
    return value;
}

iso_value iso_state_get(iso_builder *b, iso_state_kind kind, uint32_t layer)
{
    const uint32_t id = iso_state_id(b->config, kind, layer);
    char text[ISO_WEIGHT_NAME_MAX];

    if (b->status != ISO_OK || b->state_value[id] != 0)
        return b->state_value[id];
    snprintf(text, sizeof text, "layers.%u.state.%s", layer, iso_state_kind_name(kind));
    b->status = iso_graph_state(b->graph, text,
                                iso_state_desc(b->state, kind, layer, b->bucket.tokens), id,
                                &b->state_value[id], b->error);
    return b->state_value[id];
}

void iso_state_set(iso_builder *b, iso_state_kind kind, uint32_t layer, iso_value value)
{
    b->state_value[iso_state_id(b->config, kind, layer)] = value;
}

iso_quantised iso_quantise(iso_builder *b, const char *name, iso_value x)
{
    const iso_quant_params params = {b->config->tile};
    iso_value out[ISO_OP_OUTPUTS_MAX];

    iso_emit_all(b, name, ISO_OP_ID_quant_fp8, &params, ISO_IN(x), out);
    return (iso_quantised){out[0], out[1]};
}

iso_value iso_linear(iso_builder *b, const char *name, iso_quantised x, uint32_t heads)
{
    const iso_tile_params params = {.tile = b->config->tile, .heads = heads};
    char weight[ISO_WEIGHT_NAME_MAX], scale[ISO_WEIGHT_NAME_MAX];

    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(scale, sizeof scale, "%s.scale", name);
    return iso_emit(b, name, ISO_OP_ID_matmul_fp8, &params,
                    ISO_IN(x.codes, x.scales, iso_weight(b, weight), iso_weight(b, scale)));
}

iso_value iso_norm(iso_builder *b, const char *name, const char *weight, iso_value x)
{
    const iso_norm_params params = {(float)b->config->norm_eps};

    return iso_emit(b, name, ISO_OP_ID_rms_norm, &params, ISO_IN(x, iso_weight(b, weight)));
}
