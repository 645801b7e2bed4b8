#include "model/engine.h"

#include "core/alloc.h"
#include "core/hash.h"
#include "ggml-style-ops/lane/div.h"
#include "ggml-style-ops/rows.h"

#include <string.h>

/* What a commit overwrites, kept: rings and open groups of all layers. */
struct iso_mark {
    iso_session *session;
    uint32_t length;
    bool is_valid;                       /* false once the session rolled back before it */
    unsigned char *bytes;
    uint64_t byte_count;
    iso_mark *next;
};

static uint32_t pages_of(const iso_session *session, uint32_t ratio)
{
    return iso_state_pages_per_seq(iso_state_spec_of(session->engine->state), ratio);
}

static iso_status session_init(iso_session *s, iso_error *error)
{
    iso_engine *engine = s->engine;

    s->ids = iso_alloc_zero(engine->options.context_tokens, sizeof *s->ids, "session");
    if (s->ids == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a session");
    for (uint32_t ratio = 1; ratio <= ISO_RATIO_MAX; ratio++) {
        if (!iso_state_uses_ratio(engine->config, ratio))
            continue;
        s->pages[ratio] = iso_alloc_zero(pages_of(s, ratio), sizeof *s->pages[ratio], "session");
        if (s->pages[ratio] == NULL)
            return iso_fail(error, ISO_NO_MEMORY, "out of memory for a session");
        memset(s->pages[ratio], 0xff, pages_of(s, ratio) * sizeof *s->pages[ratio]);
    }
    s->slot = iso_state_slot_take(engine->state);
    if (s->slot < 0)
        return iso_fail(error, ISO_LIMIT, "%u sessions are alive, the engine's limit is %u",
                        engine->session_count, engine->options.sessions_max);
    return ISO_OK;
}

static void session_deinit(iso_session *s)
{
    for (uint32_t ratio = 1; ratio <= ISO_RATIO_MAX; ratio++) {
        for (uint32_t i = 0; i < s->page_count[ratio]; i++)
            iso_state_page_give(s->engine->state, ratio, s->pages[ratio][i]);
        if (s->pages[ratio] != NULL)
            iso_release(s->pages[ratio], pages_of(s, ratio) * sizeof *s->pages[ratio]);
    }
    if (s->slot >= 0)
        iso_state_slot_give(s->engine->state, s->slot);
    iso_release(s->ids, s->engine->options.context_tokens * sizeof *s->ids);
    iso_release(s, sizeof *s);
}

iso_status iso_session_create(iso_engine *engine, iso_session **session, iso_error *error)
{
    iso_session *made = iso_alloc_zero(1, sizeof *made, "session");
    iso_status status;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a session");
    made->engine = engine;
    made->slot = -1;
    status = session_init(made, error);
    if (status != ISO_OK) {
        session_deinit(made);
        return status;
    }
    made->next = engine->sessions;
    engine->sessions = made;
    engine->session_count++;
    *session = made;
    return ISO_OK;
}

void iso_session_destroy(iso_session **session)
{
    iso_session *s, **link;

    if (session == NULL || *session == NULL)
        return;
    s = *session;
    *session = NULL;
    ISO_ASSERT(s->marks == NULL);
    for (link = &s->engine->sessions; *link != s; link = &(*link)->next)
        ISO_ASSERT(*link != NULL);
    *link = s->next;
    s->engine->session_count--;
    session_deinit(s);
}

uint32_t iso_session_length(const iso_session *session) { return session->length; }

uint32_t iso_session_capacity(const iso_session *session)
{
    return session->engine->options.context_tokens;
}

iso_status iso_session_reserve(iso_session *session, uint32_t tokens, iso_error *error)
{
    const iso_state_spec *spec = iso_state_spec_of(session->engine->state);

    for (uint32_t ratio = 1; ratio <= ISO_RATIO_MAX; ratio++) {
        if (session->pages[ratio] == NULL)
            continue;
        while ((uint64_t)session->page_count[ratio] * spec->page_rows < tokens / ratio) {
            const int32_t page = iso_state_page_take(session->engine->state, ratio);

            if (page < 0)
                return iso_fail(error, ISO_OVER_BUDGET, "no free state page for %u tokens",
                                tokens);
            session->pages[ratio][session->page_count[ratio]++] = page;
        }
    }
    return ISO_OK;
}

/* ---- commit ---- */

iso_status iso_session_commit(iso_session *session, uint32_t count, iso_error *error)
{
    iso_engine *engine = session->engine;
    const iso_pending pending = session->pending;
    int32_t *seqs = iso_ready_input(&engine->commit, engine->commit_io.seqs);
    int32_t *commit = iso_ready_input(&engine->commit, engine->commit_io.commit);

    if (count > pending.count)
        return iso_fail(error, ISO_BAD_ARGUMENT, "commit of %u tokens, %u are pending", count,
                        pending.count);
    session->pending.count = 0;
    if (count == 0)
        return ISO_OK;
    *iso_ready_scalar(&engine->commit, engine->commit_io.sequences) = 1;
    seqs[ISO_SEQ_SLOT] = session->slot;
    seqs[ISO_SEQ_BASE] = (int32_t)session->length;
    seqs[ISO_SEQ_FIRST] = (int32_t)pending.first;
    seqs[ISO_SEQ_COUNT] = (int32_t)pending.count;
    *commit = (int32_t)count;
    ISO_TRY(iso_engine_run(engine, &engine->commit, false, error));
    session->length += count;
    return ISO_OK;
}

iso_status iso_session_prefill(iso_session *session, const int32_t *ids, size_t count,
                               uint32_t chunk, iso_error *error)
{
    iso_engine *engine = session->engine;
    const uint32_t capacity = iso_session_capacity(session);
    size_t done = 0;

    if (chunk == 0 || chunk > engine->options.step_tokens_max)
        chunk = engine->options.step_tokens_max;
    if (count == 0)
        return iso_fail(error, ISO_BAD_PROMPT, "no tokens to prefill");
    if (count > capacity - session->length)
        return iso_fail(error, ISO_CONTEXT_FULL, "%u + %zu tokens, the context is %u",
                        session->length, count, capacity);
    while (done < count) {
        const size_t left = count - done;
        const uint32_t rows = left < chunk ? (uint32_t)left : chunk;
        const iso_batch_item item = {session, ids + done, rows, rows == left};

        ISO_TRY(iso_engine_step(engine, &item, 1, error));
        ISO_TRY(iso_session_commit(session, rows, error));
        done += rows;
        if (engine->options.progress != NULL && count > chunk
            && !engine->options.progress(engine->options.progress_context, "prefill", done, count))
            return iso_fail(error, ISO_CANCELLED, "prefill was cancelled after %zu of %zu tokens",
                            done, count);
    }
    return ISO_OK;
}

const float *iso_session_logits(const iso_session *session, uint32_t row)
{
    const iso_pending *pending = &session->pending;

    if (pending->logits == NULL || row >= pending->logit_rows)
        return NULL;
    return pending->logits + (size_t)row * session->engine->config->vocab_size;
}

/* ---- marks ---- */

/* Visits the parts of the state that a mark copies: this session's slot in each ring. */
typedef void part_fn(unsigned char *state, uint64_t bytes, void *context);

static void each_part(const iso_session *session, part_fn *visit, void *context)
{
    const iso_config *config = session->engine->config;

    for (uint32_t kind = 0; kind < ISO_STATE_KIND_COUNT; kind++) {
        const iso_state_growth growth = iso_state_growth_of(kind);

        if (growth != ISO_GROWTH_RING && growth != ISO_GROWTH_GROUP)
            continue;
        for (uint32_t layer = 0; layer < config->layer_count; layer++) {
            uint64_t bytes;

            if (!iso_state_has(config, kind, layer))
                continue;
            bytes = iso_state_ring_rows(config, kind, layer) * iso_state_row_bytes(config, kind);
            visit(iso_state_host(session->engine->state, kind, layer)
                      + (uint64_t)(uint32_t)session->slot * bytes, bytes, context);
        }
    }
}

static void count_part(unsigned char *state, uint64_t bytes, void *context)
{
    (void)state;
    *(uint64_t *)context += bytes;
}

static void save_part(unsigned char *state, uint64_t bytes, void *context)
{
    unsigned char **to = context;

    memcpy(*to, state, bytes);
    *to += bytes;
}

static void load_part(unsigned char *state, uint64_t bytes, void *context)
{
    const unsigned char **from = context;

    memcpy(state, *from, bytes);
    *from += bytes;
}

iso_status iso_session_mark(const iso_session *session, iso_mark **mark, iso_error *error)
{
    iso_mark *made = iso_alloc_zero(1, sizeof *made, "mark");
    unsigned char *to;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a mark");
    each_part(session, count_part, &made->byte_count);
    made->bytes = iso_alloc(made->byte_count, 64, "mark");
    if (made->bytes == NULL) {
        iso_release(made, sizeof *made);
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a mark");
    }
    to = made->bytes;
    each_part(session, save_part, &to);
    made->session = (iso_session *)(uintptr_t)session;
    made->length = session->length;
    made->is_valid = true;
    made->next = session->marks;
    made->session->marks = made;
    *mark = made;
    return ISO_OK;
}

void iso_mark_destroy(iso_mark **mark)
{
    iso_mark *m, **link;

    if (mark == NULL || *mark == NULL)
        return;
    m = *mark;
    *mark = NULL;
    for (link = &m->session->marks; *link != m; link = &(*link)->next)
        ISO_ASSERT(*link != NULL);
    *link = m->next;
    iso_release(m->bytes, m->byte_count);
    iso_release(m, sizeof *m);
}

iso_status iso_session_rollback(iso_session *session, const iso_mark *mark, iso_error *error)
{
    const unsigned char *from = mark->bytes;

    if (mark->session != session)
        return iso_fail(error, ISO_BAD_ARGUMENT, "the mark belongs to another session");
    if (!mark->is_valid)
        return iso_fail(error, ISO_STALE,
                        "the session has rolled back before this mark (%u tokens)", mark->length);
    each_part(session, load_part, &from);
    session->length = mark->length;
    session->pending = (iso_pending){0};
    for (iso_mark *other = session->marks; other != NULL; other = other->next)
        if (other->length > mark->length)
            other->is_valid = false;
    return ISO_OK;
}

/* ---- hash ---- */

static void hash_ring(iso_hasher *hasher, const iso_session *session, iso_state_kind kind,
                      uint32_t layer)
{
    const iso_config *config = session->engine->config;
    const uint64_t row = iso_state_row_bytes(config, kind);
    const uint32_t ring = iso_state_ring_rows(config, kind, layer);
    const unsigned char *slot = iso_state_host(session->engine->state, kind, layer)
                              + (uint64_t)(uint32_t)session->slot * ring * row;
    uint32_t first = session->length > ring ? session->length - ring : 0;

    if (iso_state_growth_of(kind) == ISO_GROWTH_GROUP)   /* only the open group is state */
        first = session->length - session->length % ring;
    for (uint32_t p = first; p < session->length; p++)
        iso_hasher_add(hasher, slot + p % ring * row, row);
}

static void hash_pages(iso_hasher *hasher, const iso_session *session, iso_state_kind kind,
                       uint32_t layer)
{
    const iso_config *config = session->engine->config;
    const uint64_t row = iso_state_row_bytes(config, kind);
    const uint32_t ratio = iso_config_ratio(config, layer);
    const uint32_t page_rows = iso_state_spec_of(session->engine->state)->page_rows;
    const unsigned char *pool = iso_state_host(session->engine->state, kind, layer);

    for (uint32_t entry = 0; entry < session->length / ratio; entry++) {
        const uint64_t page = (uint32_t)session->pages[ratio][entry / page_rows];

        iso_hasher_add(hasher, pool + (page * page_rows + entry % page_rows) * row, row);
    }
}

iso_status iso_session_hash(const iso_session *session, uint64_t hash[2], iso_error *error)
{
    const iso_config *config = session->engine->config;
    iso_hasher hasher;

    (void)error;
    iso_hasher_init(&hasher);
    iso_hasher_add(&hasher, ISO_NUMERICS_ID, sizeof ISO_NUMERICS_ID);
    iso_hasher_add(&hasher, &session->length, sizeof session->length);
    iso_hasher_add(&hasher, session->ids, session->length * sizeof *session->ids);
    for (uint32_t kind = 0; kind < ISO_STATE_KIND_COUNT; kind++)
        for (uint32_t layer = 0; layer < config->layer_count; layer++) {
            if (!iso_state_has(config, kind, layer))
                continue;
            if (iso_state_growth_of(kind) == ISO_GROWTH_PAGED)
                hash_pages(&hasher, session, kind, layer);
            else if (iso_state_growth_of(kind) != ISO_GROWTH_STEP)
                hash_ring(&hasher, session, kind, layer);
        }
    iso_hasher_end(&hasher, hash);
    return ISO_OK;
}
