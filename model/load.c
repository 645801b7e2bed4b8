#include "model/load.h"

#include "core/alloc.h"
#include "core/hash.h"
#include "model/admit.h"
#include "model/engram.h"
#include "model/rope_freq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char name[ISO_WEIGHT_NAME_MAX];
    uint32_t id;
    iso_tensor_desc desc;
} entry;

struct iso_weight_directory {
    entry *entry;                        /* sorted by name once loading is done */
    uint32_t *id;
    uint32_t count, capacity;
    uint32_t leased;                     /* ids in `id`: all but the ROWS tables */
    uint64_t cleaned;
};

typedef struct loader {
    const iso_config *config;
    const iso_store *store;
    iso_residency *residency;
    const iso_load_progress *progress;
    iso_weight_directory *directory;
    iso_weight_spec codes;               /* the spec before a scale */
    uint64_t bytes_done, bytes_total;
} loader;

/* ---- directory ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

bool iso_weight_find(const iso_weight_directory *directory, const char *name, uint32_t *id,
                     iso_tensor_desc *desc)
{
    entry key;
    const entry *found;

    if (snprintf(key.name, sizeof key.name, "%s", name) >= (int)sizeof key.name)
        return false;
    found = bsearch(&key, directory->entry, directory->count, sizeof key, by_name);
    if (found == NULL)
        return false;
    *id = found->id;
    *desc = found->desc;
    return true;
}

uint32_t iso_weight_count(const iso_weight_directory *directory) { return directory->count; }

static entry *entry_of(const iso_weight_directory *directory, uint32_t id)
{
    for (uint32_t i = 0; i < directory->count; i++)
        if (directory->entry[i].id == id)
            return &directory->entry[i];
    ISO_ASSERT(false && "an id that was given out");
    return NULL;
}

const iso_tensor_desc *iso_weight_desc(const iso_weight_directory *directory, uint32_t id)
{
    return &entry_of(directory, id)->desc;
}

void iso_weight_set_layout(iso_weight_directory *directory, uint32_t id, iso_layout layout)
{
    entry_of(directory, id)->desc.layout = layout;
}

const uint32_t *iso_weight_leased(const iso_weight_directory *directory, uint32_t *count)
{
    *count = directory->leased;
    return directory->id;
}

uint64_t iso_weights_cleaned(const iso_weight_directory *directory) { return directory->cleaned; }

static void directory_release(iso_weight_directory *d)
{
    iso_release(d->entry, d->capacity * sizeof *d->entry);
    iso_release(d->id, d->capacity * sizeof *d->id);
}

void iso_weight_directory_destroy(iso_weight_directory **directory)
{
    if (*directory != NULL) {
        directory_release(*directory);
        iso_release(*directory, sizeof **directory);
    }
    *directory = NULL;
}

static iso_status grow(iso_weight_directory *d, iso_error *error)
{
    iso_weight_directory larger = *d;

    larger.capacity = d->capacity == 0 ? 256 : 2 * d->capacity;
    larger.entry = iso_alloc_zero(larger.capacity, sizeof *larger.entry, "weights");
    larger.id = iso_alloc_zero(larger.capacity, sizeof *larger.id, "weights");
    if (larger.entry == NULL || larger.id == NULL) {
        directory_release(&larger);
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the weight directory");
    }
    if (d->count != 0) {
        memcpy(larger.entry, d->entry, d->count * sizeof *d->entry);
        memcpy(larger.id, d->id, d->count * sizeof *d->id);
    }
    directory_release(d);
    *d = larger;
    return ISO_OK;
}

static iso_status declare(loader *in, const char *name, iso_weight_group group,
                          iso_tensor_desc desc, uint32_t *id, iso_error *error)
{
    iso_weight_directory *d = in->directory;
    const iso_weight_decl decl = {name, group, desc};

    if (d->count == d->capacity)
        ISO_TRY(grow(d, error));
    ISO_TRY(iso_residency_declare(in->residency, &decl, id, error));
    snprintf(d->entry[d->count].name, sizeof d->entry[d->count].name, "%s", name);
    d->entry[d->count].id = *id;
    d->entry[d->count].desc = desc;
    d->count++;
    if (group != ISO_GROUP_ROWS)
        d->id[d->leased++] = *id;
    return ISO_OK;
}

/* ---- bytes ---- */

static iso_status advance(loader *in, uint64_t bytes, iso_error *error)
{
    in->bytes_done += bytes;
    if (in->progress != NULL && in->progress->report != NULL
        && !in->progress->report(in->progress->context, "load", in->bytes_done, in->bytes_total))
        return iso_fail(error, ISO_CANCELLED, "loading was cancelled");
    return ISO_OK;
}

