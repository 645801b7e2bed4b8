/* invariance_test: bits do not depend on chunking, threads, batch, paging, kernels, poison or
 * history. usage: invariance_test PRESET.
 *
 * Every comparison is memcmp on logits of all rows and equality of the canonical state hash. Work
 * memory is poisoned with NaN patterns before every step of every run. */
#include "tests/model/support.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROMPT = 300, CONTEXT = 512, BATCH = 5 };

typedef struct result {
    float *logits;                       /* [rows, vocab] */
    uint64_t hash[2];
} result;

static const char *preset;
static tiny_model tiny;
static int32_t prompt[PROMPT];
static result whole;
static size_t vocab;

static iso_engine_options base_options(void)
{
    return (iso_engine_options){.context_tokens = CONTEXT, .step_tokens_max = CONTEXT,
                                .sessions_max = BATCH, .page_rows = 16, .poison = true};
}

/* Appends ids to a session in chunks, committing each; logits of all rows go to `logits`. */
static void feed(iso_session *session, const int32_t *ids, uint32_t count, uint32_t chunk,
                 float *logits)
{
    iso_error error;

    for (uint32_t done = 0; done < count; done += chunk) {
        const uint32_t rows = count - done < chunk ? count - done : chunk;
        const iso_batch_item item = {session, ids + done, rows, rows};

        must(iso_engine_step(session->engine, &item, 1, &error), &error, "step");
        memcpy(logits + done * vocab, iso_session_logits(session, 0),
               rows * vocab * sizeof *logits);
        must(iso_session_commit(session, rows, &error), &error, "commit");
    }
}

static result run(iso_engine *engine, const int32_t *ids, uint32_t count, uint32_t chunk)
{
    result r = {malloc(count * vocab * sizeof(float)), {0, 0}};
    iso_session *session = NULL;
    iso_error error;

    assert_non_null(r.logits);
    must(iso_session_create(engine, &session, &error), &error, "session");
    feed(session, ids, count, chunk, r.logits);
    must(iso_session_hash(session, r.hash, &error), &error, "hash");
    iso_session_destroy(&session);
    return r;
}

static void assert_same(const result *a, const result *b, uint32_t rows, const char *what)
{
    if (memcmp(a->logits, b->logits, rows * vocab * sizeof(float)) != 0) {
        for (size_t i = 0; i < rows * vocab; i++)
            if (memcmp(&a->logits[i], &b->logits[i], sizeof(float)) != 0)
                fail_msg("%s: logits differ first in row %zu, id %zu: %g, %g", what, i / vocab,
                         i % vocab, (double)a->logits[i], (double)b->logits[i]);
    }
    if (a->hash[0] != b->hash[0] || a->hash[1] != b->hash[1])
        fail_msg("%s: state hash differs", what);
}

static int setup(void **state)
{
    const iso_engine_options options = base_options();

    (void)state;
    tiny_open(&tiny, preset, 1, &options);
    vocab = tiny.model->config.vocab_size;
    random_ids(&tiny, 0, prompt, PROMPT);
    whole = run(tiny.engine, prompt, PROMPT, PROMPT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(whole.logits);
    tiny_close(&tiny);
    return 0;
}

static void chunks_do_not_matter(void **state)
{
    static const uint32_t chunk[] = {1, 2, 3, 7, 64, 127, 128, 129};

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(chunk); i++) {
        result r = run(tiny.engine, prompt, PROMPT, chunk[i]);
        char what[32];

        snprintf(what, sizeof what, "chunk %u", chunk[i]);
        assert_same(&whole, &r, PROMPT, what);
        free(r.logits);
    }
}

/* Every operator by its reference, or by portable kernels only, on a prompt that the slow
 * references manage. */
static void kernels_do_not_matter(void **state)
{
    enum { ROWS = 70 };
    iso_engine_options options = base_options();
    iso_engine *engine;
    result r, kernels = run(tiny.engine, prompt, ROWS, ROWS);

    (void)state;
    assert_memory_equal(kernels.logits, whole.logits, ROWS * vocab * sizeof(float));
    for (int i = 0; i < 2; i++) {
        options.reference_only = i == 0;
        options.cpu = i == 0 ? NULL : "portable";
        engine = tiny_engine(&tiny, &options);
        r = run(engine, prompt, ROWS, 33);
        assert_same(&kernels, &r, ROWS, i == 0 ? "references" : "portable kernels");
        free(r.logits);
        iso_engine_destroy(&engine);
    }
    free(kernels.logits);
}

