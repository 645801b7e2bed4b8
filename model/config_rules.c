#include "model/config_rules.h"

#include <stdarg.h>

/* One rule per call: false is ISO_BAD_CONFIG with the source and the sentence. */
#define RULE(condition, ...)                                                                      \
    do {                                                                                          \
        if (!(condition))                                                                         \
            return broken(what, error, __VA_ARGS__);                                              \
    } while (0)

static iso_status broken(const char *what, iso_error *error, const char *format, ...)
    ISO_PRINTF(3, 4);

static iso_status broken(const char *what, iso_error *error, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return iso_fail(error, ISO_BAD_CONFIG, "%s: %s", what, text);
}

static bool holds(const iso_config_list *list, uint32_t value)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == (int32_t)value)
            return true;
    return false;
}

static iso_status check_ascending(const iso_config_list *list, const char *key, uint32_t limit,
                                  const char *what, iso_error *error)
{
    for (uint32_t i = 0; i < list->count; i++) {
        RULE(i == 0 || list->at[i] > list->at[i - 1], "%s[%u] is %d, expected more than %d", key,
             i, list->at[i], list->at[i - 1]);
        RULE(list->at[i] < (int32_t)limit, "%s[%u] is %d, expected a layer below %u", key, i,
             list->at[i], limit);
    }
    return ISO_OK;
}

static iso_status check_shapes(const iso_config *c, const char *what, iso_error *error)
{
    const struct {
        const char *key;
        uint32_t value;
    } quantised[] = {
        {"hidden_size", c->hidden_size}, {"q_lora_rank", c->q_rank},
        {"moe_intermediate_size", c->moe_dim}, {"head_dim", c->head_dim},
        {"index_head_dim", c->index_dim}, {"o_lora_rank", c->o_rank},
    };

    RULE(c->head_count % c->o_groups == 0, "num_attention_heads %u is no multiple of o_groups %u",
         c->head_count, c->o_groups);
    for (size_t i = 0; i < ISO_COUNT_OF(quantised); i++)
        RULE(quantised[i].value % 32 == 0, "%s is %u, expected a multiple of 32",
             quantised[i].key, quantised[i].value);
    RULE(c->rope_dim % 2 == 0, "qk_rope_head_dim is %u, expected an even number", c->rope_dim);
    RULE(c->rope_dim <= c->head_dim, "qk_rope_head_dim is %u, expected at most head_dim %u",
         c->rope_dim, c->head_dim);
    RULE(c->rope_dim <= c->index_dim, "qk_rope_head_dim is %u, expected at most index_head_dim %u",
         c->rope_dim, c->index_dim);
    RULE(c->expert_picks <= c->expert_count, "num_experts_per_tok is %u, expected at most %u",
         c->expert_picks, c->expert_count);
    RULE((int64_t)c->candidate_blocks * c->candidate_block - (c->candidate_block - 1)
             >= c->index_topk || c->candidate_source < 0,
         "candidate_topk_blocks %u of candidate_block_size %u cannot hold index_topk %u",
         c->candidate_blocks, c->candidate_block, c->index_topk);
    return ISO_OK;
}

static iso_status check_sources(const iso_config *c, const char *what, iso_error *error)
{
    ISO_TRY(check_ascending(&c->kv_sources, "kv_source_layer_ids", c->layer_count, what, error));
    ISO_TRY(check_ascending(&c->index_sources, "index_source_layer_ids", c->layer_count, what,
                            error));
    for (uint32_t i = 0; i < c->kv_sources.count; i++)
        RULE(holds(&c->index_sources, (uint32_t)c->kv_sources.at[i]),
             "kv source layer %d is no index source", c->kv_sources.at[i]);
    for (uint32_t i = 0; i < c->index_sources.count; i++)
        RULE(c->compress_ratios.at[c->index_sources.at[i]] > 0,
             "index source layer %d has compress ratio 0", c->index_sources.at[i]);
    for (uint32_t layer = 0; layer < c->layer_count; layer++) {
        const int32_t ratio = c->compress_ratios.at[layer];
        uint32_t owner, index;

        if (ratio == 0)
            continue;
        owner = iso_config_kv_owner(c, layer);
        index = iso_config_index_owner(c, layer);
        RULE(owner != UINT32_MAX && c->compress_ratios.at[owner] == ratio,
             "layer %u with compress ratio %d has no kv source of that ratio", layer, ratio);
        RULE(index != UINT32_MAX && c->compress_ratios.at[index] == ratio && index >= owner,
             "layer %u with compress ratio %d has no index source of that ratio", layer, ratio);
    }
    if (c->candidate_source >= 0) {
        RULE(holds(&c->index_sources, (uint32_t)c->candidate_source),
             "candidate_source_layer_id is %d, expected an index source layer",
             c->candidate_source);
        RULE(c->candidate_source == c->kv_sources.at[c->kv_sources.count - 1],
             "candidate_source_layer_id is %d, expected the last kv source layer %d",
             c->candidate_source, c->kv_sources.at[c->kv_sources.count - 1]);
    }
    return ISO_OK;
}

