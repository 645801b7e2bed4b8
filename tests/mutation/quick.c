/* quick: what a tiny model owes for state, in a second: a sequence cut in other places, committed
 * in part, rolled back, or run beside another one has the state and the logits of the plain run.
 * It is the test of a few planted faults only; tests/model/invariance_test.c is the thorough one.
 *
 * usage: quick DIR      writes the checkpoint into DIR, which must be absent or empty; exit status
 *                       0: all equal */
#include "core/isobit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 75, OTHER = 23, VOCAB_MAX = 1 << 17 };

typedef struct model {
    iso_store *store;
    iso_model *model;
    iso_tokenizer *tokenizer;
    iso_engine *engine;
    int32_t map[VOCAB_MAX];
} model;

/* State and last logits of a sequence. */
typedef struct result {
    uint64_t hash[2];
    float logits[VOCAB_MAX];
} result;

static model m;
static result plain[2], got;
static int32_t ids[2][TOKENS];
static uint32_t vocab;

static void must(iso_status status, const iso_error *error)
{
    if (status == ISO_OK)
        return;
    fprintf(stderr, "quick: %s: %s\n", iso_status_name(status), error->text);
    exit(1);
}

static iso_session *start(void)
{
    iso_session *session = NULL;
    iso_error error;

    must(iso_session_create(m.engine, &session, &error), &error);
    return session;
}

static void feed(iso_session *session, const int32_t *from, size_t count, uint32_t chunk)
{
    iso_error error;

    must(iso_session_prefill(session, from, count, chunk, &error), &error);
}

/* Ends the session. */
static void take(iso_session *session, result *to)
{
    const float *logits = iso_session_logits(session, 0);
    iso_error error;

    must(iso_session_hash(session, to->hash, &error), &error);
    if (logits != NULL)
        memcpy(to->logits, logits, vocab * sizeof *logits);
    iso_session_destroy(&session);
}

static void expect(iso_session *session, uint32_t sequence, const char *what)
{
    take(session, &got);
    if (memcmp(got.hash, plain[sequence].hash, sizeof got.hash) != 0
        || memcmp(got.logits, plain[sequence].logits, vocab * sizeof *got.logits) != 0) {
        fprintf(stderr, "quick: %s: not the plain run\n", what);
        exit(1);
    }
}

static void open_model(const char *path)
{
    iso_engine_options options = {.sessions_max = 2, .context_tokens = 256, .token_map = m.map,
                                  .page_rows = 16};
    iso_model_info info;
    iso_error error;

    must(iso_tiny_write("v41-small", 3, path, &error), &error);
    must(iso_store_open(path, &m.store, &error), &error);
    must(iso_model_open(m.store, &m.model, &error), &error);
    must(iso_tokenizer_open(path, &m.tokenizer, &error), &error);
    iso_model_get_info(m.model, &info);
    vocab = info.vocab_size;
    must(iso_tokenizer_token_map(m.tokenizer, m.map, vocab, &options.token_map_keys, &error),
         &error);
    must(iso_engine_create(m.model, &options, &m.engine, &error), &error);
    for (uint32_t i = 0; i < 2 * TOKENS; i++)
        ids[i / TOKENS][i % TOKENS] = (int32_t)(3 + (i * 2654435761u >> 7) % (vocab - 3));
}

static void cut_in_other_places(void)
{
    iso_session *session = start();

    feed(session, ids[0], TOKENS, 7);
    expect(session, 0, "chunks of 7");
}

static void committed_in_part(void)
{
    const uint32_t kept = 5, step = 9;
    iso_session *session = start();
    iso_error error;
    iso_batch_item item = {session, ids[0] + 40, step, 1};

    feed(session, ids[0], 40, 0);
    must(iso_engine_step(m.engine, &item, 1, &error), &error);
    must(iso_session_commit(session, kept, &error), &error);
    feed(session, ids[0] + 40 + kept, TOKENS - 40 - kept, 0);
    expect(session, 0, "a partial commit");
}

static void rolled_back(void)
{
    iso_session *session = start();
    iso_mark *mark = NULL;
    iso_error error;

    feed(session, ids[0], 41, 0);
    must(iso_session_mark(session, &mark, &error), &error);
    feed(session, ids[1], 60, 0);
    must(iso_session_rollback(session, mark, &error), &error);
    iso_mark_destroy(&mark);
    feed(session, ids[0] + 41, TOKENS - 41, 0);
    expect(session, 0, "a rollback");
}

static void beside_another(void)
{
    iso_session *one = start(), *two = start();
    const iso_batch_item items[2] = {{one, ids[0] + 50, TOKENS - 50, 1},
                                     {two, ids[1] + 10, OTHER - 10, 1}};
    iso_error error;

    feed(one, ids[0], 50, 0);
    feed(two, ids[1], 10, 0);
    must(iso_engine_step(m.engine, items, 2, &error), &error);
    must(iso_session_commit(one, TOKENS - 50, &error), &error);
    must(iso_session_commit(two, OTHER - 10, &error), &error);
    expect(one, 0, "a batch, first sequence");
    expect(two, 1, "a batch, second sequence");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_model(argv[1]);
    for (uint32_t s = 0; s < 2; s++) {
        iso_session *session = start();

        feed(session, ids[s], s == 0 ? TOKENS : OTHER, 0);
        take(session, &plain[s]);
    }
    cut_in_other_places();
    committed_in_part();
    rolled_back();
    beside_another();
    iso_engine_destroy(&m.engine);
    iso_tokenizer_close(&m.tokenizer);
    iso_model_close(&m.model);
    iso_store_close(&m.store);
    return 0;
}