static uint32_t steps_of(iso_engine *engine, uint32_t tokens)
{
    unsigned steps = 0;
    iso_error error;
    char *text = NULL;

    must(iso_engine_explain(engine, tokens, false, &text, &error), &error, "explain");
    assert_int_equal(sscanf(strstr(text, ": "), ": %u steps", &steps), 1);
    iso_free(text);
    return steps;
}

/* Token after token, greedy and drawn. */
static void sample_ids(iso_engine *engine, const iso_sampling *sampling, int32_t *ids,
                       uint32_t count)
{
    iso_session *session = NULL;
    iso_error error;

    must(iso_session_create(engine, &session, &error), &error, "session");
    must(iso_session_prefill(session, prompt, 9, 4, &error), &error, "prefill");
    for (uint32_t i = 0; i < count; i++) {
        must(iso_session_sample(session, 0, sampling, &ids[i], &error), &error, "sample");
        must(iso_session_prefill(session, &ids[i], 1, 0, &error), &error, "decode");
    }
    iso_session_destroy(&session);
}

static void count_trace(void *context, const char *node, const char *op, const uint64_t hash[2])
{
    (void)node;
    (void)op;
    (void)hash;
    ++*(uint32_t *)context;
}

/* A step per operator or fused steps: the same logits, state and sampled ids. Traces are of every
 * operator, so they turn fusions off. */
static void fusions_do_not_matter(void **state)
{
    static const iso_sampling sampling[] = {{.top_p = 1.0f},
                                            {.temperature = 0.9f, .top_p = 0.95f, .seed = 3}};
    static const uint32_t chunk[] = {1, 7, 129};
    enum { IDS = 24 };
    iso_engine_options options = base_options();
    uint32_t traced = 0;
    iso_engine *parts;

    (void)state;
    options.no_fuse = true;
    parts = tiny_engine(&tiny, &options);
    assert_true(steps_of(tiny.engine, 1) < steps_of(parts, 1) * 2 / 3);
    assert_true(steps_of(tiny.engine, 64) < steps_of(parts, 64) * 2 / 3);
    for (size_t i = 0; i < ISO_COUNT_OF(chunk); i++) {
        result r = run(parts, prompt, PROMPT, chunk[i]);

        assert_same(&whole, &r, PROMPT, "a step per operator");
        free(r.logits);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(sampling); i++) {
        int32_t fused[IDS], alone[IDS];

        sample_ids(tiny.engine, &sampling[i], fused, IDS);
        sample_ids(parts, &sampling[i], alone, IDS);
        assert_memory_equal(fused, alone, sizeof fused);
    }
    options.no_fuse = false;
    options.trace = count_trace;
    options.trace_context = &traced;
    {
        iso_engine *tracing = tiny_engine(&tiny, &options);
        result r = run(tracing, prompt, 7, 7);

        assert_memory_equal(r.logits, whole.logits, 7 * vocab * sizeof(float));
        assert_int_equal(traced, steps_of(parts, 1));
        free(r.logits);
        iso_engine_destroy(&tracing);
    }
    iso_engine_destroy(&parts);
}

static uint32_t packed_weights(const iso_engine *engine)
{
    uint32_t count = 0;

    for (uint32_t id = 0; id < iso_weight_count(engine->weights); id++)
        count += iso_weight_desc(engine->weights, id)->layout == ISO_LAYOUT_ROWS32;
    return count;
}