static iso_status place(loader *in, uint32_t id, const void *data, uint64_t bytes,
                        iso_error *error)
{
    const iso_status status = iso_residency_import(in->residency, id, data, error);

    if (status != ISO_UNSUPPORTED)
        return status;
    return iso_residency_write(in->residency, id, 0, data, bytes, error);
}

static void find(const loader *in, const iso_weight_spec *spec, iso_store_tensor *tensor)
{
    if (!iso_store_find(in->store, spec->name, tensor))
        ISO_ASSERT(false && "the store was checked against the configuration");
}

static iso_status load_plain(loader *in, const iso_weight_spec *spec, iso_error *error)
{
    const iso_tensor_desc desc = spec->rank == 1
                                     ? iso_desc1(spec->dtype, spec->extent[0])
                                     : iso_desc2(spec->dtype, spec->extent[0], spec->extent[1]);
    const uint64_t count = (uint64_t)iso_desc_elems(&desc);
    iso_store_tensor tensor;
    uint64_t dirty = 0;
    uint32_t id = 0;
    iso_status status;
    void *copy;

    find(in, spec, &tensor);
    ISO_TRY(declare(in, spec->name, ISO_GROUP_TRUNK, desc, &id, error));
    ISO_TRY(iso_admit_values(spec->name, spec->dtype, tensor.data, count, &dirty, error));
    if (dirty == 0)
        return place(in, id, tensor.data, tensor.bytes, error);
    copy = iso_alloc(tensor.bytes, 64, "weights.clean");
    if (copy == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory", spec->name);
    memcpy(copy, tensor.data, tensor.bytes);
    iso_clean_values(spec->dtype, copy, count);
    status = iso_residency_write(in->residency, id, 0, copy, tensor.bytes, error);
    iso_release(copy, tensor.bytes);
    in->directory->cleaned += dirty;
    return status;
}

/* A private copy of a codes and scales pair, cleaned, handed to `put`. */
typedef iso_status put_fn(loader *in, void *context, const void *codes, const void *scales,
                          iso_error *error);

static iso_status admit_pair(loader *in, const iso_weight_spec *scale_spec, put_fn *put,
                             void *context, iso_error *error)
{
    const iso_weight_spec *spec = &in->codes;
    const int64_t columns =
        spec->encoding == ISO_ENCODING_FP4_CODES ? 2 * spec->extent[1] : spec->extent[1];
    iso_store_tensor codes, scales;
    iso_coded coded = {.name = spec->name, .encoding = spec->encoding, .tile = in->config->tile,
                       .rows = spec->extent[0], .columns = columns};
    uint64_t dirty = 0;
    uint8_t *copy;
    iso_status status;

    find(in, spec, &codes);
    find(in, scale_spec, &scales);
    coded.codes = codes.data;
    coded.scales = scales.data;
    ISO_TRY(iso_admit_codes(&coded, &dirty, error));
    if (dirty == 0)
        return put(in, context, codes.data, scales.data, error);
    copy = iso_alloc(codes.bytes + scales.bytes, 64, "weights.clean");
    if (copy == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory", spec->name);
    memcpy(copy, codes.data, codes.bytes);
    memcpy(copy + codes.bytes, scales.data, scales.bytes);
    iso_clean_codes(&coded, copy, copy + codes.bytes);
    status = put(in, context, copy, copy + codes.bytes, error);
    iso_release(copy, codes.bytes + scales.bytes);
    in->directory->cleaned += dirty;
    return status;
}

typedef struct pair_ids {
    uint32_t codes, scales;
    uint64_t codes_bytes, scales_bytes;
    const void *mapped_codes, *mapped_scales;
} pair_ids;

static iso_status put_dense(loader *in, void *context, const void *codes, const void *scales,
                            iso_error *error)
{
    const pair_ids *ids = context;

    if (codes != ids->mapped_codes) {    /* a cleaned copy dies after this call */
        ISO_TRY(iso_residency_write(in->residency, ids->codes, 0, codes, ids->codes_bytes,
                                    error));
        return iso_residency_write(in->residency, ids->scales, 0, scales, ids->scales_bytes,
                                   error);
    }
    ISO_TRY(place(in, ids->codes, codes, ids->codes_bytes, error));
    return place(in, ids->scales, scales, ids->scales_bytes, error);
}

static iso_status load_dense(loader *in, const iso_weight_spec *scale_spec, iso_error *error)
{
    const iso_weight_spec *spec = &in->codes;
    const iso_tensor_desc codes = iso_desc2(ISO_DTYPE_E4M3, spec->extent[0], spec->extent[1]);
    const iso_tensor_desc scales =
        iso_desc2(ISO_DTYPE_UE8M0, scale_spec->extent[0], scale_spec->extent[1]);
    iso_store_tensor stored;
    pair_ids ids = {.codes_bytes = iso_desc_bytes(&codes), .scales_bytes = iso_desc_bytes(&scales)};

    find(in, spec, &stored);
    ids.mapped_codes = stored.data;
    ISO_TRY(declare(in, spec->name, ISO_GROUP_TRUNK, codes, &ids.codes, error));
    ISO_TRY(declare(in, scale_spec->name, ISO_GROUP_TRUNK, scales, &ids.scales, error));
    return admit_pair(in, scale_spec, put_dense, &ids, error);
}

/* Engram tables are too large to scan: their rows are checked when they are decoded. */
static iso_status load_table(loader *in, const iso_weight_spec *scale_spec, iso_error *error)
{
    const iso_weight_spec *part[2] = {&in->codes, scale_spec};

    for (int i = 0; i < 2; i++) {
        iso_store_tensor tensor;
        uint32_t id = 0;

        find(in, part[i], &tensor);
        ISO_TRY(declare(in, part[i]->name, ISO_GROUP_ROWS,
                        iso_desc2(part[i]->dtype, part[i]->extent[0], part[i]->extent[1]), &id,
                        error));
        ISO_TRY(iso_residency_import(in->residency, id, tensor.data, error));
    }
    return ISO_OK;
}

/* ---- experts ---- */

/* "layers.3.ffn.experts.7.w1.weight" -> "layers.3.ffn.experts.w1.weight". */
static void arena_name(const iso_weight_spec *spec, char name[ISO_WEIGHT_NAME_MAX])
{
    const char *matrix = strstr(spec->name, ".experts.") + strlen(".experts.");

    matrix = strchr(matrix, '.') + 1;
    snprintf(name, ISO_WEIGHT_NAME_MAX, "layers.%d.ffn.experts.%.24s", spec->layer, matrix);
}

static iso_status declare_arena(loader *in, const iso_weight_spec *spec, uint32_t *id,
                                iso_error *error)
{
    const bool is_codes = spec->encoding == ISO_ENCODING_FP4_CODES;
    char name[ISO_WEIGHT_NAME_MAX];
    iso_tensor_desc desc = iso_desc3(is_codes ? ISO_DTYPE_E2M1 : ISO_DTYPE_UE8M0,
                                     in->config->expert_count, spec->extent[0],
                                     is_codes ? 2 * spec->extent[1] : spec->extent[1]);

    arena_name(spec, name);
    if (spec->expert == 0)
        return declare(in, name, ISO_GROUP_EXPERT, desc, id, error);
    for (uint32_t i = in->directory->count; i-- > 0;)
        if (strcmp(in->directory->entry[i].name, name) == 0) {
            *id = in->directory->entry[i].id;
            return ISO_OK;
        }
    ISO_ASSERT(false && "expert 0 comes first");
    return ISO_OK;
}

static iso_status put_expert(loader *in, void *context, const void *codes, const void *scales,
                             iso_error *error)
{
    const pair_ids *ids = context;
    const uint64_t expert = (uint64_t)in->codes.expert;

    ISO_TRY(iso_residency_write(in->residency, ids->codes, expert * ids->codes_bytes, codes,
                                ids->codes_bytes, error));
    return iso_residency_write(in->residency, ids->scales, expert * ids->scales_bytes, scales,
                               ids->scales_bytes, error);
}

static iso_status load_expert(loader *in, const iso_weight_spec *scale_spec, iso_error *error)
{
    pair_ids ids = {.codes_bytes = iso_weight_spec_bytes(&in->codes),
                    .scales_bytes = iso_weight_spec_bytes(scale_spec)};

    ISO_TRY(declare_arena(in, &in->codes, &ids.codes, error));
    ISO_TRY(declare_arena(in, scale_spec, &ids.scales, error));
    return admit_pair(in, scale_spec, put_expert, &ids, error);
}

/* ---- derived constants ---- */

static iso_status add_constant(loader *in, const char *name, iso_tensor_desc desc,
                               const void *data, iso_error *error)
{
    uint32_t id = 0;

    ISO_TRY(declare(in, name, ISO_GROUP_TRUNK, desc, &id, error));
    return iso_residency_write(in->residency, id, 0, data, iso_desc_bytes(&desc), error);
}

static iso_status add_slots(loader *in, iso_error *error)
{
    int32_t slot[1024];
    char name[ISO_WEIGHT_NAME_MAX];

    ISO_ASSERT(in->config->expert_count <= ISO_COUNT_OF(slot));
    for (uint32_t e = 0; e < in->config->expert_count; e++)
        slot[e] = (int32_t)e;
    for (uint32_t layer = 0; layer < in->config->layer_count; layer++) {
        snprintf(name, sizeof name, "layers.%u.ffn.experts.slot", layer);
        ISO_TRY(add_constant(in, name, iso_desc1(ISO_DTYPE_I32, in->config->expert_count), slot,
                             error));
    }
    return ISO_OK;
}

static iso_status add_engram_layer(loader *in, uint32_t layer, const iso_engram_layer *constants,
                                   iso_error *error)
{
    const uint32_t ngram = in->config->engram_ngram, columns = iso_engram_columns(in->config);
    uint32_t word[2 * ISO_ENGRAM_NGRAM_MAX];
    char name[ISO_WEIGHT_NAME_MAX];

    for (uint32_t i = 0; i < ngram; i++) {
        word[2 * i] = (uint32_t)constants->multiplier[i];
        word[2 * i + 1] = (uint32_t)(constants->multiplier[i] >> 32);
    }
    snprintf(name, sizeof name, "layers.%u.engram.multiplier", layer);
    ISO_TRY(add_constant(in, name, iso_desc2(ISO_DTYPE_U32, ngram, 2), word, error));
    snprintf(name, sizeof name, "layers.%u.engram.prime", layer);
    ISO_TRY(add_constant(in, name, iso_desc1(ISO_DTYPE_U32, columns), constants->prime, error));
    snprintf(name, sizeof name, "layers.%u.engram.offset", layer);
    return add_constant(in, name, iso_desc1(ISO_DTYPE_U32, columns), constants->offset, error);
}

static iso_status add_engram(loader *in, iso_error *error)
{
    const iso_config_list *list = &in->config->engram_layers;
    iso_engram_layer *layers;
    iso_status status;

    if (!in->config->has_engram)
        return ISO_OK;
    layers = iso_alloc_zero(list->count, sizeof *layers, "engram");
    if (layers == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the Engram constants");
    status = iso_engram_derive(in->config, layers, error);
    for (uint32_t i = 0; status == ISO_OK && i < list->count; i++)
        status = add_engram_layer(in, (uint32_t)list->at[i], &layers[i], error);
    iso_release(layers, list->count * sizeof *layers);
    return status;
}

static iso_status add_constants(loader *in, iso_error *error)
{
    const iso_tensor_desc desc = iso_desc1(ISO_DTYPE_F32, ISO_ROPE_PAIRS);
    float frequency[ISO_ROPE_PAIRS];

    ISO_TRY(iso_rope_frequencies(in->config, false, frequency, error));
    ISO_TRY(add_constant(in, "rope.plain", desc, frequency, error));
    if (in->config->kv_sources.count != 0) {
        ISO_TRY(iso_rope_frequencies(in->config, true, frequency, error));
        ISO_TRY(add_constant(in, "rope.yarn", desc, frequency, error));
    }
    ISO_TRY(add_slots(in, error));
    return add_engram(in, error);
}

/* ---- walk ---- */

static iso_status visit(void *context, const iso_weight_spec *spec, iso_error *error)
{
    loader *in = context;

    if (spec->draft >= 0 || spec->component == ISO_COMPONENT_VISION)
        return ISO_OK;
    switch (spec->encoding) {
    case ISO_ENCODING_PLAIN:
        ISO_TRY(load_plain(in, spec, error));
        break;
    case ISO_ENCODING_FP8_SCALES:
        ISO_TRY(load_dense(in, spec, error));
        break;
    case ISO_ENCODING_FP4_SCALES:
        ISO_TRY(load_expert(in, spec, error));
        break;
    case ISO_ENCODING_TABLE_SCALES:
        ISO_TRY(load_table(in, spec, error));
        break;
    default:                             /* codes wait for their scales */
        in->codes = *spec;
        return ISO_OK;
    }
    return advance(in, iso_weight_spec_bytes(spec)
                           + (spec->encoding == ISO_ENCODING_PLAIN
                                  ? 0
                                  : iso_weight_spec_bytes(&in->codes)), error);
}

static iso_status count_bytes(void *context, const iso_weight_spec *spec, iso_error *error)
{
    (void)error;
    if (spec->draft < 0 && spec->component != ISO_COMPONENT_VISION)
        *(uint64_t *)context += iso_weight_spec_bytes(spec);
    return ISO_OK;
}

iso_status iso_weights_load(const iso_config *config, const iso_store *store,
                            iso_residency *residency, const iso_load_progress *progress,
                            iso_weight_directory **directory, iso_error *error)
{
    loader in = {.config = config, .store = store, .residency = residency, .progress = progress};
    iso_status status;

    in.directory = iso_alloc_zero(1, sizeof *in.directory, "weights");
    if (in.directory == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for the weight directory");
    ISO_GOTO(iso_weights_each(config, count_bytes, &in.bytes_total, error));
    ISO_GOTO(iso_weights_each(config, visit, &in, error));
    ISO_GOTO(add_constants(&in, error));
    qsort(in.directory->entry, in.directory->count, sizeof *in.directory->entry, by_name);
    *directory = in.directory;
    return ISO_OK;
done:
    iso_weight_directory_destroy(&in.directory);
    return status;
}
