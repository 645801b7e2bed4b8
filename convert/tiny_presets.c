#include "convert/tiny_presets.h"

#include <stdlib.h>
#include <string.h>

#define LIST(...)                                                                                 \
    {.count = sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), .at = {__VA_ARGS__}}

static const iso_tiny_preset presets[] = {
#define PRESET(preset, about, shards, sparse, tokenizer, ...)                                     \
    {.name = preset, .description = about, .shard_count = shards, .is_sparse = sparse,            \
     .has_tokenizer = tokenizer, .config = {__VA_ARGS__}},
#include "convert/tiny_presets.def"
#undef PRESET
};
#undef LIST

const iso_tiny_preset *iso_tiny_preset_at(uint32_t index)
{
    return index < ISO_COUNT_OF(presets) ? &presets[index] : NULL;
}

const iso_tiny_preset *iso_tiny_preset_find(const char *name)
{
    for (size_t i = 0; i < ISO_COUNT_OF(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

/* ---- config.json ---- */

/* One section of the file: the members whose nested path is PREFIX plus a plain key. */
typedef struct section {
    const iso_config *config;
    iso_text *text;
    const char *prefix;
    const char *indent;
} section;

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The key of `nested` in this section, or NULL. Groups that the model does not have are left out,
 * and so is gate_temp, which the released file does not have. */
static const char *key_in(const section *s, const char *nested)
{
    const char *key = nested + strlen(s->prefix);

    if (!begins(nested, s->prefix) || strchr(key, '.') != NULL)
        return NULL;
    if (begins(key, "engram_") && s->config->engram_layers.count == 0)
        return NULL;
    if (begins(key, "dspark_") && s->config->draft_stages == 0)
        return NULL;
    return strcmp(key, "gate_temp") == 0 ? NULL : key;
}

/* The shortest decimal that reads back as the same double. */
static void real_text(double value, char out[32])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static void write_int(const section *s, const char *nested, int64_t value)
{
    const char *key = key_in(s, nested);

    if (key != NULL)
        iso_text_printf(s->text, "%s\"%s\": %lld,\n", s->indent, key, (long long)value);
}

static void write_real(const section *s, const char *nested, double value)
{
    const char *key = key_in(s, nested);
    char digits[32];

    real_text(value, digits);
    if (key != NULL)
        iso_text_printf(s->text, "%s\"%s\": %s,\n", s->indent, key, digits);
}

static void write_list(const section *s, const char *nested, const iso_config_list *list)
{
    const char *key = key_in(s, nested);

    if (key == NULL)
        return;
    iso_text_printf(s->text, "%s\"%s\": [", s->indent, key);
    for (uint32_t i = 0; i < list->count; i++)
        iso_text_printf(s->text, "%s%d", i == 0 ? "" : ", ", list->at[i]);
    iso_text_printf(s->text, "],\n");
}

static void write_word(const section *s, const char *nested, const char *word)
{
    const char *key = key_in(s, nested);

    if (key != NULL)
        iso_text_printf(s->text, "%s\"%s\": \"%s\",\n", s->indent, key, word);
}

/* Every row of config.def that belongs to the section, each line with a comma at its end. */
static void write_rows(const section *s)
{
    const iso_config *c = s->config;

#define U32(member, required, nested, flat, low, high, fallback) write_int(s, nested, c->member);
#define I32(member, required, nested, flat, low, high, fallback) write_int(s, nested, c->member);
#define REAL(member, required, nested, flat, low, high, fallback) write_real(s, nested, c->member);
#define LIST(member, required, nested, flat, low, high) write_list(s, nested, &c->member);
#define WORD(required, nested, flat, expected) write_word(s, nested, expected);
#include "model/config.def"
#undef U32
#undef I32
#undef REAL
#undef LIST
#undef WORD
}

static void write_vision(const iso_config *config, iso_text *text)
{
    const section vision = {config, text, "vision_config.", "    "};

    if (config->vision_layers == 0)
        return;
    iso_text_printf(text, "  \"vision_config\": {\n    \"model_type\": \"deepseek_v41_vision\",\n");
    write_rows(&vision);
    iso_text_printf(text, "    \"rope_theta\": 10000,\n    \"max_image_tokens\": 1024,\n"
                    "    \"min_pixels\": 295936,\n    \"max_wh_ratio\": null\n  },\n");
}

void iso_tiny_config_text(const iso_config *config, iso_text *text)
{
    const section top = {config, text, "", "  "};
    const section body = {config, text, "text_config.", "    "};
    const section rope = {config, text, "text_config.rope_scaling.", "      "};
    const section quant = {config, text, "quantization_config.", "    "};

    iso_text_printf(text, "{\n  \"architectures\": [\"DeepseekV41ForCausalLM\"],\n"
                    "  \"model_type\": \"deepseek_v41\",\n");
    write_rows(&top);
    iso_text_printf(text, "  \"text_config\": {\n    \"model_type\": \"deepseek_v41_text\",\n");
    write_rows(&body);
    iso_text_printf(text, "    \"rope_scaling\": {\n");
    write_rows(&rope);
    iso_text_printf(text, "      \"rope_type\": \"yarn\"\n    },\n"
                    "    \"num_key_value_heads\": 1,\n    \"norm_topk_prob\": true,\n"
                    "    \"attention_bias\": false,\n    \"attention_dropout\": 0.0,\n"
                    "    \"initializer_range\": 0.02,\n    \"use_cache\": true,\n"
                    "    \"tie_word_embeddings\": false\n  },\n");
    write_vision(config, text);
    iso_text_printf(text, "  \"quantization_config\": {\n");
    write_rows(&quant);
    iso_text_printf(text, "    \"activation_scheme\": \"dynamic\",\n"
                    "    \"weight_block_size\": [%u, %u]\n  },\n", config->tile, config->tile);
    iso_text_printf(text, "  \"dtype\": \"bfloat16\",\n  \"transformers_version\": \"5.6.0\"\n}\n");
}
