#include "model/weights.h"

#include "core/alloc.h"
#include "core/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *iso_component_name(iso_component component)
{
    static const char *const name[ISO_COMPONENT_COUNT] = {
        "embedding", "head", "norms", "hyper-connections", "attention", "compressor", "indexer",
        "router", "shared expert", "routed experts", "engram", "engram tables", "draft stages",
        "vision",
    };

    ISO_ASSERT((unsigned)component < ISO_COMPONENT_COUNT);
    return name[component];
}

typedef enum scope {
    SCOPE_GLOBAL, SCOPE_BLOCK, SCOPE_EXPERT, SCOPE_KV_SOURCE, SCOPE_KV_GATED, SCOPE_INDEX_SOURCE,
    SCOPE_ENGRAM, SCOPE_DRAFT_FIRST, SCOPE_DRAFT_LAST, SCOPE_VISION, SCOPE_VISION_BLOCK
} scope;

typedef struct walk {
    const iso_config *config;
    iso_weight_visit_fn *visit;
    void *context;
    iso_error *error;
    char prefix[48];
    int32_t layer, draft, expert;
} walk;

/* Completes a spec (dtype, rank, extents, component and encoding are set) and visits it. */
static iso_status emit(const walk *w, const char *base, const char *suffix, iso_weight_spec spec)
{
    const int bytes = snprintf(spec.name, sizeof spec.name, "%s%s%s", w->prefix, base, suffix);

    ISO_ASSERT(bytes > 0 && bytes < (int)sizeof spec.name);
    spec.layer = w->layer;
    spec.draft = w->draft;
    spec.expert = w->expert;
    if (w->draft >= 0)
        spec.component = ISO_COMPONENT_DRAFT;
    if (spec.rank == 1)
        spec.extent[1] = 1;
    return w->visit(w->context, &spec, w->error);
}

static iso_status emit_pair(const walk *w, const char *base, iso_weight_spec codes,
                            iso_weight_spec scales)
{
    codes.rank = scales.rank = 2;
    scales.dtype = ISO_DTYPE_UE8M0;
    scales.component = codes.component;
    ISO_TRY(emit(w, base, ".weight", codes));
    return emit(w, base, ".scale", scales);
}

static iso_status emit_fp8(const walk *w, const char *base, int64_t rows, int64_t columns,
                           iso_component component)
{
    const int64_t tile = w->config->tile;

    return emit_pair(w, base,
                     (iso_weight_spec){.dtype = ISO_DTYPE_E4M3, .extent = {rows, columns},
                                       .component = component,
                                       .encoding = ISO_ENCODING_FP8_CODES},
                     (iso_weight_spec){.extent = {(rows + tile - 1) / tile,
                                                  (columns + tile - 1) / tile},
                                       .encoding = ISO_ENCODING_FP8_SCALES});
}

static iso_status emit_fp4(const walk *w, const char *base, int64_t rows, int64_t columns,
                           iso_component component)
{
    return emit_pair(w, base,
                     (iso_weight_spec){.dtype = ISO_DTYPE_I8, .extent = {rows, columns / 2},
                                       .component = component,
                                       .encoding = ISO_ENCODING_FP4_CODES},
                     (iso_weight_spec){.extent = {rows, columns / 32},
                                       .encoding = ISO_ENCODING_FP4_SCALES});
}

static iso_status emit_table(const walk *w, const char *base, int64_t rows, int64_t columns,
                             iso_component component)
{
    return emit_pair(w, base,
                     (iso_weight_spec){.dtype = ISO_DTYPE_E4M3, .extent = {rows, columns},
                                       .component = component,
                                       .encoding = ISO_ENCODING_TABLE_CODES},
                     (iso_weight_spec){.extent = {rows, columns / 32},
                                       .encoding = ISO_ENCODING_TABLE_SCALES});
}

static iso_weight_spec plain(iso_dtype dtype, uint32_t rank, int64_t e0, int64_t e1,
                             iso_component component)
{
    return (iso_weight_spec){.dtype = dtype, .rank = rank, .extent = {e0, e1},
                             .component = component, .encoding = ISO_ENCODING_PLAIN};
}