static iso_status check_engram(const iso_config *c, const char *what, iso_error *error)
{
    if (!c->has_engram)
        return ISO_OK;
    ISO_TRY(check_ascending(&c->engram_layers, "engram_layer_ids", c->layer_count, what, error));
    RULE(c->engram_ngram != 0 && c->engram_vocab != 0 && c->engram_heads != 0
             && c->engram_dim != 0 && c->engram_keys != 0,
         "engram_layer_ids is set, but another engram_* key is missing");
    RULE(c->engram_dim % 32 == 0, "engram_head_dim is %u, expected a multiple of 32",
         c->engram_dim);
    RULE(c->engram_rows.count == 0 || c->engram_rows.count == c->engram_layers.count,
         "engram_num_embeddings has %u entries, expected %u", c->engram_rows.count,
         c->engram_layers.count);
    RULE(c->engram_pad < c->vocab_size, "engram_pad_token_id is %u, expected less than %u",
         c->engram_pad, c->vocab_size);
    RULE(c->engram_keys <= c->vocab_size,
         "engram_compressed_vocab_size is %u, expected at most %u", c->engram_keys,
         c->vocab_size);
    return ISO_OK;
}

static iso_status check_draft(const iso_config *c, const char *what, iso_error *error)
{
    if (c->draft_stages == 0)
        return ISO_OK;
    ISO_TRY(check_ascending(&c->draft_targets, "dspark_target_layer_ids", c->layer_count, what,
                            error));
    RULE(c->draft_targets.count != 0 && c->draft_experts != 0 && c->draft_picks != 0
             && c->draft_rank != 0 && c->draft_block != 0,
         "num_nextn_predict_layers is %u, but a dspark_* key is missing", c->draft_stages);
    RULE(c->draft_picks <= c->draft_experts,
         "dspark_num_experts_per_tok is %u, expected at most %u", c->draft_picks,
         c->draft_experts);
    return ISO_OK;
}

static iso_status check_ids(const iso_config *c, const char *what, iso_error *error)
{
    const struct {
        const char *key;
        uint32_t value;
    } id[] = {{"bos_token_id", c->bos_id}, {"eos_token_id", c->eos_id},
              {"pad_token_id", c->pad_id}, {"image_token_id", c->image_id},
              {"dspark_noise_token_id", c->draft_noise}};

    for (size_t i = 0; i < ISO_COUNT_OF(id); i++)
        RULE(id[i].value < c->vocab_size, "%s is %u, expected less than vocab_size %u",
             id[i].key, id[i].value, c->vocab_size);
    return ISO_OK;
}

static iso_status check_vision(const iso_config *c, const char *what, iso_error *error)
{
    const bool any = c->vision_layers || c->vision_dim || c->vision_heads || c->vision_inter
                  || c->vision_patch || c->vision_downsample;
    const bool all = c->vision_layers && c->vision_dim && c->vision_heads && c->vision_inter
                  && c->vision_patch && c->vision_downsample;

    RULE(any == all, "some vision keys are present and others are missing");
    RULE(!all || c->vision_dim % c->vision_heads == 0,
         "vision hidden_size %u is no multiple of num_attention_heads %u", c->vision_dim,
         c->vision_heads);
    return ISO_OK;
}

iso_status iso_config_check(const iso_config *c, const char *what, iso_error *error)
{
    RULE(c->compress_ratios.count == c->layer_count + c->draft_stages,
         "compress_ratios has %u entries, expected %u layers + %u draft stages",
         c->compress_ratios.count, c->layer_count, c->draft_stages);
    for (uint32_t i = c->layer_count; i < c->compress_ratios.count; i++)
        RULE(c->compress_ratios.at[i] == 0, "compress_ratios[%u] is %d, expected 0 (a draft stage)",
             i, c->compress_ratios.at[i]);
    ISO_TRY(check_shapes(c, what, error));
    ISO_TRY(check_sources(c, what, error));
    ISO_TRY(check_engram(c, what, error));
    ISO_TRY(check_draft(c, what, error));
    ISO_TRY(check_ids(c, what, error));
    return check_vision(c, what, error);
}

/* ---- roles of a layer ---- */

uint32_t iso_config_ratio(const iso_config *config, uint32_t layer)
{
    return (uint32_t)config->compress_ratios.at[layer];
}

bool iso_config_is_kv_source(const iso_config *config, uint32_t layer)
{
    return holds(&config->kv_sources, layer);
}

bool iso_config_is_index_source(const iso_config *config, uint32_t layer)
{
    return holds(&config->index_sources, layer);
}

static uint32_t last_at_most(const iso_config_list *list, uint32_t layer)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] <= (int32_t)layer)
            found = (uint32_t)list->at[i];
    return found;
}

uint32_t iso_config_kv_owner(const iso_config *config, uint32_t layer)
{
    return last_at_most(&config->kv_sources, layer);
}

uint32_t iso_config_index_owner(const iso_config *config, uint32_t layer)
{
    return last_at_most(&config->index_sources, layer);
}

int32_t iso_config_engram_index(const iso_config *config, uint32_t layer)
{
    for (uint32_t i = 0; i < config->engram_layers.count; i++)
        if (config->engram_layers.at[i] == (int32_t)layer)
            return (int32_t)i;
    return -1;
}

uint64_t iso_config_kv_bytes_per_token(const iso_config *config)
{
    const uint64_t entry = config->head_dim / 2 + config->head_dim / 16 + config->index_dim / 2
                         + config->index_dim / 32;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < config->kv_sources.count; i++)
        bytes += 2 * entry / (uint64_t)config->compress_ratios.at[config->kv_sources.at[i]];
    return bytes / 2;
}

uint64_t iso_config_ring_bytes(const iso_config *config)
{
    return (uint64_t)config->layer_count * config->window
         * (config->head_dim + config->head_dim / 32);
}
