/* tiny: presets are complete checkpoints; the same seed gives the same bytes, and they are the
 * committed ones; failures leave nothing behind; the inventory has the released census. */
#include "tests/unit/folders.h"

#include "convert/folder.h"
#include "convert/tiny_presets.h"
#include "core/alloc.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/os.h"
#include "core/store.h"
#include "model/weights.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

typedef struct golden {
    const char *preset;
    uint64_t seed;
    const char *file;
    uint64_t hash[2];                /* XXH3-128, low word first */
} golden;

static const golden goldens[] = {
#define GOLDEN(preset, seed, file, low, high) {preset, seed, file, {low, high}},
#include "tests/unit/tiny_golden.def"
#undef GOLDEN
};

static void hash_file(const char *folder, const char *name, uint64_t hash[2])
{
    size_t bytes = 0;
    char *data = file_read(folder, name, &bytes);

    iso_hash(data, bytes, hash);
    free(data);
}

static void write_preset(const char *preset, uint64_t seed, const char *path)
{
    iso_error error = {0};

    assert_ok(iso_tiny_write(preset, seed, path, &error), error);
}

/* ISOBIT_TINY_PRINT prints the rows of tiny_golden.def instead of comparing. */
static void tiny_writes_the_committed_bytes(void **state)
{
    const bool print = getenv("ISOBIT_TINY_PRINT") != NULL;
    char path[FOLDER_PATH] = "";

    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        const golden *g = &goldens[i];
        uint64_t hash[2];

        if (i == 0 || g->seed != g[-1].seed || strcmp(g->preset, g[-1].preset) != 0) {
            if (i != 0)
                folder_remove(path);
            folder_create(path);
            write_preset(g->preset, g->seed, path);
        }
        hash_file(path, g->file, hash);
        if (print)
            printf("GOLDEN(\"%s\", %llu, \"%s\", 0x%016llx, 0x%016llx)\n", g->preset,
                   (unsigned long long)g->seed, g->file, (unsigned long long)hash[0],
                   (unsigned long long)hash[1]);
        else if (hash[0] != g->hash[0] || hash[1] != g->hash[1])
            fail_msg("%s, seed %llu: %s has other bytes: 0x%016llx, 0x%016llx", g->preset,
                     (unsigned long long)g->seed, g->file, (unsigned long long)hash[0],
                     (unsigned long long)hash[1]);
    }
    folder_remove(path);
}

static void tiny_presets_are_whole_checkpoints(void **state)
{
    const char *preset, *description;

    (void)state;
    for (uint32_t i = 0; iso_tiny_presets(i, &preset, &description); i++) {
        char path[FOLDER_PATH];
        iso_error error = {0};
        char *text = NULL;

        if (strcmp(preset, "v41-inventory") == 0 || strcmp(preset, "v41-slice") == 0)
            continue;                                    /* hundreds of GB; 4.6 GB */
        folder_create(path);
        write_preset(preset, 7, path);
        assert_ok(iso_verify(path, false, NULL, NULL, &text, &error), error);
        assert_non_null(strstr(text, "to clean     0 values"));
        iso_free(text);
        folder_remove(path);
    }
    assert_false(iso_tiny_presets(UINT32_MAX, &preset, &description));
}

static iso_status add_bytes(void *context, const iso_weight_spec *spec, iso_error *error)
{
    (void)error;
    *(uint64_t *)context += iso_weight_spec_bytes(spec);
    return ISO_OK;
}

/* Too large to write here: its configuration is read back, and its tensors are added up. */
static void tiny_slice_has_layers_of_every_kind(void **state)
{
    const iso_tiny_preset *preset = iso_tiny_preset_find("v41-slice");
    iso_config config;
    iso_error error = {0};
    iso_text text = {0};
    uint64_t bytes = 0;

    (void)state;
    iso_tiny_config_text(&preset->config, &text);
    assert_ok(iso_config_parse(text.data, text.used, "v41-slice", &config, &error), error);
    iso_text_free(&text);
    assert_int_equal(config.layer_count, 4);
    assert_int_equal(config.compress_ratios.at[0], 0);
    assert_true(iso_config_is_kv_source(&config, 1) && !iso_config_is_kv_source(&config, 2));
    assert_true(iso_config_is_index_source(&config, 2) && !iso_config_is_index_source(&config, 3));
    assert_ok(iso_weights_each(&config, add_bytes, &bytes, &error), error);
    assert_true(bytes > 4000000000u && bytes < 6000000000u);
}