/* Packed and plain weights. A device without kernels for packed ones says so. */
static void layouts_do_not_matter(void **state)
{
    enum { ROWS = 70 };
    static const char *const layout[] = {"plain", "auto", "rows32"};
    iso_engine_options options = base_options();
    iso_engine *engine;
    result r, kernels = run(tiny.engine, prompt, ROWS, ROWS);
    iso_error error;

    (void)state;
    options.token_map = tiny.token_map;
    options.token_map_keys = tiny.model->config.engram_keys;
    for (size_t i = 0; i < ISO_COUNT_OF(layout); i++) {
        iso_status status;

        options.layout = layout[i];
        engine = NULL;
        status = iso_engine_create(tiny.model, &options, &engine, &error);
        if (i == 2 && status == ISO_UNSUPPORTED) {
            assert_non_null(strstr(error.text, "no kernel for packed weights"));
            continue;
        }
        must(status, &error, layout[i]);
        assert_true(i == 0 ? packed_weights(engine) == 0
                           : i == 1 || packed_weights(engine) != 0);
        r = run(engine, prompt, ROWS, 33);
        assert_same(&kernels, &r, ROWS, layout[i]);
        free(r.logits);
        iso_engine_destroy(&engine);
    }
    options.layout = "rows32";
    options.reference_only = true;           /* references take plain weights only */
    assert_fails(iso_engine_create(tiny.model, &options, &engine, &error), ISO_UNSUPPORTED, error,
                 "layout rows32: device cpu has no kernel for packed weights");
    options.layout = "rows33";
    assert_fails(iso_engine_create(tiny.model, &options, &engine, &error), ISO_BAD_ARGUMENT, error,
                 "layout \"rows33\", expected auto, plain or rows32");
    free(kernels.logits);
}

static void engines_do_not_matter(void **state)
{
    static const struct {
        const char *what;
        uint32_t threads, page_rows, step;
        bool poison;
    } variant[] = {
        {"1 thread", 1, 16, CONTEXT, true},         {"2 threads", 2, 16, CONTEXT, true},
        {"3 threads", 3, 16, CONTEXT, true},        {"pages of 8", 2, 8, CONTEXT, true},
        {"pages of 1024", 2, 1024, CONTEXT, true},  {"steps of 100", 2, 32, 100, true},
        {"without poison", 2, 16, CONTEXT, false},
    };

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(variant); i++) {
        iso_engine_options options = base_options();
        iso_engine *engine;
        result r;

        options.thread_count = variant[i].threads;
        options.page_rows = variant[i].page_rows;
        options.step_tokens_max = variant[i].step;
        options.poison = variant[i].poison;
        engine = tiny_engine(&tiny, &options);
        r = run(engine, prompt, PROMPT, variant[i].step < 129 ? variant[i].step : 129);
        assert_same(&whole, &r, PROMPT, variant[i].what);
        free(r.logits);
        iso_engine_destroy(&engine);
    }
}

/* Five sequences in one engine, stepped together with uneven row counts, equal five runs alone. */
static void a_row_alone_equals_the_row_in_a_batch(void **state)
{
    static const uint32_t length[BATCH] = {130, 7, 61, 1, 97};
    static const uint32_t pace[BATCH] = {13, 1, 9, 1, 5};
    int32_t ids[BATCH][130];
    float *logits[BATCH];
    iso_session *session[BATCH];
    iso_error error;
    bool is_done = false;

    (void)state;
    for (uint32_t s = 0; s < BATCH; s++) {
        random_ids(&tiny, s + 1, ids[s], length[s]);
        logits[s] = malloc(length[s] * vocab * sizeof(float));
        must(iso_session_create(tiny.engine, &session[s], &error), &error, "session");
    }
    while (!is_done) {
        iso_batch_item item[BATCH];
        uint32_t who[BATCH], count = 0;

        for (uint32_t s = 0; s < BATCH; s++) {
            const uint32_t at = iso_session_length(session[s]), left = length[s] - at;
            const uint32_t rows = left < pace[s] ? left : pace[s];

            if (rows == 0)
                continue;
            item[count] = (iso_batch_item){session[s], ids[s] + at, rows, rows};
            who[count++] = s;
        }
        is_done = count == 0;
        if (is_done)
            break;
        must(iso_engine_step(tiny.engine, item, count, &error), &error, "step");
        for (uint32_t i = 0; i < count; i++)
            memcpy(logits[who[i]] + iso_session_length(session[who[i]]) * vocab,
                   iso_session_logits(session[who[i]], 0), item[i].count * vocab * sizeof(float));
        for (uint32_t i = 0; i < count; i++)
            must(iso_session_commit(session[who[i]], item[i].count, &error), &error, "commit");
    }
    for (uint32_t s = 0; s < BATCH; s++) {
        result batched = {logits[s], {0, 0}};

        must(iso_session_hash(session[s], batched.hash, &error), &error, "hash");
        iso_session_destroy(&session[s]);
        {
            result alone = run(tiny.engine, ids[s], length[s], length[s]);

            assert_same(&alone, &batched, length[s], "batch of 5");
            free(alone.logits);
        }
        free(logits[s]);
    }
}

