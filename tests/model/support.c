#include "tests/model/support.h"

#include "ggml-style-ops/lane/philox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void must(iso_status status, const iso_error *error, const char *what)
{
    if (status == ISO_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, iso_status_name(status), error->text);
    exit(1);
}

static void token_map(tiny_model *tiny, iso_engine_options *options)
{
    iso_model_info info;
    iso_error error;

    iso_model_get_info(tiny->model, &info);
    must(iso_tokenizer_open(tiny->path, &tiny->tokenizer, &error), &error, "tokenizer");
    if (info.compressed_vocab_size == 0)
        return;
    if (tiny->token_map == NULL)
        tiny->token_map = malloc(info.vocab_size * sizeof *tiny->token_map);
    must(iso_tokenizer_token_map(tiny->tokenizer, tiny->token_map, info.vocab_size,
                                 &options->token_map_keys, &error), &error, "token map");
    options->token_map = tiny->token_map;
    iso_tokenizer_close(&tiny->tokenizer);
}

iso_engine *tiny_engine(const tiny_model *tiny, const iso_engine_options *options)
{
    iso_engine_options mine = options != NULL ? *options : (iso_engine_options){0};
    iso_engine *engine = NULL;
    iso_error error;

    token_map((tiny_model *)(uintptr_t)tiny, &mine);
    must(iso_engine_create(tiny->model, &mine, &engine, &error), &error, "engine");
    return engine;
}

void tiny_open(tiny_model *tiny, const char *preset, uint64_t seed,
               const iso_engine_options *options)
{
    char config[160];
    iso_error error;

    memset(tiny, 0, sizeof *tiny);
    snprintf(tiny->path, sizeof tiny->path, "tiny-%s-%llu.%ld", preset, (unsigned long long)seed,
             (long)getpid());
    snprintf(config, sizeof config, "%s/config.json", tiny->path);
    if (access(config, R_OK) != 0)
        must(iso_tiny_write(preset, seed, tiny->path, &error), &error, "tiny");
    must(iso_store_open(tiny->path, &tiny->store, &error), &error, "store");
    must(iso_model_open(tiny->store, &tiny->model, &error), &error, "model");
    tiny->engine = tiny_engine(tiny, options);
}

void tiny_close(tiny_model *tiny)
{
    char command[160];

    iso_engine_destroy(&tiny->engine);
    iso_model_close(&tiny->model);
    iso_store_close(&tiny->store);
    iso_tokenizer_close(&tiny->tokenizer);
    free(tiny->token_map);
    tiny->token_map = NULL;
    snprintf(command, sizeof command, "rm -rf '%s'", tiny->path);
    if (system(command) != 0)
        fprintf(stderr, "could not remove %s\n", tiny->path);
}

void random_ids(const tiny_model *tiny, uint32_t stream, int32_t *ids, size_t count)
{
    const uint32_t vocab = tiny->model->config.vocab_size;

    for (size_t i = 0; i < count; i++) {
        const struct lane_philox r =
            lane_philox4x32((struct lane_philox){(uint32_t)i, stream, 0, 0}, 7, 11);

        ids[i] = (int32_t)(3 + r.c0 % (vocab - 3));
    }
}
