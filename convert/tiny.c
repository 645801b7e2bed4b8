#include "convert/tiny.h"

#include "convert/folder.h"
#include "convert/tiny_presets.h"
#include "convert/tiny_shards.h"
#include "convert/tiny_tokenizer.h"
#include "core/alloc.h"
#include "model/engram.h"

#include <string.h>

bool iso_tiny_presets(uint32_t index, const char **name, const char **description)
{
    const iso_tiny_preset *preset = iso_tiny_preset_at(index);

    if (preset == NULL)
        return false;
    *name = preset->name;
    *description = preset->description;
    return true;
}

static iso_status put_text(iso_folder *folder, const char *name, const iso_text *text,
                           iso_error *error)
{
    if (text->is_out_of_memory)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for %s", name);
    return iso_folder_put(folder, name, text->data, text->used, error);
}

/* Distinct Engram keys of the tokenizer that was just written. */
static iso_status count_keys(const iso_folder *folder, uint32_t *key_count, iso_error *error)
{
    iso_tokenizer *tokenizer = NULL;
    int32_t *map = NULL;
    uint32_t count = 0;
    iso_status status;

    ISO_GOTO(iso_tokenizer_open(folder->path, &tokenizer, error));
    count = iso_tokenizer_vocab_size(tokenizer);
    map = iso_alloc_zero(count, sizeof *map, "tiny.map");
    if (map == NULL) {
        status = iso_fail(error, ISO_NO_MEMORY, "out of memory for a token map");
        goto done;
    }
    ISO_GOTO(iso_tokenizer_token_map(tokenizer, map, count, key_count, error));
done:
    iso_release(map, count * sizeof *map);
    iso_tokenizer_close(&tokenizer);
    return status;
}

static iso_status write_tokenizer(iso_folder *folder, iso_config *config, iso_error *error)
{
    iso_text text = {0};
    iso_status status = iso_tiny_tokenizer(config->vocab_size, &text, error);

    if (status == ISO_OK)
        status = put_text(folder, "tokenizer.json", &text, error);
    iso_text_free(&text);
    ISO_TRY(status);
    config->image_id = iso_tiny_token_id(config->vocab_size, "<｜deepseek_image｜>");
    if (config->draft_stages != 0)
        config->draft_noise = iso_tiny_token_id(config->vocab_size, "<｜System｜>");
    return count_keys(folder, &config->engram_keys, error);
}

/* Row counts of the Engram tables: the sums of the primes. */
static iso_status derive_rows(iso_config *config, iso_error *error)
{
    const uint32_t count = config->engram_layers.count;
    iso_engram_layer *layers;
    iso_status status;

    if (count == 0)
        return ISO_OK;
    config->has_engram = true;
    layers = iso_alloc_zero(count, sizeof *layers, "tiny.engram");
    if (layers == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for Engram constants");
    status = iso_engram_derive(config, layers, error);
    if (status == ISO_OK) {
        for (uint32_t i = 0; i < count; i++)
            config->engram_rows.at[i] = (int32_t)layers[i].rows;
        config->engram_rows.count = count;
    }
    iso_release(layers, count * sizeof *layers);
    return status;
}

/* Writes config.json and reads it back: what the loader will see is what the tensors follow. */
static iso_status write_config(iso_folder *folder, iso_config *config, iso_error *error)
{
    iso_text text = {0};
    iso_status status;

    iso_tiny_config_text(config, &text);
    ISO_GOTO(put_text(folder, "config.json", &text, error));
    ISO_GOTO(iso_config_parse(text.data, text.used, "config.json", config, error));
done:
    iso_text_free(&text);
    return status;
}

static iso_status write_all(const iso_tiny_preset *preset, uint64_t seed, iso_folder *folder,
                            iso_error *error)
{
    iso_config config = preset->config;
    const iso_tiny_plan plan = {.config = &config, .shard_count = preset->shard_count,
                                .is_sparse = preset->is_sparse, .seed = seed};

    if (preset->has_tokenizer)
        ISO_TRY(write_tokenizer(folder, &config, error));
    ISO_TRY(derive_rows(&config, error));
    ISO_TRY(write_config(folder, &config, error));
    return iso_tiny_shards(&plan, folder, error);
}

iso_status iso_tiny_write(const char *preset, uint64_t seed, const char *directory,
                          iso_error *error)
{
    const iso_tiny_preset *row = iso_tiny_preset_find(preset);
    iso_folder *folder;
    iso_status status;

    if (row == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "no preset %s (--list names them)", preset);
    folder = iso_alloc_zero(1, sizeof *folder, "tiny.folder");
    if (folder == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory");
    status = iso_folder_begin(directory, folder, error);
    if (status == ISO_OK) {
        status = write_all(row, seed, folder, error);
        if (status != ISO_OK)
            iso_folder_discard(folder);
    }
    iso_release(folder, sizeof *folder);
    return status;
}
