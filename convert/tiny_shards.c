#include "convert/tiny_shards.h"

#include "convert/store_safetensors.h"
#include "convert/tiny_values.h"
#include "core/alloc.h"
#include "core/text.h"

#include <string.h>

enum { SHARDS_MAX = 200, CHUNK = 1 << 16 };

typedef struct writer {
    const iso_tiny_plan *plan;
    iso_folder *folder;
    iso_weight_spec *specs;          /* in the order of iso_weights_each */
    uint8_t *shard_of;
    uint32_t count, room;
    uint64_t payload[SHARDS_MAX];    /* bytes */
    uint64_t bytes;
    uint8_t *chunk;
} writer;

/* ---- placement ---- */

static uint32_t group_count(const iso_config *c)
{
    return (c->has_vision ? 1u : 0u) + 1 + c->layer_count + 1 + c->draft_stages
         + c->engram_layers.count;
}

/* The group of the release a tensor lies in. */
static uint32_t group_of(const iso_config *c, const iso_weight_spec *spec)
{
    const uint32_t embed = c->has_vision ? 1 : 0, head = embed + 1 + c->layer_count;

    if (spec->component == ISO_COMPONENT_VISION)
        return strncmp(spec->name, "image_", 6) == 0 ? embed : 0;
    if (spec->component == ISO_COMPONENT_EMBED)
        return embed;
    if (spec->draft >= 0)
        return head + 1 + (uint32_t)spec->draft;
    if (spec->component == ISO_COMPONENT_ENGRAM || spec->component == ISO_COMPONENT_ENGRAM_TABLE)
        return head + 1 + c->draft_stages
             + (uint32_t)iso_config_engram_index(c, (uint32_t)spec->layer);
    return spec->layer >= 0 ? embed + 1 + (uint32_t)spec->layer : head;
}

static iso_status count_spec(void *context, const iso_weight_spec *spec, iso_error *error)
{
    writer *w = context;

    (void)spec, (void)error;
    w->room++;
    return ISO_OK;
}

static iso_status keep_spec(void *context, const iso_weight_spec *spec, iso_error *error)
{
    writer *w = context;
    const iso_config *c = w->plan->config;
    const uint32_t shard = group_of(c, spec) * w->plan->shard_count / group_count(c);

    (void)error;
    ISO_ASSERT(w->count < w->room && shard < w->plan->shard_count);
    w->specs[w->count] = *spec;
    w->shard_of[w->count++] = (uint8_t)shard;
    w->payload[shard] += iso_weight_spec_bytes(spec);
    w->bytes += iso_weight_spec_bytes(spec);
    return ISO_OK;
}

static iso_status collect(writer *w, iso_error *error)
{
    ISO_TRY(iso_weights_each(w->plan->config, count_spec, w, error));
    w->specs = iso_alloc(w->room * sizeof *w->specs, 64, "tiny.specs");
    w->shard_of = iso_alloc(w->room, 1, "tiny.shard_of");
    w->chunk = iso_alloc(CHUNK, 64, "tiny.chunk");
    if (w->specs == NULL || w->shard_of == NULL || w->chunk == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for %u tensors", w->room);
    return iso_weights_each(w->plan->config, keep_spec, w, error);
}

static void release(writer *w)
{
    iso_release(w->specs, w->room * sizeof *w->specs);
    iso_release(w->shard_of, w->room);
    iso_release(w->chunk, CHUNK);
}

/* ---- one shard ---- */

static void file_name(const writer *w, uint32_t shard, char name[ISO_FOLDER_NAME_MAX + 1])
{
    snprintf(name, ISO_FOLDER_NAME_MAX + 1, "model-%05u-of-%05u.safetensors", shard + 1,
             w->plan->shard_count);
}

/* The JSON header, blanks at its end so that the payload starts at a multiple of 8. */
static void header_text(const writer *w, uint32_t shard, iso_text *text)
{
    uint64_t begin = 0;

    iso_text_printf(text, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (uint32_t i = 0; i < w->count; i++) {
        const iso_weight_spec *spec = &w->specs[i];
        const uint64_t end = begin + iso_weight_spec_bytes(spec);

        if (w->shard_of[i] != shard)
            continue;
        iso_text_printf(text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", spec->name,
                        iso_dtype_tag(spec->dtype), (long long)spec->extent[0]);
        for (uint32_t k = 1; k < spec->rank; k++)
            iso_text_printf(text, ",%lld", (long long)spec->extent[k]);
        iso_text_printf(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                        (unsigned long long)end);
        begin = end;
    }
    iso_text_printf(text, "}");
    while (text->used % 8 != 0 && !text->is_out_of_memory)
        iso_text_printf(text, " ");
}

static iso_status write_header(const writer *w, uint32_t shard, uint64_t *bytes, iso_error *error)
{
    iso_text text = {0};
    uint8_t length[8];
    iso_status status;

    header_text(w, shard, &text);
    if (text.is_out_of_memory) {
        status = iso_fail(error, ISO_NO_MEMORY, "out of memory for a header");
        goto done;
    }
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)text.used >> 8 * i);
    ISO_GOTO(iso_folder_write(w->folder, length, sizeof length, error));
    ISO_GOTO(iso_folder_write(w->folder, text.data, text.used, error));
    *bytes = 8 + text.used;
done:
    iso_text_free(&text);
    return status;
}

