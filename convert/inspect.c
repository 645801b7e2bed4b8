#include "convert/inspect.h"

#include "convert/report.h"
#include "convert/store_safetensors.h"
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

typedef struct file_line {
    const char *name;                /* lent by the store */
    uint64_t tensors, bytes;
} file_line;

typedef struct inspection {
    iso_checkpoint checkpoint;
    file_line *files;
    size_t file_count;
    uint64_t tensors, bytes;         /* of the store, unknown tensors included */
    uint64_t decode_bytes;
} inspection;

/* ---- gathering ---- */

/* A store lends one name per file, so names are compared by address. */
static file_line *line_of(inspection *in, const char *name)
{
    for (size_t i = in->file_count; i-- > 0;)
        if (in->files[i].name == name)
            return &in->files[i];
    ISO_ASSERT(in->file_count < ISO_STORE_SHARDS_MAX);
    in->files[in->file_count].name = name;
    return &in->files[in->file_count++];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const file_line *)a)->name, ((const file_line *)b)->name);
}

static iso_status gather(const char *path, inspection *in, iso_error *error)
{
    const iso_store *store;
    size_t count;

    ISO_TRY(iso_checkpoint_open(path, &in->checkpoint, error));
    in->files = iso_alloc_zero(ISO_STORE_SHARDS_MAX, sizeof *in->files, "inspect.files");
    if (in->files == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a list of files");
    store = in->checkpoint.store;
    count = iso_store_count(store);
    for (size_t i = 0; i < count; i++) {
        iso_store_tensor tensor;
        file_line *line;

        iso_store_at(store, i, &tensor);
        line = line_of(in, tensor.file);
        line->tensors++;
        line->bytes += tensor.bytes;
        in->tensors++;
        in->bytes += tensor.bytes;
    }
    qsort(in->files, in->file_count, sizeof *in->files, by_name);
    for (int i = 0; i < ISO_COMPONENT_COUNT; i++)
        in->decode_bytes += in->checkpoint.report.decode_bytes[i];
    return ISO_OK;
}

/* ---- text ---- */

static const char *list_text(const iso_config_list *list, char *out, size_t room)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < list->count && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%d", i == 0 ? "" : " ", list->at[i]);
    return out;
}

static uint32_t layers_of_ratio(const iso_config *config, uint32_t ratio)
{
    uint32_t count = 0;

    for (uint32_t layer = 0; layer < config->layer_count; layer++)
        count += iso_config_ratio(config, layer) == ratio;
    return count;
}

static void config_text(const iso_config *c, iso_text *text)
{
    char a[ISO_GROUPED_TEXT], b[ISO_GROUPED_TEXT], list[256];

    iso_text_printf(text, "family       %s, from %s\n", c->family, c->source);
    iso_text_printf(text, "model        %u layers, hidden %s, vocabulary %s\n", c->layer_count,
                    iso_grouped(c->hidden_size, a), iso_grouped(c->vocab_size, b));
    iso_text_printf(text, "context      %s tokens\n", iso_grouped(c->context_max, a));
    iso_text_printf(text, "attention    %u heads of %u (%u rotated), window %u\n", c->head_count,
                    c->head_dim, c->rope_dim, c->window);
    iso_text_printf(text, "compression  ratio 2 in %u layers, ratio 1 in %u, none in %u\n",
                    layers_of_ratio(c, 2), layers_of_ratio(c, 1), layers_of_ratio(c, 0));
    iso_text_printf(text, "kv sources   layers %s\n", list_text(&c->kv_sources, list, sizeof list));
    iso_text_printf(text, "indexers     layers %s; %u heads of %u, top %u\n",
                    list_text(&c->index_sources, list, sizeof list), c->index_heads, c->index_dim,
                    c->index_topk);
    iso_text_printf(text, "experts      %u routed, %u per token, width %s\n", c->expert_count,
                    c->expert_picks, iso_grouped(c->moe_dim, a));
}

