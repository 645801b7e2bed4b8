/* golden_test: the whole model against an independent implementation, exactly.
 *
 * tests/oracle/goldens holds what the Python oracle, written from the papers alone, computed on the
 * tiny checkpoints: per-layer taps, discrete choices and logits of a prompt and of decode steps.
 * The contract fixes every bit, so all comparisons are exact: hashes over all rows, sampled values,
 * expert ids, routing weights, selected entries, Engram rows.
 *
 * usage: golden_test GOLDEN.json ... */
#include "core/json.h"
#include "ggml-style-ops/lane/bf16.h"
#include "tests/model/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 64, COLUMNS_MAX = 65536, CONTEXT = 512 };

typedef enum tap_name { TAP_ATTN, TAP_MOE, TAP_STREAM, TAP_EXPERTS, TAP_WEIGHTS, TAP_TOPK,
                        TAP_NORM, TAP_LOGITS, TAP_COUNT } tap_name;

/* All rows of one tap, in order of position, as 32-bit words. */
typedef struct tap {
    uint32_t *word;
    size_t columns, rows, capacity;
} tap;

typedef struct recorder {
    tap tap[LAYERS_MAX + 1][TAP_COUNT];  /* LAYERS_MAX: what has no layer */
    size_t compared, wrong;
    const char *file;
} recorder;

static const struct {
    const char *node;
    uint32_t output;
    tap_name name;
} taps[] = {
    {"attn.wo_b", 0, TAP_ATTN},   {"ffn.sum", 0, TAP_MOE},      {"ffn.expand", 0, TAP_STREAM},
    {"ffn.route", 0, TAP_EXPERTS}, {"ffn.route", 1, TAP_WEIGHTS}, {"index.topk", 0, TAP_TOPK},
    {"head.norm", 0, TAP_NORM},   {"head.logits", 0, TAP_LOGITS},
};

static void append(tap *t, const iso_tensor_desc *live, const void *data)
{
    const size_t rows = (size_t)live->extent[0];
    const size_t columns = (size_t)(live->extent[1] * live->extent[2] * live->extent[3]);

    t->columns = columns;
    if (t->rows + rows > t->capacity) {
        t->capacity = 2 * (t->rows + rows);
        t->word = realloc(t->word, t->capacity * columns * sizeof *t->word);
        if (t->word == NULL)
            exit(1);
    }
    for (size_t i = 0; i < rows * columns; i++) {
        uint32_t *to = &t->word[t->rows * columns + i];

        if (live->dtype == ISO_DTYPE_BF16)
            *to = (uint32_t)((const uint16_t *)data)[i] << 16;
        else
            *to = ((const uint32_t *)data)[i];
    }
    t->rows += rows;
}

static void record(void *context, const char *node, uint32_t output, const iso_tensor_desc *live,
                   const void *data)
{
    recorder *r = context;
    unsigned layer = LAYERS_MAX;
    int used = 0;

    if (sscanf(node, "layers.%u.%n", &layer, &used) != 1)
        layer = LAYERS_MAX;
    for (size_t i = 0; i < ISO_COUNT_OF(taps); i++)
        if (taps[i].output == output && strcmp(taps[i].node, node + used) == 0)
            append(&r->tap[layer][taps[i].name], live, data);
}

/* ---- comparison ---- */

static void check(recorder *r, bool equal, const char *format, ...) ISO_PRINTF(3, 4);

