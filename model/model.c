#include "model/model.h"

#include "core/alloc.h"
#include "model/engram.h"

/* The derived constants must fit the configuration before anything is loaded. */
static iso_status check_engram(const iso_config *config, iso_error *error)
{
    const uint32_t count = config->engram_layers.count;
    iso_engram_layer *layers;
    iso_status status;

    if (!config->has_engram)
        return ISO_OK;
    if (config->engram_rows.count != count)
        return iso_fail(error, ISO_BAD_CONFIG, "%s: key engram_num_embeddings is missing",
                        config->source);
    layers = iso_alloc_zero(count, sizeof *layers, "engram");
    if (layers == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the Engram constants");
    status = iso_engram_derive(config, layers, error);
    iso_release(layers, count * sizeof *layers);
    return status;
}

iso_status iso_model_open(iso_store *store, iso_model **model, iso_error *error)
{
    iso_model *made = iso_alloc_zero(1, sizeof *made, "model");
    iso_status status;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory opening a model");
    made->store = store;
    ISO_GOTO(iso_config_read(store, &made->config, error));
    ISO_GOTO(check_engram(&made->config, error));
    ISO_GOTO(iso_weights_check(&made->config, store, &made->report, error));
    *model = made;
    return ISO_OK;
done:
    iso_release(made, sizeof *made);
    return status;
}

void iso_model_close(iso_model **model)
{
    if (model == NULL)
        return;
    if (*model != NULL)
        iso_release(*model, sizeof **model);
    *model = NULL;
}

void iso_model_get_info(const iso_model *model, iso_model_info *info)
{
    const iso_config *c = &model->config;
    uint64_t decode = 0;

    for (int i = 0; i < ISO_COMPONENT_COUNT; i++)
        decode += model->report.decode_bytes[i];
    *info = (iso_model_info){
        .family = c->family, .vocab_size = c->vocab_size, .hidden_size = c->hidden_size,
        .layer_count = c->layer_count, .context_max = c->context_max, .bos_id = (int32_t)c->bos_id,
        .eos_id = (int32_t)c->eos_id, .pad_id = (int32_t)c->pad_id,
        .compressed_vocab_size = c->has_engram ? c->engram_keys : 0,
        .tensor_count = model->report.tensors, .weight_bytes = model->report.bytes,
        .decode_bytes = decode, .kv_bytes_per_token = iso_config_kv_bytes_per_token(c),
        .ring_bytes = iso_config_ring_bytes(c),
    };
}