/* Mark, decode other tokens, roll back, and go on as if nothing had happened. */
static void rollback_restores_every_bit(void **state)
{
    static const uint32_t at[] = {1, 2, 127, 128, 129, 130, 255, 256, 257};
    enum { DETOUR = 9 };
    int32_t detour[DETOUR];

    (void)state;
    random_ids(&tiny, 99, detour, DETOUR);
    for (size_t i = 0; i < ISO_COUNT_OF(at); i++) {
        result r = {malloc((PROMPT + DETOUR) * vocab * sizeof(float)), {0, 0}};
        iso_session *session = NULL;
        iso_mark *mark = NULL;
        uint64_t before[2], after[2];
        iso_error error;

        must(iso_session_create(tiny.engine, &session, &error), &error, "session");
        feed(session, prompt, at[i], PROMPT, r.logits);
        must(iso_session_hash(session, before, &error), &error, "hash");
        must(iso_session_mark(session, &mark, &error), &error, "mark");
        feed(session, detour, DETOUR, 4, r.logits + at[i] * vocab);
        must(iso_session_rollback(session, mark, &error), &error, "rollback");
        must(iso_session_hash(session, after, &error), &error, "hash");
        assert_memory_equal(before, after, sizeof before);
        feed(session, prompt + at[i], PROMPT - at[i], PROMPT, r.logits + at[i] * vocab);
        must(iso_session_hash(session, r.hash, &error), &error, "hash");
        assert_same(&whole, &r, PROMPT, "after a rollback");
        iso_mark_destroy(&mark);
        iso_session_destroy(&session);
        free(r.logits);
    }
}

/* A step of n pending rows of which k are committed equals k committed rows, for every k. */
static void partial_commit_equals_serial_steps(void **state)
{
    enum { AT = 129, ROWS = 6 };

    (void)state;
    for (uint32_t k = 0; k <= ROWS; k++) {
        result r = {malloc(PROMPT * vocab * sizeof(float)), {0, 0}};
        iso_session *session = NULL;
        iso_error error;
        iso_batch_item item;

        must(iso_session_create(tiny.engine, &session, &error), &error, "session");
        feed(session, prompt, AT, PROMPT, r.logits);
        item = (iso_batch_item){session, prompt + AT, ROWS, ROWS};
        must(iso_engine_step(tiny.engine, &item, 1, &error), &error, "step");
        assert_memory_equal(iso_session_logits(session, 0), whole.logits + AT * vocab,
                            ROWS * vocab * sizeof(float));
        must(iso_session_commit(session, k, &error), &error, "commit");
        assert_int_equal(iso_session_length(session), AT + k);
        feed(session, prompt + AT + k, PROMPT - AT - k, PROMPT, r.logits + (AT + k) * vocab);
        memcpy(r.logits + AT * vocab, whole.logits + AT * vocab, k * vocab * sizeof(float));
        must(iso_session_hash(session, r.hash, &error), &error, "hash");
        assert_same(&whole, &r, PROMPT, "after a partial commit");
        iso_session_destroy(&session);
        free(r.logits);
    }
}

/* Restoring one sequence touches no other (pitfall ST-3). */
static void rollback_leaves_other_sequences_alone(void **state)
{
    iso_session *session[3];
    iso_mark *mark = NULL;
    uint64_t before[2][2], after[2];
    float *logits = malloc(PROMPT * vocab * sizeof(float));
    iso_error error;

    (void)state;
    for (uint32_t s = 0; s < 3; s++) {
        must(iso_session_create(tiny.engine, &session[s], &error), &error, "session");
        feed(session[s], prompt + s, 60 + s, 30, logits);
    }
    must(iso_session_mark(session[1], &mark, &error), &error, "mark");
    feed(session[1], prompt, 50, 50, logits);
    must(iso_session_hash(session[0], before[0], &error), &error, "hash");
    must(iso_session_hash(session[2], before[1], &error), &error, "hash");
    must(iso_session_rollback(session[1], mark, &error), &error, "rollback");
    for (uint32_t s = 0; s < 3; s += 2) {
        must(iso_session_hash(session[s], after, &error), &error, "hash");
        assert_memory_equal(before[s / 2], after, sizeof after);
    }
    iso_mark_destroy(&mark);
    for (uint32_t s = 0; s < 3; s++)
        iso_session_destroy(&session[s]);
    free(logits);
}