static void tiny_folder_asks_for_room(void **state)
{
    iso_folder *folder = malloc(sizeof *folder);
    char path[FOLDER_PATH];
    iso_error error = {0};

    (void)state;
    folder_create(path);
    assert_ok(iso_folder_begin(path, folder, &error), error);
    assert_ok(iso_folder_room(folder, 1, &error), error);
    assert_int_equal(iso_folder_room(folder, (uint64_t)1 << 62, &error), ISO_IO);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "4611686018427387904 bytes to write, "));
    folder_remove(path);
    free(folder);
}

/* Every tensor depends on the seed. */
static void tiny_seeds_differ(void **state)
{
    char path[2][FOLDER_PATH];
    iso_store *store[2] = {NULL, NULL};
    iso_error error = {0};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        folder_create(path[i]);
        write_preset("v41-small", 1 + i, path[i]);
        assert_ok(iso_store_open(path[i], &store[i], &error), error);
    }
    for (size_t i = 0; i < iso_store_count(store[0]); i++) {
        iso_store_tensor a, b;

        iso_store_at(store[0], i, &a);
        iso_store_at(store[1], i, &b);
        assert_string_equal(a.name, b.name);
        if (memcmp(a.data, b.data, a.bytes) == 0)
            fail_msg("%s is the same for two seeds", a.name);
    }
    for (size_t i = 0; i < 2; i++) {
        iso_store_close(&store[i]);
        folder_remove(path[i]);
    }
}

/* The tokenizer decodes what it encodes, and its Engram keys are those of the configuration. */
static void tiny_tokenizer_fits(void **state)
{
    static const char sample[] = "<｜User｜>The clerk counts: 12,345 — größer, 世界! \n\n  int x;"
                                 "<｜Assistant｜></think>";
    static int32_t map[1280];
    iso_tokenizer *tokenizer = NULL;
    iso_store *store = NULL;
    iso_error error = {0};
    iso_config *config = malloc(sizeof *config);
    char path[FOLDER_PATH], *text = NULL;
    iso_token_list tokens = {NULL, 0};
    size_t bytes = 0;
    uint32_t keys = 0;

    (void)state;
    assert_non_null(config);
    folder_create(path);
    write_preset("v41", 1, path);
    assert_ok(iso_store_open(path, &store, &error), error);
    assert_ok(iso_config_read(store, config, &error), error);
    iso_store_close(&store);
    assert_ok(iso_tokenizer_open(path, &tokenizer, &error), error);
    assert_int_equal(iso_tokenizer_vocab_size(tokenizer), config->vocab_size);
    assert_int_equal(iso_tokenizer_find(tokenizer, "<｜deepseek_image｜>"), config->image_id);
    assert_int_equal(iso_tokenizer_find(tokenizer, "<｜begin▁of▁sentence｜>"), config->bos_id);
    assert_ok(iso_tokenizer_token_map(tokenizer, map, 1280, &keys, &error), error);
    assert_int_equal(keys, config->engram_keys);
    assert_true(keys < 1280);                            /* some tokens share a key */
    assert_ok(iso_tokenizer_encode(tokenizer, sample, sizeof sample - 1, ISO_ENCODE_CONTROL,
                                   &tokens, &error), error);
    assert_true(tokens.count > 10 && tokens.count < sizeof sample / 2);
    assert_int_equal(tokens.ids[0], iso_tokenizer_find(tokenizer, "<｜User｜>"));
    assert_ok(iso_tokenizer_decode(tokenizer, tokens.ids, tokens.count, &text, &bytes, &error),
              error);
    assert_string_equal(text, sample);
    iso_free(text);
    iso_free(tokens.ids);
    iso_tokenizer_close(&tokenizer);
    folder_remove(path);
    free(config);
}