/* All rows of weights.def in one scope, with the dimensions they are written in. */
static iso_status emit_scope(const walk *w, scope wanted)
{
    const iso_config *c = w->config;
    const int32_t engram = w->layer >= 0 ? iso_config_engram_index(c, (uint32_t)w->layer) : -1;
    const int64_t D = c->hidden_size, V = c->vocab_size, S = c->streams, QL = c->q_rank;
    const int64_t H = c->head_count, HD = c->head_dim, G = c->o_groups, OL = c->o_rank;
    const int64_t E = w->draft >= 0 ? c->draft_experts : c->expert_count, F = c->moe_dim;
    const int64_t IH = c->index_heads, IK = c->index_dim;
    const int64_t EC = (int64_t)(c->engram_ngram - 1) * c->engram_heads, ED = c->engram_dim;
    const int64_t ER = engram >= 0 ? c->engram_rows.at[engram] : 0;
    const int64_t DT = c->draft_targets.count, DR = c->draft_rank;
    const int64_t VD = c->vision_dim, VF = c->vision_inter, VP = c->vision_patch;
    const int64_t VC = c->vision_downsample;

#define PLAIN(scope, name, dtype, rank, e0, e1, component)                                        \
    if (wanted == SCOPE_##scope)                                                                  \
        ISO_TRY(emit(w, name, "", plain(ISO_DTYPE_##dtype, rank, e0, e1,                          \
                                        ISO_COMPONENT_##component)));
#define FP8(scope, base, rows, columns, component)                                                \
    if (wanted == SCOPE_##scope)                                                                  \
        ISO_TRY(emit_fp8(w, base, rows, columns, ISO_COMPONENT_##component));
#define FP4(scope, base, rows, columns, component)                                                \
    if (wanted == SCOPE_##scope)                                                                  \
        ISO_TRY(emit_fp4(w, base, rows, columns, ISO_COMPONENT_##component));
#define TABLE(scope, base, rows, columns, component)                                              \
    if (wanted == SCOPE_##scope)                                                                  \
        ISO_TRY(emit_table(w, base, rows, columns, ISO_COMPONENT_##component));
#include "model/weights.def"
#undef PLAIN
#undef FP8
#undef FP4
#undef TABLE
    return ISO_OK;
}

static iso_status emit_experts(walk *w, uint32_t count)
{
    char block[sizeof w->prefix];

    memcpy(block, w->prefix, sizeof block);
    for (uint32_t e = 0; e < count; e++) {
        const int bytes = snprintf(w->prefix, sizeof w->prefix, "%.20sffn.experts.%u.", block, e);

        ISO_ASSERT(bytes > 0 && bytes < (int)sizeof w->prefix);
        w->expert = (int32_t)e;
        ISO_TRY(emit_scope(w, SCOPE_EXPERT));
    }
    w->expert = -1;
    memcpy(w->prefix, block, sizeof block);
    return ISO_OK;
}

static iso_status emit_layers(walk *w)
{
    const iso_config *c = w->config;

    for (uint32_t layer = 0; layer < c->layer_count; layer++) {
        w->layer = (int32_t)layer;
        snprintf(w->prefix, sizeof w->prefix, "layers.%u.", layer);
        ISO_TRY(emit_scope(w, SCOPE_BLOCK));
        ISO_TRY(emit_experts(w, c->expert_count));
        if (iso_config_is_kv_source(c, layer))
            ISO_TRY(emit_scope(w, SCOPE_KV_SOURCE));
        if (iso_config_is_kv_source(c, layer) && iso_config_ratio(c, layer) > 1)
            ISO_TRY(emit_scope(w, SCOPE_KV_GATED));
        if (iso_config_is_index_source(c, layer))
            ISO_TRY(emit_scope(w, SCOPE_INDEX_SOURCE));
        if (iso_config_engram_index(c, layer) >= 0)
            ISO_TRY(emit_scope(w, SCOPE_ENGRAM));
    }
    w->layer = -1;
    return ISO_OK;
}

static iso_status emit_drafts(walk *w)
{
    const iso_config *c = w->config;

    for (uint32_t stage = 0; stage < c->draft_stages; stage++) {
        w->draft = (int32_t)stage;
        snprintf(w->prefix, sizeof w->prefix, "mtp.%u.", stage);
        ISO_TRY(emit_scope(w, SCOPE_BLOCK));
        ISO_TRY(emit_experts(w, c->draft_experts));
        if (stage == 0)
            ISO_TRY(emit_scope(w, SCOPE_DRAFT_FIRST));
        if (stage + 1 == c->draft_stages)
            ISO_TRY(emit_scope(w, SCOPE_DRAFT_LAST));
    }
    w->draft = -1;
    return ISO_OK;
}

iso_status iso_weights_each(const iso_config *config, iso_weight_visit_fn *visit, void *context,
                            iso_error *error)
{
    walk w = {.config = config, .visit = visit, .context = context, .error = error,
              .layer = -1, .draft = -1, .expert = -1};

    ISO_TRY(emit_scope(&w, SCOPE_GLOBAL));
    ISO_TRY(emit_layers(&w));
    ISO_TRY(emit_drafts(&w));
    w.prefix[0] = '\0';
    if (!config->has_vision)
        return ISO_OK;
    ISO_TRY(emit_scope(&w, SCOPE_VISION));
    for (uint32_t block = 0; block < config->vision_layers; block++) {
        snprintf(w.prefix, sizeof w.prefix, "vision.blocks.%u.", block);
        ISO_TRY(emit_scope(&w, SCOPE_VISION_BLOCK));
    }
    return ISO_OK;
}

uint64_t iso_weight_spec_bytes(const iso_weight_spec *spec)
{
    uint64_t elems = 0, bytes = 0;

    if (!iso_mul_u64((uint64_t)spec->extent[0], (uint64_t)spec->extent[1], &elems)
        || !iso_dtype_bytes(spec->dtype, elems, &bytes))
        ISO_ASSERT(false && "weight spec overflows");
    return bytes;
}

/* ---- check of a store ---- */

typedef struct checker {
    const iso_config *config;
    const iso_store *store;
    uint64_t *expected;              /* hashes of the names found so far */
    iso_weights_report report;
} checker;

static uint64_t name_hash(const char *name)
{
    uint64_t hash[2];

    iso_hash(name, strlen(name), hash);
    return hash[0];
}

/* Weight bytes that decoding one token reads; drafts and vision aside. */
static uint64_t decode_bytes(const iso_config *c, const iso_weight_spec *spec, uint64_t bytes)
{
    switch (spec->component) {
    case ISO_COMPONENT_EMBED:
        return bytes / c->vocab_size;
    case ISO_COMPONENT_EXPERT:           /* each expert counts its share of the picks */
        return bytes * c->expert_picks / c->expert_count;
    case ISO_COMPONENT_ENGRAM_TABLE:
        return (uint64_t)spec->extent[1] * (c->engram_ngram - 1) * c->engram_heads;
    case ISO_COMPONENT_DRAFT:
    case ISO_COMPONENT_VISION:
        return 0;
    default:
        return bytes;
    }
}

static void shape_text(uint32_t rank, const int64_t *extent, char text[64])
{
    int used = snprintf(text, 64, "[");

    for (uint32_t i = 0; i < rank && used < 64; i++)
        used += snprintf(text + used, (size_t)(64 - used), "%s%lld", i ? "," : "",
                         (long long)extent[i]);
    if (used < 64)
        snprintf(text + used, (size_t)(64 - used), "]");
}

static iso_status check_one(void *context, const iso_weight_spec *spec, iso_error *error)
{
    checker *check = context;
    iso_weights_report *report = &check->report;
    iso_store_tensor tensor;
    const uint64_t bytes = iso_weight_spec_bytes(spec);

    if (!iso_store_find(check->store, spec->name, &tensor))
        return iso_fail(error, ISO_BAD_TENSOR, "tensor %s is missing from %s", spec->name,
                        iso_store_path(check->store));
    if (tensor.dtype != spec->dtype)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: dtype %s, expected %s", tensor.file,
                        spec->name, iso_dtype_tag(tensor.dtype), iso_dtype_tag(spec->dtype));
    if (tensor.rank != spec->rank
        || memcmp(tensor.extent, spec->extent, spec->rank * sizeof spec->extent[0]) != 0) {
        char found[64], expected[64];

        shape_text(tensor.rank, tensor.extent, found);
        shape_text(spec->rank, spec->extent, expected);
        return iso_fail(error, ISO_BAD_TENSOR, "%s: %s: shape %s, expected %s", tensor.file,
                        spec->name, found, expected);
    }
    ISO_ASSERT(tensor.layout != ISO_LAYOUT_PLAIN || tensor.bytes == bytes);
    check->expected[report->tensors] = name_hash(spec->name);
    report->tensors++;
    report->bytes += bytes;
    report->dtype_tensors[spec->dtype]++;
    report->dtype_bytes[spec->dtype] += bytes;
    report->component_tensors[spec->component]++;
    report->component_bytes[spec->component] += bytes;
    report->decode_bytes[spec->component] += decode_bytes(check->config, spec, bytes);
    return ISO_OK;
}

/* Names nobody asked for, by hash: expected names are hashed in check_one, sorted here. */
static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void find_unknown(checker *check)
{
    iso_weights_report *report = &check->report;
    const size_t count = iso_store_count(check->store);

    report->unknown = count - report->tensors;
    if (report->unknown == 0)
        return;
    qsort(check->expected, report->tensors, sizeof *check->expected, by_value);
    for (size_t i = 0; i < count; i++) {
        iso_store_tensor tensor;
        uint64_t hash;

        iso_store_at(check->store, i, &tensor);
        hash = name_hash(tensor.name);
        if (bsearch(&hash, check->expected, report->tensors, sizeof hash, by_value) == NULL) {
            snprintf(report->first_unknown, sizeof report->first_unknown, "%s", tensor.name);
            return;
        }
    }
}

iso_status iso_weights_check(const iso_config *config, const iso_store *store,
                             iso_weights_report *report, iso_error *error)
{
    const size_t count = iso_store_count(store);
    checker check = {.config = config, .store = store};
    iso_status status;

    if (count == 0)
        return iso_fail(error, ISO_BAD_TENSOR, "%s: no tensors", iso_store_path(store));
    check.expected = iso_alloc_zero(count, sizeof *check.expected, "weights.check");
    if (check.expected == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory checking %zu tensors", count);
    status = iso_weights_each(config, check_one, &check, error);
    if (status == ISO_OK) {
        find_unknown(&check);
        *report = check.report;
    }
    iso_release(check.expected, count * sizeof *check.expected);
    return status;
}
