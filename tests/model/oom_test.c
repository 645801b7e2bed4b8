/* oom_test: every allocation of the library may fail. Each scenario is run with the 1st, 2nd, 3rd,
 * ... allocation failing until it succeeds; a failure is ISO_NO_MEMORY and leaves no memory behind
 * and no handle set. */
#include "core/alloc.h"
#include "tests/model/support.h"
#include "tests/unit/unit.h"

#include <stdio.h>

static tiny_model tiny;

static iso_engine_options small_options(void)
{
    return (iso_engine_options){.context_tokens = 64, .step_tokens_max = 8, .page_rows = 16,
                                .thread_count = 1};
}

typedef iso_status scenario_fn(iso_error *error);

/* Runs until nothing fails; far allocations are sampled, so that the loop ends in seconds. */
static void sweep(const char *name, scenario_fn *scenario)
{
    iso_alloc_stats before, after;
    uint64_t n = 1, tried = 0;

    iso_alloc_get_stats(&before);
    for (;; n += n < 400 ? 1 : n / 50, tried++) {
        iso_error error = {.status = ISO_OK};
        iso_status status;

        iso_alloc_fail_at(n);
        status = scenario(&error);
        iso_alloc_fail_at(0);
        iso_alloc_get_stats(&after);
        if (after.bytes_now != before.bytes_now || after.count_now != before.count_now)
            fail_msg("%s: failing allocation %llu leaves %llu bytes", name,
                     (unsigned long long)n,
                     (unsigned long long)(after.bytes_now - before.bytes_now));
        if (status == ISO_OK)
            break;
        if (status != ISO_NO_MEMORY || error.text[0] == '\0')
            fail_msg("%s: allocation %llu: %s: %s", name, (unsigned long long)n,
                     iso_status_name(status), error.text);
    }
    printf("%s: %llu failures, the last at allocation %llu\n", name, (unsigned long long)tried,
           (unsigned long long)n);
    assert_true(tried >= 3);
}

static iso_status open_store_and_model(iso_error *error)
{
    iso_store *store = NULL;
    iso_model *model = NULL;
    iso_status status = iso_store_open(tiny.path, &store, error);

    if (status == ISO_OK)
        status = iso_model_open(store, &model, error);
    else
        assert_null(store);
    if (status != ISO_OK)
        assert_null(model);
    iso_model_close(&model);
    iso_store_close(&store);
    return status;
}

static iso_status open_tokenizer(iso_error *error)
{
    iso_tokenizer *tokenizer = NULL;
    iso_token_list tokens = {NULL, 0};
    char *text = NULL;
    iso_status status = iso_tokenizer_open(tiny.path, &tokenizer, error);

    if (status == ISO_OK)
        status = iso_tokenizer_encode(tokenizer, "hello world", 11, 0, &tokens, error);
    if (status == ISO_OK)
        status = iso_tokenizer_decode(tokenizer, tokens.ids, tokens.count, &text, NULL, error);
    iso_free(text);
    iso_free(tokens.ids);
    iso_tokenizer_close(&tokenizer);
    return status;
}

static iso_status create_engine(iso_error *error)
{
    iso_engine_options options = small_options();
    iso_engine *engine = NULL;
    iso_status status;

    options.token_map = tiny.token_map;
    options.token_map_keys = tiny.model->config.engram_keys;
    status = iso_engine_create(tiny.model, &options, &engine, error);
    if (status != ISO_OK)
        assert_null(engine);
    iso_engine_destroy(&engine);
    return status;
}

/* A step, a commit, a mark, a draw: plans are made on the way. */
static iso_status use_session(iso_error *error)
{
    static const int32_t ids[3] = {5, 6, 7};
    const iso_sampling sampling = {.temperature = 1.0f, .top_p = 1.0f};
    iso_session *session = NULL;
    iso_mark *mark = NULL;
    int32_t id = 0;
    iso_status status = iso_session_create(tiny.engine, &session, error);

    if (status == ISO_OK)
        status = iso_session_prefill(session, ids, 3, 0, error);
    if (status == ISO_OK)
        status = iso_session_mark(session, &mark, error);
    if (status == ISO_OK)
        status = iso_session_sample(session, 0, &sampling, &id, error);
    if (status == ISO_OK)
        status = iso_session_rollback(session, mark, error);
    iso_mark_destroy(&mark);
    iso_session_destroy(&session);
    iso_engine_drop_plans(tiny.engine);
    return status;
}

static int setup(void **state)
{
    const iso_engine_options options = small_options();

    (void)state;
    tiny_open(&tiny, "v41", 1, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_close(&tiny);
    return 0;
}

static void store_and_model(void **state)
{
    (void)state;
    sweep("store and model", open_store_and_model);
}

static void tokenizer(void **state)
{
    (void)state;
    sweep("tokenizer", open_tokenizer);
}

static void engine(void **state)
{
    (void)state;
    sweep("engine", create_engine);
}

static void session(void **state)
{
    (void)state;
    sweep("session", use_session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_and_model),
        cmocka_unit_test(tokenizer),
        cmocka_unit_test(engine),
        cmocka_unit_test(session),
    };

    return cmocka_run_group_tests_name("oom", tests, setup, teardown);
}
