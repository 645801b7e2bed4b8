/* support: a tiny model of a preset and seed, opened, for the model tests. The checkpoint is
 * written once into a folder below the current directory and shared by the tests of a program. */
#ifndef ISO_TESTS_MODEL_SUPPORT_H
#define ISO_TESTS_MODEL_SUPPORT_H

#include "model/engine.h"

typedef struct tiny_model {
    iso_store *store;
    iso_model *model;
    iso_tokenizer *tokenizer;
    iso_engine *engine;
    int32_t *token_map;
    char path[128];
} tiny_model;

/* Fails the program with a message when anything does not work. options may be NULL. */
void tiny_open(tiny_model *tiny, const char *preset, uint64_t seed,
               const iso_engine_options *options);
/* A second engine of the same model. */
iso_engine *tiny_engine(const tiny_model *tiny, const iso_engine_options *options);
void tiny_close(tiny_model *tiny);

/* Fails the program with the error's text unless status is ISO_OK. */
void must(iso_status status, const iso_error *error, const char *what);

/* Deterministic token ids in [3, vocab): `stream` tells sequences apart. */
void random_ids(const tiny_model *tiny, uint32_t stream, int32_t *ids, size_t count);

#endif
