#include "model/engine.h"

#include "core/alloc.h"
#include "core/backends.h"
#include "core/threads.h"

#include <string.h>

enum { CONTEXT_DEFAULT = 4096, STEP_DEFAULT = 256, STEP_MAX = 4096, PAGE_DEFAULT = 1024 };

static iso_status check_options(const iso_config *config, iso_engine_options *o, iso_error *error)
{
    if (o->device == NULL)
        o->device = "cpu";
    if (o->sessions_max == 0)
        o->sessions_max = 1;
    if (o->context_tokens == 0)
        o->context_tokens =
            config->context_max < CONTEXT_DEFAULT ? config->context_max : CONTEXT_DEFAULT;
    if (o->step_tokens_max == 0)
        o->step_tokens_max = STEP_DEFAULT;
    if (o->page_rows == 0)
        o->page_rows = PAGE_DEFAULT;
    if (o->context_tokens > config->context_max)
        return iso_fail(error, ISO_BAD_ARGUMENT, "context of %u tokens, the model's limit is %u",
                        o->context_tokens, config->context_max);
    if (o->step_tokens_max > STEP_MAX)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%u rows per step, expected at most %d",
                        o->step_tokens_max, STEP_MAX);
    if (o->sessions_max > STEP_MAX)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%u sessions, expected at most %d",
                        o->sessions_max, STEP_MAX);
    if ((o->page_rows & (o->page_rows - 1)) != 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "page_rows is %u, expected a power of two",
                        o->page_rows);
    return ISO_OK;
}

static iso_status take_token_map(iso_engine *engine, const int32_t *map, iso_error *error)
{
    const iso_config *config = engine->config;
    const size_t bytes = config->vocab_size * sizeof *map;

    if (!config->has_engram)
        return ISO_OK;
    if (map == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT,
                        "the model has Engram layers: a token map is needed");
    if (engine->options.token_map_keys != config->engram_keys)
        return iso_fail(error, ISO_BAD_TOKENIZER,
                        "the tokenizer gives %u Engram keys, the configuration says %u",
                        engine->options.token_map_keys, config->engram_keys);
    for (uint32_t i = 0; i < config->vocab_size; i++)
        if (map[i] < 0 || (uint32_t)map[i] >= config->engram_keys)
            return iso_fail(error, ISO_BAD_TOKENIZER, "token map: id %u maps to %d, limit %u", i,
                            map[i], config->engram_keys);
    engine->token_map = iso_alloc(bytes, 64, "token_map");
    if (engine->token_map == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the token map");
    memcpy(engine->token_map, map, bytes);
    return ISO_OK;
}

static iso_status load(iso_engine *engine, iso_error *error)
{
    const iso_load_progress progress = {engine->options.progress,
                                        engine->options.progress_context};

    ISO_TRY(iso_residency_create(engine->backend, engine->device, 0, &engine->residency, error));
    return iso_weights_load(engine->config, engine->model->store, engine->residency, &progress,
                            &engine->weights, error);
}

static iso_status lease(iso_engine *engine, iso_error *error)
{
    const uint32_t *ids;
    uint32_t count;

    ids = iso_weight_leased(engine->weights, &count);
    return iso_residency_acquire(engine->residency, ids, count, &engine->lease, error);
}

static iso_status start(iso_engine *engine, const iso_engine_options *options, iso_error *error)
{
    const iso_backend_options backend = {.thread_count = options->thread_count,
                                         .reference_only = options->reference_only,
                                         .isa = options->cpu,
                                         .pages = {options->huge_pages,
                                                   options->numa_interleave}};
    iso_state_spec state = {.config = engine->config};

    ISO_TRY(check_options(engine->config, &engine->options, error));
    ISO_TRY(take_token_map(engine, options->token_map, error));
    engine->options.token_map = NULL;
    ISO_TRY(iso_backend_open_device(engine->options.device, &backend, &engine->backend,
                                    &engine->device, error));
    ISO_TRY(load(engine, error));
    state.slots = engine->options.sessions_max;
    state.context = engine->options.context_tokens;
    state.step_rows = engine->options.step_tokens_max;
    state.page_rows = engine->options.page_rows;
    state.poison = engine->options.poison;
    ISO_TRY(iso_state_create(engine->backend, engine->device, &state, &engine->state, error));
    ISO_TRY(iso_engine_arrange(engine, error));
    ISO_TRY(lease(engine, error));
    return iso_engine_prepare(engine, error);
}

iso_status iso_engine_create(const iso_model *model, const iso_engine_options *options,
                             iso_engine **engine, iso_error *error)
{
    iso_engine *made = iso_alloc_zero(1, sizeof *made, "engine");
    iso_status status;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for an engine");
    made->model = model;
    made->config = &model->config;
    made->options = *options;
    made->is_traced = options->trace != NULL;
    status = start(made, options, error);
    if (status != ISO_OK)
        iso_engine_destroy(&made);
    else
        *engine = made;
    return status;
}

void iso_engine_destroy(iso_engine **engine)
{
    iso_engine *e;

    if (engine == NULL || *engine == NULL)
        return;
    e = *engine;
    *engine = NULL;
    ISO_ASSERT(e->sessions == NULL);
    iso_engine_drop_plans(e);
    iso_ready_destroy(e, &e->commit);
    iso_ready_destroy(e, &e->sampler);
    iso_state_destroy(&e->state);
    if (e->workspace != NULL)
        e->backend->buffer_destroy(&e->workspace);
    if (e->residency != NULL && e->lease.open)
        iso_residency_release(e->residency, &e->lease);
    iso_weight_directory_destroy(&e->weights);
    iso_residency_destroy(&e->residency);
    if (e->device != NULL)
        e->backend->close(&e->device);
    if (e->token_map != NULL)
        iso_release(e->token_map, e->config->vocab_size * sizeof *e->token_map);
    iso_release(e, sizeof *e);
}

void iso_engine_get_stats(const iso_engine *engine, iso_engine_stats *stats)
{
    iso_residency_stats weights;

    iso_residency_get_stats(engine->residency, &weights);
    *stats = (iso_engine_stats){
        .weight_bytes = weights.resident_bytes + weights.mapped_bytes,
        .mapped_bytes = weights.mapped_bytes,
        .state_bytes = iso_state_bytes(engine->state),
        .workspace_bytes = engine->workspace_bytes,
        .cleaned_values = iso_weights_cleaned(engine->weights),
        .thread_count = engine->options.thread_count != 0 ? engine->options.thread_count
                                                          : iso_threads_available(),
    };
}

/* ---- a step ---- */

static iso_status check_items(const iso_engine *engine, const iso_batch_item *items,
                              uint32_t item_count, iso_error *error)
{
    uint64_t rows = 0;

    if (item_count == 0 || item_count > engine->options.sessions_max)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%u sequences in a step, expected 1 to %u",
                        item_count, engine->options.sessions_max);
    for (uint32_t s = 0; s < item_count; s++) {
        const iso_batch_item *item = &items[s];

        if (item->session == NULL || item->session->engine != engine)
            return iso_fail(error, ISO_BAD_ARGUMENT, "item %u: session of another engine", s);
        for (uint32_t other = 0; other < s; other++)
            if (items[other].session == item->session)
                return iso_fail(error, ISO_BAD_ARGUMENT, "item %u: session given twice", s);
        if (item->count == 0 || item->logit_rows > item->count)
            return iso_fail(error, ISO_BAD_ARGUMENT, "item %u: %u tokens, %u logit rows", s,
                            item->count, item->logit_rows);
        if (item->count > engine->options.context_tokens - item->session->length)
            return iso_fail(error, ISO_CONTEXT_FULL, "%u + %u tokens, the context is %u",
                            item->session->length, item->count, engine->options.context_tokens);
        for (uint32_t i = 0; i < item->count; i++)
            if (item->ids[i] < 0 || (uint32_t)item->ids[i] >= engine->config->vocab_size)
                return iso_fail(error, ISO_BAD_INDEX, "token id %d, expected 0 to %u",
                                item->ids[i], engine->config->vocab_size - 1);
        rows += item->count;
    }
    if (rows > engine->options.step_tokens_max)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%llu rows in a step, expected at most %u",
                        (unsigned long long)rows, engine->options.step_tokens_max);
    return ISO_OK;
}