static void parts_text(const iso_config *c, iso_text *text)
{
    char rows[ISO_GROUPED_TEXT], keys[ISO_GROUPED_TEXT], list[256];

    for (uint32_t i = 0; i < c->engram_layers.count; i++)
        iso_text_printf(text, "engram       layer %d: %s rows of %u, %u read per token\n",
                        c->engram_layers.at[i],
                        iso_grouped((uint64_t)c->engram_rows.at[i], rows), c->engram_dim,
                        (c->engram_ngram - 1) * c->engram_heads);
    if (c->has_engram)
        iso_text_printf(text, "engram keys  %s\n", iso_grouped(c->engram_keys, keys));
    if (c->draft_stages != 0)
        iso_text_printf(text, "drafts       %u stages on layers %s; %u experts, %u per token\n",
                        c->draft_stages, list_text(&c->draft_targets, list, sizeof list),
                        c->draft_experts, c->draft_picks);
    if (c->has_vision)
        iso_text_printf(text, "vision       %u layers, hidden %u, patch %u\n", c->vision_layers,
                        c->vision_dim, c->vision_patch);
}

static void row_text(iso_text *text, const char *name, uint64_t tensors, uint64_t bytes)
{
    char a[ISO_GROUPED_TEXT], b[ISO_GROUPED_TEXT];

    iso_text_printf(text, "  %-34s %9s %19s", name, iso_grouped(tensors, a),
                    iso_grouped(bytes, b));
}

static void dtypes_text(const inspection *in, iso_text *text)
{
    const iso_weights_report *report = &in->checkpoint.report;

    iso_text_printf(text, "\n  %-34s %9s %19s\n", "dtype", "tensors", "bytes");
    for (uint32_t i = 0; iso_report_dtype(i) != ISO_DTYPE_NONE; i++) {
        const iso_dtype dtype = iso_report_dtype(i);

        row_text(text, iso_dtype_tag(dtype), report->dtype_tensors[dtype],
                 report->dtype_bytes[dtype]);
        iso_text_printf(text, "\n");
    }
    row_text(text, "total", report->tensors, report->bytes);
    iso_text_printf(text, "\n");
}

static void components_text(const inspection *in, iso_text *text)
{
    const iso_weights_report *report = &in->checkpoint.report;
    char decode[ISO_GROUPED_TEXT];

    iso_text_printf(text, "\n  %-34s %9s %19s %17s\n", "component", "tensors", "bytes",
                    "read per token");
    for (int i = 0; i < ISO_COMPONENT_COUNT; i++) {
        if (report->component_tensors[i] == 0)
            continue;
        row_text(text, iso_component_name((iso_component)i), report->component_tensors[i],
                 report->component_bytes[i]);
        iso_text_printf(text, " %17s\n", iso_grouped(report->decode_bytes[i], decode));
    }
    row_text(text, "total", report->tensors, report->bytes);
    iso_text_printf(text, " %17s\n", iso_grouped(in->decode_bytes, decode));
}

static void files_text(const inspection *in, iso_text *text)
{
    iso_text_printf(text, "\n  %-34s %9s %19s\n", "file", "tensors", "bytes");
    for (size_t i = 0; i < in->file_count; i++) {
        row_text(text, in->files[i].name, in->files[i].tensors, in->files[i].bytes);
        iso_text_printf(text, "\n");
    }
    row_text(text, "total", in->tensors, in->bytes);
    iso_text_printf(text, "\n");
}

static void write_text(const inspection *in, iso_text *text)
{
    const iso_config *c = &in->checkpoint.config;
    char a[ISO_GROUPED_TEXT], b[ISO_GROUPED_TEXT];

    iso_text_printf(text, "checkpoint   %s\n", iso_store_path(in->checkpoint.store));
    config_text(c, text);
    parts_text(c, text);
    iso_text_printf(text, "weights      %s bytes in %s tensors\n", iso_grouped(in->bytes, a),
                    iso_grouped(in->tensors, b));
    iso_text_printf(text, "decode       %s weight bytes read per token\n",
                    iso_grouped(in->decode_bytes, a));
    iso_text_printf(text, "state        %s bytes per token, and %s of window rings per sequence\n",
                    iso_grouped(iso_config_kv_bytes_per_token(c), a),
                    iso_grouped(iso_config_ring_bytes(c), b));
    iso_report_unknown(&in->checkpoint.report, text);
    dtypes_text(in, text);
    components_text(in, text);
    files_text(in, text);
}

/* ---- JSON ---- */

