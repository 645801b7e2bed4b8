/* A program outside the tree: it sees isobit.h and the installed library, nothing else. Writes a
 * tiny checkpoint into the directory argv[1], runs two tokens and prints what was drawn. */
#include <isobit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct parts {
    iso_store *store;
    iso_model *model;
    iso_tokenizer *tokenizer;
    iso_engine *engine;
    iso_session *session;
    int32_t *map;
} parts;

#define TRY(call)                                                                                 \
    do {                                                                                          \
        const iso_status status = (call);                                                         \
        if (status != ISO_OK)                                                                     \
            return status;                                                                        \
    } while (0)

static iso_status run(const char *path, parts *p, iso_error *error)
{
    static const int32_t prompt[] = {5, 7};
    const iso_sampling sampling = {0.0f, 0, 1.0f, 0.0f, 1};
    iso_engine_options options = {0};
    iso_model_info info;
    int32_t id;

    TRY(iso_tiny_write("v41", 1, path, error));
    TRY(iso_store_open(path, &p->store, error));
    TRY(iso_model_open(p->store, &p->model, error));
    TRY(iso_tokenizer_open(path, &p->tokenizer, error));
    iso_model_get_info(p->model, &info);
    p->map = malloc(info.vocab_size * sizeof *p->map);
    TRY(iso_tokenizer_token_map(p->tokenizer, p->map, info.vocab_size, &options.token_map_keys,
                                error));
    options.token_map = p->map;
    TRY(iso_engine_create(p->model, &options, &p->engine, error));
    TRY(iso_session_create(p->engine, &p->session, error));
    TRY(iso_session_prefill(p->session, prompt, 2, 0, error));
    TRY(iso_session_sample(p->session, 0, &sampling, &id, error));
    printf("isobit %s, %s: %s, %" PRIu32 " layers, next token %" PRId32 "\n", ISO_VERSION,
           ISO_NUMERICS_ID, info.family, info.layer_count, id);
    return ISO_OK;
}

int main(int argc, char **argv)
{
    iso_error error = {ISO_OK, 0, ""};
    parts p = {0};
    iso_status status;

    if (argc != 2)
        return 2;
    status = run(argv[1], &p, &error);
    if (status != ISO_OK)
        fprintf(stderr, "external: %s: %s\n", iso_status_name(status), error.text);
    iso_session_destroy(&p.session);
    iso_engine_destroy(&p.engine);
    iso_tokenizer_close(&p.tokenizer);
    iso_model_close(&p.model);
    iso_store_close(&p.store);
    free(p.map);
    return status == ISO_OK ? 0 : 1;
}