static void misuse_is_refused(void **state)
{
    iso_session *session = NULL, *more[BATCH + 1] = {NULL};
    iso_mark *early = NULL, *late = NULL;
    iso_error error;
    int32_t id = (int32_t)vocab;
    iso_batch_item item;
    float *logits = malloc(20 * vocab * sizeof(float));

    (void)state;
    must(iso_session_create(tiny.engine, &session, &error), &error, "session");
    item = (iso_batch_item){session, &id, 1, 1};
    assert_fails(iso_engine_step(tiny.engine, &item, 1, &error), ISO_BAD_INDEX, error, "token id");
    id = -1;
    assert_fails(iso_engine_step(tiny.engine, &item, 1, &error), ISO_BAD_INDEX, error, "-1");
    item.count = 0;
    assert_fails(iso_engine_step(tiny.engine, &item, 1, &error), ISO_BAD_ARGUMENT, error, "0 tok");
    assert_fails(iso_session_prefill(session, prompt, 0, 0, &error), ISO_BAD_PROMPT, error,
                 "no tok");
    assert_fails(iso_session_commit(session, 1, &error), ISO_BAD_ARGUMENT, error, "0 are pending");
    feed(session, prompt, 5, 5, logits);
    must(iso_session_mark(session, &early, &error), &error, "mark");
    feed(session, prompt, 5, 5, logits);
    must(iso_session_mark(session, &late, &error), &error, "mark");
    must(iso_session_rollback(session, early, &error), &error, "rollback");
    assert_fails(iso_session_rollback(session, late, &error), ISO_STALE, error, "rolled back");
    assert_int_equal(iso_session_length(session), 5);
    for (uint32_t i = 0; i < BATCH - 1; i++)
        must(iso_session_create(tiny.engine, &more[i], &error), &error, "session");
    assert_fails(iso_session_create(tiny.engine, &more[BATCH], &error), ISO_LIMIT, error, "alive");
    for (uint32_t i = 0; i < BATCH - 1; i++)
        iso_session_destroy(&more[i]);
    iso_mark_destroy(&late);
    iso_mark_destroy(&early);
    iso_session_destroy(&session);
    free(logits);
}

static void context_end_is_an_error_that_loses_nothing(void **state)
{
    iso_engine_options options = base_options();
    iso_engine *engine;
    iso_session *session = NULL;
    uint64_t before[2], after[2];
    iso_error error;
    float *logits = malloc(40 * vocab * sizeof(float));

    (void)state;
    options.context_tokens = 33;
    options.step_tokens_max = 33;
    engine = tiny_engine(&tiny, &options);
    must(iso_session_create(engine, &session, &error), &error, "session");
    feed(session, prompt, 33, 33, logits);
    must(iso_session_hash(session, before, &error), &error, "hash");
    assert_fails(iso_session_prefill(session, prompt, 1, 0, &error), ISO_CONTEXT_FULL, error,
                 "context is 33");
    must(iso_session_hash(session, after, &error), &error, "hash");
    assert_memory_equal(before, after, sizeof before);
    assert_memory_equal(logits, whole.logits, 33 * vocab * sizeof(float));
    iso_session_destroy(&session);
    iso_engine_destroy(&engine);
    free(logits);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(context_end_is_an_error_that_loses_nothing),
        cmocka_unit_test(chunks_do_not_matter),
        cmocka_unit_test(kernels_do_not_matter),
        cmocka_unit_test(layouts_do_not_matter),
        cmocka_unit_test(fusions_do_not_matter),
        cmocka_unit_test(engines_do_not_matter),
        cmocka_unit_test(a_row_alone_equals_the_row_in_a_batch),
        cmocka_unit_test(partial_commit_equals_serial_steps),
        cmocka_unit_test(rollback_restores_every_bit),
        cmocka_unit_test(rollback_leaves_other_sequences_alone),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: invariance_test PRESET\n");
        return 2;
    }
    preset = argv[1];
    return cmocka_run_group_tests_name("invariance", tests, setup, teardown);
}