static void list_json(const char *key, const iso_config_list *list, iso_text *text)
{
    iso_text_printf(text, ", \"%s\": [", key);
    for (uint32_t i = 0; i < list->count; i++)
        iso_text_printf(text, "%s%d", i == 0 ? "" : ", ", list->at[i]);
    iso_text_printf(text, "]");
}

/* Every value of the configuration under our own names. */
static void config_json(const iso_config *c, iso_text *text)
{
    iso_text_printf(text, ", \"config\": {\"source\": ");
    iso_text_json(text, c->source);
#define U32(member, required, nested, flat, low, high, fallback)                                  \
    iso_text_printf(text, ", \"%s\": %u", #member, c->member);
#define I32(member, required, nested, flat, low, high, fallback)                                  \
    iso_text_printf(text, ", \"%s\": %d", #member, c->member);
#define REAL(member, required, nested, flat, low, high, fallback)                                 \
    iso_text_printf(text, ", \"%s\": %.17g", #member, c->member);
#define LIST(member, required, nested, flat, low, high) list_json(#member, &c->member, text);
#define WORD(required, nested, flat, expected)
#include "model/config.def"
#undef U32
#undef I32
#undef REAL
#undef LIST
#undef WORD
    iso_text_printf(text, "}");
}

static void tables_json(const inspection *in, iso_text *text)
{
    const iso_weights_report *report = &in->checkpoint.report;

    iso_text_printf(text, ", \"dtypes\": [");
    for (uint32_t i = 0; iso_report_dtype(i) != ISO_DTYPE_NONE; i++) {
        const iso_dtype dtype = iso_report_dtype(i);

        iso_text_printf(text, "%s{\"dtype\": \"%s\", \"tensors\": %llu, \"bytes\": %llu}",
                        i == 0 ? "" : ", ", iso_dtype_tag(dtype),
                        (ull)report->dtype_tensors[dtype], (ull)report->dtype_bytes[dtype]);
    }
    iso_text_printf(text, "], \"components\": [");
    for (int i = 0; i < ISO_COMPONENT_COUNT; i++)
        iso_text_printf(text, "%s{\"component\": \"%s\", \"tensors\": %llu, \"bytes\": %llu, "
                        "\"decode_bytes\": %llu}", i == 0 ? "" : ", ",
                        iso_component_name((iso_component)i), (ull)report->component_tensors[i],
                        (ull)report->component_bytes[i], (ull)report->decode_bytes[i]);
    iso_text_printf(text, "], \"files\": [");
    for (size_t i = 0; i < in->file_count; i++) {
        iso_text_printf(text, "%s{\"file\": ", i == 0 ? "" : ", ");
        iso_text_json(text, in->files[i].name);
        iso_text_printf(text, ", \"tensors\": %llu, \"bytes\": %llu}", (ull)in->files[i].tensors,
                        (ull)in->files[i].bytes);
    }
    iso_text_printf(text, "]");
}

static void write_json(const inspection *in, iso_text *text)
{
    const iso_config *c = &in->checkpoint.config;

    iso_text_printf(text, "{\"checkpoint\": ");
    iso_text_json(text, iso_store_path(in->checkpoint.store));
    iso_text_printf(text, ", \"family\": \"%s\", \"tensors\": %llu, \"bytes\": %llu, "
                    "\"decode_bytes\": %llu, \"kv_bytes_per_token\": %llu, \"ring_bytes\": %llu",
                    c->family, (ull)in->tensors, (ull)in->bytes, (ull)in->decode_bytes,
                    (ull)iso_config_kv_bytes_per_token(c), (ull)iso_config_ring_bytes(c));
    iso_report_unknown_json(&in->checkpoint.report, text);
    config_json(c, text);
    tables_json(in, text);
    iso_text_printf(text, "}\n");
}

iso_status iso_inspect(const char *directory, bool json, char **text, iso_error *error)
{
    inspection *in = iso_alloc_zero(1, sizeof *in, "inspect");
    iso_text report = {0};
    iso_status status;

    if (in == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory");
    ISO_GOTO(gather(directory, in, error));
    (json ? write_json : write_text)(in, &report);
    ISO_GOTO(iso_text_take(&report, text, error));
done:
    iso_release(in->files, ISO_STORE_SHARDS_MAX * sizeof *in->files);
    iso_checkpoint_close(&in->checkpoint);
    iso_release(in, sizeof *in);
    return status;
}