static void drop_pending(iso_engine *engine)
{
    for (iso_session *s = engine->sessions; s != NULL; s = s->next)
        s->pending = (iso_pending){0};
}

/* The outputs of a step that ran become the sessions' pending rows. */
static void hand_out(iso_engine *engine, const iso_bucket_plan *plan, const iso_batch_item *items,
                     uint32_t item_count)
{
    const float *logits = iso_plan_output(plan->forward.plan, 0);
    uint32_t first = 0;

    for (uint32_t s = 0; s < item_count; s++) {
        iso_session *session = items[s].session;

        session->pending = (iso_pending){items[s].count, first, logits, items[s].logit_rows,
                                         session->length + items[s].count};
        memcpy(session->ids + session->length, items[s].ids,
               items[s].count * sizeof *session->ids);
        first += items[s].count;
        logits += (size_t)items[s].logit_rows * engine->config->vocab_size;
    }
}

iso_status iso_engine_step(iso_engine *engine, const iso_batch_item *items, uint32_t item_count,
                           iso_error *error)
{
    uint32_t rows = 0, logit_rows = 0, context = 0;
    iso_bucket_plan *plan;
    iso_bucket bucket;

    ISO_TRY(check_items(engine, items, item_count, error));
    drop_pending(engine);
    for (uint32_t s = 0; s < item_count; s++) {
        const uint32_t end = items[s].session->length + items[s].count;

        rows += items[s].count;
        logit_rows += items[s].logit_rows;
        context = end > context ? end : context;
        ISO_TRY(iso_session_reserve(items[s].session, end, error));
    }
    iso_engine_bucket(engine, rows, context, logit_rows, &bucket);
    ISO_TRY(iso_engine_plan(engine, &bucket, &plan, error));
    ISO_TRY(iso_positions_write(engine, plan, items, item_count, error));
    ISO_TRY(iso_engine_run(engine, &plan->forward, true, error));
    hand_out(engine, plan, items, item_count);
    return ISO_OK;
}