static void check(recorder *r, bool equal, const char *format, ...)
{
    va_list args;

    r->compared++;
    if (equal)
        return;
    if (r->wrong++ < 20) {
        fprintf(stderr, "%s: ", r->file);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

static int64_t integer(const iso_json *object, const char *key)
{
    int64_t value = 0;

    if (!iso_json_int(iso_json_get(object, key), &value)) {
        fprintf(stderr, "golden: no integer %s\n", key);
        exit(1);
    }
    return value;
}

static uint32_t float_bits(const iso_json *value)
{
    double number = 0;

    if (!iso_json_number(value, &number))
        exit(1);
    return lane_bits((float)number + 0.0f);
}

static const tap *tap_of(recorder *r, const iso_json *entry, const char **name)
{
    static const struct {
        const char *text;
        tap_name name;
    } known[] = {{"attn", TAP_ATTN}, {"moe", TAP_MOE}, {"stream", TAP_STREAM},
                 {"final_norm", TAP_NORM}};
    const int64_t layer = integer(entry, "layer");

    *name = iso_json_string(iso_json_get(entry, "name"), NULL);
    for (size_t i = 0; i < ISO_COUNT_OF(known); i++)
        if (strcmp(known[i].text, *name) == 0)
            return &r->tap[layer < 0 ? LAYERS_MAX : layer][known[i].name];
    fprintf(stderr, "golden: unknown tap %s\n", *name);
    exit(1);
}

static void check_taps(recorder *r, const iso_json *list)
{
    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *entry = iso_json_at(list, i);
        const iso_json *index = iso_json_get(entry, "index"), *value = iso_json_get(entry, "value");
        const size_t row = (size_t)integer(entry, "row");
        const char *name;
        const tap *t = tap_of(r, entry, &name);

        for (size_t j = 0; j < iso_json_size(index); j++) {
            int64_t column = -1;

            check(r, iso_json_int(iso_json_at(index, j), &column) && row < t->rows
                         && column >= 0 && (size_t)column < t->columns
                         && t->word[row * t->columns + (size_t)column]
                                == float_bits(iso_json_at(value, j)),
                  "layer %lld %s row %zu column %lld", (long long)integer(entry, "layer"), name,
                  row, (long long)column);
        }
    }
}

static uint64_t fnv(const uint32_t *word, size_t count)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++)
        for (int shift = 0; shift < 32; shift += 8)
            h = (h ^ (word[i] >> shift & 0xff)) * 0x100000001b3u;
    return h;
}

static bool hash_equal(const iso_json *entry, const uint32_t *word, size_t count)
{
    const char *expected = iso_json_string(iso_json_get(entry, "hash"), NULL);
    char text[32];

    snprintf(text, sizeof text, "%016llx", (unsigned long long)fnv(word, count));
    return expected != NULL && strcmp(expected, text) == 0;
}

static void check_hashes(recorder *r, const iso_json *list)
{
    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *entry = iso_json_at(list, i);
        const char *name;
        const tap *t = tap_of(r, entry, &name);

        check(r, (int64_t)t->rows == integer(entry, "rows")
                     && hash_equal(entry, t->word, t->rows * t->columns),
              "layer %lld %s: hash over %zu rows", (long long)integer(entry, "layer"), name,
              t->rows);
    }
}

static void check_logits(recorder *r, const iso_json *list, uint32_t vocab)
{
    const tap *t = &r->tap[LAYERS_MAX][TAP_LOGITS];

    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *entry = iso_json_at(list, i);
        const size_t row = (size_t)integer(entry, "position");
        const uint32_t *logits = t->word + row * t->columns;
        size_t best = 0;

        check(r, row < t->rows && hash_equal(entry, logits, vocab), "logits of position %zu", row);
        if (row >= t->rows)
            continue;
        for (size_t id = 1; id < vocab; id++)
            if (lane_float(logits[id]) > lane_float(logits[best]))
                best = id;
        check(r, (int64_t)best == integer(entry, "argmax"), "argmax of position %zu", row);
    }
}

/* Ids of an entry equal the row's, with -1 padding behind them. */
static void check_ids(recorder *r, const iso_json *list, tap_name name, const char *what)
{
    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *entry = iso_json_at(list, i), *ids = iso_json_get(entry, "ids");
        const int64_t layer = integer(entry, "layer");
        const size_t row = (size_t)integer(entry, "row"), count = iso_json_size(ids);
        const tap *t = &r->tap[layer][name];
        bool equal = row < t->rows && count <= t->columns;

        for (size_t j = 0; equal && j < t->columns; j++) {
            int64_t id = -1;

            equal = (j >= count || iso_json_int(iso_json_at(ids, j), &id))
                 && (int32_t)t->word[row * t->columns + j] == (int32_t)id;
        }
        check(r, equal, "layer %lld %s of row %zu", (long long)layer, what, row);
        if (name != TAP_EXPERTS)
            continue;
        for (size_t j = 0; j < count; j++)
            check(r, r->tap[layer][TAP_WEIGHTS].word[row * t->columns + j]
                         == float_bits(iso_json_at(iso_json_get(entry, "weight"), j)),
                  "layer %lld routing weight %zu of row %zu", (long long)layer, j, row);
    }
}

/* ---- run ---- */

typedef struct prompt {
    int32_t id[CONTEXT];
    uint32_t count;
} prompt;

static prompt read_ids(const iso_json *list)
{
    prompt p = {.count = (uint32_t)iso_json_size(list)};

    if (p.count > CONTEXT)
        exit(1);
    for (uint32_t i = 0; i < p.count; i++) {
        int64_t id = -1;

        if (!iso_json_int(iso_json_at(list, i), &id))
            exit(1);
        p.id[i] = (int32_t)id;
    }
    return p;
}

