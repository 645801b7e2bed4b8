#include "model/state.h"

#include "core/alloc.h"

#include <string.h>

typedef enum state_scope { SCOPE_LAYER, SCOPE_OWNER, SCOPE_GATED } state_scope;

static const struct {
    const char *name;
    state_scope scope;
    iso_state_growth growth;
    iso_dtype dtype;
} row[ISO_STATE_KIND_COUNT] = {
#define STATE(kind, scope, growth, dtype, elems)                                                  \
    [ISO_STATE_##kind] = {#kind, SCOPE_##scope, ISO_GROWTH_##growth, ISO_DTYPE_##dtype},
#include "model/state.def"
#undef STATE
};

/* Free numbers 0 .. count - 1, taken lowest first. */
typedef struct number_pool {
    bool *used;
    uint32_t count;
} number_pool;

struct iso_state {
    const iso_backend *backend;
    iso_state_spec spec;
    iso_buffer **buffer;             /* [kinds * layers], NULL where a layer has none */
    unsigned char **host;
    uint32_t tensor_count;
    uint64_t bytes;
    number_pool slots, pages[ISO_RATIO_MAX + 1];
};

static int64_t row_elems(const iso_config *config, iso_state_kind kind)
{
    const int64_t d = config->head_dim, ik = config->index_dim;

    switch (kind) {
#define STATE(kind, scope, growth, dtype, elems)                                                  \
    case ISO_STATE_##kind:                                                                        \
        return elems;
#include "model/state.def"
#undef STATE
    default:
        ISO_ASSERT(false && "unknown state kind");
        return 0;
    }
}

uint32_t iso_state_id(const iso_config *config, iso_state_kind kind, uint32_t layer)
{
    return (uint32_t)kind * config->layer_count + layer;
}

bool iso_state_has(const iso_config *config, iso_state_kind kind, uint32_t layer)
{
    if (row[kind].scope == SCOPE_LAYER)
        return true;
    if (!iso_config_is_kv_source(config, layer))
        return false;
    return row[kind].scope == SCOPE_OWNER || iso_config_ratio(config, layer) > 1;
}

iso_state_growth iso_state_growth_of(iso_state_kind kind) { return row[kind].growth; }
const char *iso_state_kind_name(iso_state_kind kind) { return row[kind].name; }

uint64_t iso_state_row_bytes(const iso_config *config, iso_state_kind kind)
{
    uint64_t bytes = 0;

    if (!iso_dtype_bytes(row[kind].dtype, (uint64_t)row_elems(config, kind), &bytes))
        ISO_ASSERT(false && "state row is no whole number of blocks");
    return bytes;
}

uint32_t iso_state_ring_rows(const iso_config *config, iso_state_kind kind, uint32_t layer)
{
    return row[kind].growth == ISO_GROWTH_RING ? config->window : iso_config_ratio(config, layer);
}

uint32_t iso_state_pages_per_seq(const iso_state_spec *spec, uint32_t ratio)
{
    const uint32_t entries = spec->context / ratio;

    return entries == 0 ? 1 : (entries + spec->page_rows - 1) / spec->page_rows;
}

uint32_t iso_state_pool_rows(const iso_state_spec *spec, uint32_t ratio)
{
    return iso_state_pages_per_seq(spec, ratio) * spec->slots * spec->page_rows;
}

bool iso_state_uses_ratio(const iso_config *config, uint32_t ratio)
{
    for (uint32_t i = 0; i < config->kv_sources.count; i++)
        if (config->compress_ratios.at[config->kv_sources.at[i]] == (int32_t)ratio)
            return true;
    return false;
}

iso_tensor_desc iso_state_desc(const iso_state_spec *spec, iso_state_kind kind, uint32_t layer,
                               uint32_t step_rows)
{
    const iso_config *config = spec->config;
    const int64_t elems = row_elems(config, kind);

    switch (row[kind].growth) {
    case ISO_GROWTH_RING:
    case ISO_GROWTH_GROUP:
        return iso_desc3(row[kind].dtype, spec->slots, iso_state_ring_rows(config, kind, layer),
                         elems);
    case ISO_GROWTH_PAGED:
        return iso_desc2(row[kind].dtype,
                         iso_state_pool_rows(spec, iso_config_ratio(config, layer)), elems);
    default:
        ISO_ASSERT(step_rows <= spec->step_rows);
        return iso_desc2(row[kind].dtype, step_rows, elems);
    }
}

/* ---- memory ---- */

static iso_status take_tensor(iso_state *state, iso_device *device, iso_state_kind kind,
                              uint32_t layer, iso_error *error)
{
    const uint32_t id = iso_state_id(state->spec.config, kind, layer);
    const iso_tensor_desc desc = iso_state_desc(&state->spec, kind, layer, state->spec.step_rows);
    iso_buffer_spec spec = {ISO_MEMORY_SHARED, iso_desc_bytes(&desc), 64, "state"};
    void *host = NULL;

    ISO_TRY(iso_desc_check(&desc, row[kind].name, error));
    ISO_TRY(state->backend->buffer_create(device, &spec, &state->buffer[id], error));
    ISO_TRY(state->backend->buffer_map(state->buffer[id], &host, error));
    memset(host, state->spec.poison ? 0xff : 0, spec.bytes);
    state->host[id] = host;
    state->bytes += spec.bytes;
    return ISO_OK;
}

static bool pool_init(number_pool *pool, uint32_t count)
{
    pool->used = iso_alloc_zero(count, sizeof *pool->used, "state.pool");
    pool->count = count;
    return pool->used != NULL;
}

static void pool_deinit(number_pool *pool)
{
    iso_release(pool->used, pool->count * sizeof *pool->used);
}

static int32_t pool_take(number_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (!pool->used[i]) {
            pool->used[i] = true;
            return (int32_t)i;
        }
    return -1;
}

static void pool_give(number_pool *pool, int32_t number)
{
    ISO_ASSERT(number >= 0 && (uint32_t)number < pool->count && pool->used[number]);
    pool->used[number] = false;
}

static iso_status take_all(iso_state *state, iso_device *device, iso_error *error)
{
    const iso_config *config = state->spec.config;

    state->tensor_count = ISO_STATE_KIND_COUNT * config->layer_count;
    state->buffer = iso_alloc_zero(state->tensor_count, sizeof *state->buffer, "state");
    state->host = iso_alloc_zero(state->tensor_count, sizeof *state->host, "state");
    if (state->buffer == NULL || state->host == NULL
        || !pool_init(&state->slots, state->spec.slots))
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the state tables");
    for (uint32_t ratio = 1; ratio <= ISO_RATIO_MAX; ratio++)
        if (iso_state_uses_ratio(config, ratio)
            && !pool_init(&state->pages[ratio],
                          iso_state_pages_per_seq(&state->spec, ratio) * state->spec.slots))
            return iso_fail(error, ISO_NO_MEMORY, "out of memory for the page tables");
    for (uint32_t kind = 0; kind < ISO_STATE_KIND_COUNT; kind++)
        for (uint32_t layer = 0; layer < config->layer_count; layer++)
            if (iso_state_has(config, kind, layer))
                ISO_TRY(take_tensor(state, device, kind, layer, error));
    return ISO_OK;
}

iso_status iso_state_create(const iso_backend *backend, iso_device *device,
                            const iso_state_spec *spec, iso_state **state, iso_error *error)
{
    iso_state *made = iso_alloc_zero(1, sizeof *made, "state");
    iso_status status;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the state");
    made->backend = backend;
    made->spec = *spec;
    status = take_all(made, device, error);
    if (status != ISO_OK)
        iso_state_destroy(&made);
    else
        *state = made;
    return status;
}

void iso_state_destroy(iso_state **state)
{
    iso_state *s = *state;

    *state = NULL;
    if (s == NULL)
        return;
    for (uint32_t i = 0; s->buffer != NULL && i < s->tensor_count; i++)
        if (s->buffer[i] != NULL)
            s->backend->buffer_destroy(&s->buffer[i]);
    iso_release(s->buffer, s->tensor_count * sizeof *s->buffer);
    iso_release(s->host, s->tensor_count * sizeof *s->host);
    pool_deinit(&s->slots);
    for (uint32_t ratio = 0; ratio <= ISO_RATIO_MAX; ratio++)
        pool_deinit(&s->pages[ratio]);
    iso_release(s, sizeof *s);
}

const iso_state_spec *iso_state_spec_of(const iso_state *state) { return &state->spec; }
uint64_t iso_state_bytes(const iso_state *state) { return state->bytes; }

iso_slice iso_state_slice(const iso_state *state, uint32_t id)
{
    ISO_ASSERT(id < state->tensor_count && state->buffer[id] != NULL);
    return (iso_slice){state->buffer[id], 0};
}

unsigned char *iso_state_host(const iso_state *state, iso_state_kind kind, uint32_t layer)
{
    const uint32_t id = iso_state_id(state->spec.config, kind, layer);

    ISO_ASSERT(state->host[id] != NULL);
    return state->host[id];
}

int32_t iso_state_slot_take(iso_state *state) { return pool_take(&state->slots); }
void iso_state_slot_give(iso_state *state, int32_t slot) { pool_give(&state->slots, slot); }
int32_t iso_state_page_take(iso_state *state, uint32_t ratio)
{
    return pool_take(&state->pages[ratio]);
}
void iso_state_page_give(iso_state *state, uint32_t ratio, int32_t page)
{
    pool_give(&state->pages[ratio], page);
}