static iso_status write_values(const writer *w, const iso_weight_spec *spec, iso_error *error)
{
    const uint64_t bytes = iso_weight_spec_bytes(spec);

    for (uint64_t at = 0; at < bytes; at += CHUNK) {
        const size_t count = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;

        iso_tiny_fill(spec, w->plan->seed, at, w->chunk, count);
        ISO_TRY(iso_folder_write(w->folder, w->chunk, count, error));
    }
    return ISO_OK;
}

static iso_status write_shard(const writer *w, uint32_t shard, iso_error *error)
{
    char name[ISO_FOLDER_NAME_MAX + 1];
    uint64_t header_bytes = 0;

    file_name(w, shard, name);
    ISO_TRY(iso_folder_file(w->folder, name, error));
    ISO_TRY(write_header(w, shard, &header_bytes, error));
    if (w->plan->is_sparse)
        ISO_TRY(iso_folder_extend(w->folder, header_bytes + w->payload[shard], error));
    for (uint32_t i = 0; i < w->count && !w->plan->is_sparse; i++)
        if (w->shard_of[i] == shard)
            ISO_TRY(write_values(w, &w->specs[i], error));
    return iso_folder_commit(w->folder, error);
}

/* ---- the index ---- */

static iso_status write_index(const writer *w, iso_error *error)
{
    iso_text text = {0};
    iso_status status;

    iso_text_printf(&text, "{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n"
                    "  \"weight_map\": {", (unsigned long long)w->bytes);
    for (uint32_t i = 0; i < w->count; i++) {
        char name[ISO_FOLDER_NAME_MAX + 1];

        file_name(w, w->shard_of[i], name);
        iso_text_printf(&text, "%s\n    \"%s\": \"%s\"", i == 0 ? "" : ",", w->specs[i].name, name);
    }
    iso_text_printf(&text, "\n  }\n}\n");
    status = text.is_out_of_memory
                 ? iso_fail(error, ISO_NO_MEMORY, "out of memory for the index")
                 : iso_folder_put(w->folder, ISO_STORE_INDEX_FILE, text.data, text.used, error);
    iso_text_free(&text);
    return status;
}

/* The index comes last: a directory without it is no checkpoint. */
iso_status iso_tiny_shards(const iso_tiny_plan *plan, iso_folder *folder, iso_error *error)
{
    writer w = {.plan = plan, .folder = folder};
    iso_status status;

    ISO_ASSERT(plan->shard_count > 0 && plan->shard_count <= SHARDS_MAX);
    ISO_GOTO(collect(&w, error));
    if (!plan->is_sparse)
        ISO_GOTO(iso_folder_room(folder, w.bytes, error));
    for (uint32_t shard = 0; shard < plan->shard_count; shard++)
        ISO_GOTO(write_shard(&w, shard, error));
    ISO_GOTO(write_index(&w, error));
done:
    release(&w);
    return status;
}