/* ---- failures ---- */

static void tiny_refuses_a_used_directory(void **state)
{
    char path[FOLDER_PATH], inside[FOLDER_PATH + 32];
    iso_error error = {0};

    (void)state;
    folder_create(path);
    file_write(path, "mine", "x", 1);
    assert_fails(iso_tiny_write("v41-small", 1, path, &error), ISO_BAD_ARGUMENT, error,
                 "expected an absent or empty directory, it has mine");
    assert_int_equal(folder_entries(path), 1);
    snprintf(inside, sizeof inside, "%s/mine", path);
    assert_fails(iso_tiny_write("v41-small", 1, inside, &error), ISO_BAD_ARGUMENT, error,
                 "is no directory");
    snprintf(inside, sizeof inside, "%s/a/b", path);
    assert_fails(iso_tiny_write("v41-small", 1, inside, &error), ISO_IO, error, "a/b");
    assert_int_equal(error.driver_code, ENOENT);
    assert_fails(iso_tiny_write("v42", 1, path, &error), ISO_BAD_ARGUMENT, error, "v42");
    folder_remove(path);
}

/* A limit on file sizes stands for a full disk: the writer sees EFBIG in the middle of a file. */
static void tiny_removes_what_it_could_not_finish(void **state)
{
    static const rlim_t limits[] = {1000, 100000, 1000000};
    struct rlimit old, small;
    char path[FOLDER_PATH], inside[FOLDER_PATH + 32];
    void (*handler)(int);

    (void)state;
    folder_create(path);
    snprintf(inside, sizeof inside, "%s/new", path);
    handler = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        iso_error error = {0};
        iso_status status[2];

        small = old;
        small.rlim_cur = limits[i];
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        status[0] = iso_tiny_write("v41-small", 1, path, &error);    /* empty, existing */
        status[1] = iso_tiny_write("v41-inventory", 1, inside, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status[0], ISO_IO);
        assert_int_equal(status[1], ISO_IO);
        assert_int_equal(error.driver_code, EFBIG);
        assert_non_null(strstr(error.text, path));
        assert_int_equal(folder_entries(path), 0);
    }
    signal(SIGXFSZ, handler);
    folder_remove(path);
}

static void tiny_survives_failed_allocations(void **state)
{
    iso_status status = ISO_NO_MEMORY;
    char path[FOLDER_PATH];

    (void)state;
    folder_create(path);
    for (uint64_t n = 1; status != ISO_OK; n += 1 + n / 16) {        /* 1, 2, ..., then thinner */
        iso_alloc_stats before, after;

        iso_alloc_get_stats(&before);
        iso_alloc_fail_at(n);
        status = iso_tiny_write("v41-small", 1, path, NULL);
        iso_alloc_fail_at(0);
        iso_alloc_get_stats(&after);
        assert_int_equal(after.count_now, before.count_now);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
        assert_true(status == ISO_OK || folder_entries(path) == 0);
    }
    folder_remove(path);
}

/* ---- the inventory ---- */

static int64_t number(const iso_json *object, const char *key)
{
    int64_t value = 0;

    assert_true(iso_json_int(iso_json_get(object, key), &value));
    return value;
}

static void assert_row(const iso_json *rows, size_t index, int64_t tensors, int64_t bytes)
{
    assert_int_equal(number(iso_json_at(rows, index), "tensors"), tensors);
    assert_int_equal(number(iso_json_at(rows, index), "bytes"), bytes);
}