static void check_engram(recorder *r, const iso_engine *engine, const iso_json *list,
                         uint32_t first_row, uint32_t rows)
{
    const iso_bucket_plan *plan = engine->plans;
    const iso_config *config = engine->config;

    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *entry = iso_json_at(list, i), *ids = iso_json_get(entry, "ids");
        const int64_t row = integer(entry, "row") - first_row;
        const int32_t index =
            iso_config_engram_index(config, (uint32_t)integer(entry, "layer"));
        const uint32_t *hashed;

        if (row < 0 || row >= rows)
            continue;
        hashed = iso_plan_output(plan->prelude.plan,
                                 (uint32_t)plan->prelude_io.out_engram[index]);
        for (size_t j = 0; j < iso_json_size(ids); j++) {
            int64_t id = -1;

            check(r, iso_json_int(iso_json_at(ids, j), &id)
                         && hashed[(size_t)row * iso_json_size(ids) + j] == (uint32_t)id,
                  "engram layer %lld row %lld column %zu", (long long)integer(entry, "layer"),
                  (long long)row, j);
        }
    }
}

static void step(recorder *r, iso_engine *engine, iso_session *session, const int32_t *ids,
                 uint32_t count, const iso_json *root)
{
    const iso_batch_item item = {session, ids, count, count};
    const uint32_t first = iso_session_length(session);
    iso_error error;

    must(iso_engine_step(engine, &item, 1, &error), &error, "step");
    check_engram(r, engine, iso_json_get(root, "engram"), first, count);
    must(iso_session_commit(session, count, &error), &error, "commit");
    iso_engine_drop_plans(engine);       /* so that `plans` is the plan of the next step */
}

/* "v41-1" -> preset v41, seed 1. */
static void open_model(const iso_json *root, tiny_model *tiny)
{
    static const iso_engine_options options = {.context_tokens = CONTEXT,
                                               .step_tokens_max = CONTEXT, .page_rows = 16};
    const char *config = iso_json_string(iso_json_get(root, "config"), NULL);
    const char *dash = config != NULL ? strrchr(config, '-') : NULL;
    char preset[64];

    if (dash == NULL || (size_t)(dash - config) >= sizeof preset) {
        fprintf(stderr, "golden: config is not PRESET-SEED\n");
        exit(1);
    }
    memcpy(preset, config, (size_t)(dash - config));
    preset[dash - config] = '\0';
    tiny_open(tiny, preset, strtoull(dash + 1, NULL, 10), &options);
}

static size_t run_golden(const char *path)
{
    static recorder r;
    iso_json_doc *doc = NULL;
    iso_session *session = NULL;
    const iso_json *root;
    tiny_model tiny;
    prompt text, decode;
    iso_error error;

    memset(&r, 0, sizeof r);
    r.file = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    must(iso_json_read(path, 1 << 24, &doc, &error), &error, path);
    root = iso_json_root(doc);
    open_model(root, &tiny);
    tiny.engine->is_traced = true;
    tiny.engine->tap = record;
    tiny.engine->tap_context = &r;
    text = read_ids(iso_json_get(root, "prompt"));
    decode = read_ids(iso_json_get(root, "decode"));
    must(iso_session_create(tiny.engine, &session, &error), &error, "session");
    step(&r, tiny.engine, session, text.id, text.count, root);
    for (uint32_t i = 0; i < decode.count; i++)
        step(&r, tiny.engine, session, &decode.id[i], 1, root);
    check_hashes(&r, iso_json_get(root, "hashes"));
    check_taps(&r, iso_json_get(root, "taps"));
    check_ids(&r, iso_json_get(root, "experts"), TAP_EXPERTS, "experts");
    check_ids(&r, iso_json_get(root, "topk"), TAP_TOPK, "selected entries");
    check_logits(&r, iso_json_get(root, "logits"), tiny.model->config.vocab_size);
    printf("%-28s %3u + %u tokens: %zu comparisons, %zu wrong\n", r.file, text.count, decode.count,
           r.compared, r.wrong);
    if (r.compared < 100)
        r.wrong++;
    for (size_t layer = 0; layer <= LAYERS_MAX; layer++)
        for (size_t name = 0; name < TAP_COUNT; name++)
            free(r.tap[layer][name].word);
    iso_session_destroy(&session);
    tiny_close(&tiny);
    iso_json_free(&doc);
    return r.wrong;
}

int main(int argc, char **argv)
{
    size_t wrong = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: golden_test GOLDEN.json ...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        wrong += run_golden(argv[i]);
    return wrong != 0;
}