/* spec/checkpoint.md sections 1 and 2. */
static void assert_census(const iso_json *root)
{
    const iso_json *dtypes = iso_json_get(root, "dtypes"), *files = iso_json_get(root, "files");

    assert_int_equal(number(root, "tensors"), 96085);
    assert_int_equal(number(root, "bytes"), 510286023000);
    assert_row(dtypes, 0, 520, 3952883712);
    assert_row(dtypes, 1, 387, 169229128);
    assert_row(dtypes, 2, 357, 204015223296);
    assert_row(dtypes, 3, 47589, 23563015184);
    assert_row(dtypes, 4, 47232, 278585671680);
    assert_int_equal(iso_json_size(files), 48);
    assert_int_equal(number(iso_json_at(files, 0), "tensors"), 259 + 4);
    assert_int_equal(number(iso_json_at(files, 1), "tensors"), 4);
    for (size_t layer = 0; layer < 40; layer++) {
        const bool gated = layer == 2 || layer == 8 || layer == 14;
        const bool reindex = layer == 24 || layer == 28 || layer == 32 || layer == 36;

        assert_int_equal(number(iso_json_at(files, layer + 2), "tensors"),
                         gated ? 2342 : layer == 20 ? 2341 : reindex ? 2337 : 2334);
    }
    assert_int_equal(number(iso_json_at(files, 42), "tensors"), 2);
    assert_int_equal(number(iso_json_at(files, 43), "tensors")
                         + number(iso_json_at(files, 44), "tensors")
                         + number(iso_json_at(files, 45), "tensors"), 2401);
    assert_int_equal(number(iso_json_at(files, 43), "bytes")
                         + number(iso_json_at(files, 44), "bytes")
                         + number(iso_json_at(files, 45), "bytes"), 7932874632);
    assert_row(files, 46, 6, 101535150272);
    assert_row(files, 47, 6, 101537925968);
    assert_int_equal(number(root, "kv_bytes_per_token"), 890);
    assert_int_equal(number(root, "ring_bytes"), 2703360);
    assert_int_equal(number(root, "decode_bytes"), 13035097920);
    assert_int_equal(number(iso_json_get(root, "unknown"), "count"), 0);
}

static void tiny_inventory_has_the_released_census(void **state)
{
    char path[FOLDER_PATH], *text = NULL;
    iso_json_doc *doc = NULL;
    iso_store *store = NULL;
    iso_error error = {0};
    uint64_t start;
    iso_status status;

    (void)state;
    folder_create(path);
    status = iso_tiny_write("v41-inventory", 0, path, &error);
    if (status == ISO_IO && error.driver_code == EFBIG) {
        print_message("skipped: the file system has no files of 101 GB\n");
        folder_remove(path);
        skip();
    }
    assert_int_equal(status, ISO_OK);
    start = iso_os_clock_ns();
    assert_ok(iso_store_open(path, &store, &error), error);
    iso_store_close(&store);
    print_message("open of 96,085 tensors in 48 shards: %.2f s",
                  (double)(iso_os_clock_ns() - start) * 1e-9);
    start = iso_os_clock_ns();
    assert_ok(iso_inspect(path, true, &text, &error), error);
    print_message(", inspect %.2f s, peak memory %.1f MB\n",
                  (double)(iso_os_clock_ns() - start) * 1e-9, (double)iso_os_peak_rss() * 1e-6);
    assert_ok(iso_json_parse(text, strlen(text), "report", &doc, &error), error);
    assert_census(iso_json_root(doc));
    iso_json_free(&doc);
    iso_free(text);
    folder_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_inventory_has_the_released_census),
        cmocka_unit_test(tiny_writes_the_committed_bytes),
        cmocka_unit_test(tiny_presets_are_whole_checkpoints),
        cmocka_unit_test(tiny_slice_has_layers_of_every_kind),
        cmocka_unit_test(tiny_folder_asks_for_room),
        cmocka_unit_test(tiny_seeds_differ),
        cmocka_unit_test(tiny_tokenizer_fits),
        cmocka_unit_test(tiny_refuses_a_used_directory),
        cmocka_unit_test(tiny_removes_what_it_could_not_finish),
        cmocka_unit_test(tiny_survives_failed_allocations),
    };

    return cmocka_run_group_tests_name("tiny", tests, NULL, NULL);
}
