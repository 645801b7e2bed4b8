/* verify: a made-up checkpoint is accepted; each kind of bad value is refused by tensor and place;
 * small values are counted; progress is reported and can cancel. */
#include "tests/unit/folders.h"

#include "core/alloc.h"
#include "core/json.h"
#include "core/store.h"

static char checkpoint[FOLDER_PATH];

static int setup(void **state)
{
    iso_error error = {0};

    (void)state;
    folder_create(checkpoint);
    assert_ok(iso_tiny_write("v41-small", 3, checkpoint, &error), error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(checkpoint);
    return 0;
}

/* Exchanges bytes of a tensor's payload; `bytes` receives the old ones. */
static void swap_bytes(const char *name, uint64_t at, void *bytes, size_t count)
{
    uint8_t old[8];
    char file[256];
    iso_store *store = NULL;
    iso_store_tensor tensor;
    iso_error error = {0};
    uint64_t offset;

    assert_ok(iso_store_open(checkpoint, &store, &error), error);
    assert_true(iso_store_find(store, name, &tensor));
    assert_true(at + count <= tensor.bytes && count <= sizeof old);
    memcpy(old, (const uint8_t *)tensor.data + at, count);
    snprintf(file, sizeof file, "%s", tensor.file);
    offset = tensor.file_offset + at;
    iso_store_close(&store);
    file_patch(checkpoint, file, offset, bytes, count);
    memcpy(bytes, old, count);
}

static char *accepted(bool json)
{
    iso_error error = {0};
    char *text = NULL;

    assert_ok(iso_verify(checkpoint, json, NULL, NULL, &text, &error), error);
    assert_non_null(text);
    return text;
}

static int64_t counted(const char *key)
{
    char *text = accepted(true);
    iso_json_doc *doc = NULL;
    iso_error error = {0};
    int64_t value = -1;

    assert_ok(iso_json_parse(text, strlen(text), "report", &doc, &error), error);
    assert_true(iso_json_int(iso_json_get(iso_json_root(doc), key), &value));
    iso_json_free(&doc);
    iso_free(text);
    return value;
}

static void verify_accepts(void **state)
{
    char *text = accepted(false);

    (void)state;
    assert_non_null(strstr(text, "tensors      639, all names, dtypes and shapes"));
    assert_non_null(strstr(text, "result       ok\n"));
    iso_free(text);
    assert_int_equal(counted("tensors"), 639);
    assert_int_equal(counted("to_clean"), 0);
}

/* ---- refused values ---- */

typedef struct violation {
    const char *tensor;
    uint64_t at;                     /* byte of the tensor */
    uint8_t bytes[4];
    uint32_t count;
    const char *part, *name;
} violation;

/* v41-small: hidden 160, q rank 96, moe 96; wq_a [96,160], scales [3,5]; experts w1 [96,160]. */
static const violation violations[] = {
    {"layers.0.attn.wq_a.weight", 160 * 33 + 7, {0x7f}, 1,
     "layers.0.attn.wq_a.weight: row 33, column 7: code 0x7f is NaN", "verify:fp8_nan"},
    {"layers.5.attn.wo_b.weight", 0, {0xff}, 1,
     "layers.5.attn.wo_b.weight: row 0, column 0: code 0xff is NaN", "verify:fp8_negative_nan"},
    {"layers.2.engram.embed.weight", 64 * 1000 + 63, {0x7f}, 1,
     "layers.2.engram.embed.weight: row 1000, column 63: code 0x7f is NaN", "verify:table_nan"},
    {"layers.0.attn.wq_a.scale", 6, {255}, 1,
     "layers.0.attn.wq_a.weight: row 32, column 32: nonzero code", "verify:fp8_scale_nan"},
    {"layers.0.attn.wq_a.scale", 0, {63}, 1, "under scale byte 63, expected a scale byte from 64",
     "verify:fp8_scale_small"},
    {"layers.0.attn.wq_a.scale", 14, {169}, 1, "row 64, column 128: nonzero code",
     "verify:fp8_scale_large"},
    {"layers.3.ffn.experts.11.w2.scale", 159 * 3 + 2, {0}, 1,
     "layers.3.ffn.experts.11.w2.weight: row 159, column 64: nonzero code",
     "verify:fp4_scale_zero"},
    {"layers.2.engram.embed.scale", 2 * 17 + 1, {200}, 1,
     "layers.2.engram.embed.weight: row 17, column 32: nonzero code", "verify:table_scale"},
    {"embed.weight", 2 * (160 * 5 + 3), {0xc0, 0x7f}, 2,
     "embed.weight: row 5, column 3 is NaN (0x7fc0)", "verify:bf16_nan"},
    {"norm.weight", 2 * 159, {0x80, 0xff}, 2, "norm.weight: element 159 is Inf (0xff80)",
     "verify:bf16_inf"},
    {"layers.1.attn.compressor.wgate.weight", 0, {0x80, 0x58}, 2,
     "row 0, column 0 is too large (0x5880), expected a magnitude below 2^50",
     "verify:bf16_too_large"},
    {"layers.0.hc_attn_fn", 4 * 640, {0, 0, 0xc0, 0x7f}, 4,
     "layers.0.hc_attn_fn: row 1, column 0 is NaN (0x7fc00000)", "verify:f32_nan"},
    {"layers.4.ffn.gate.bias_vl", 4 * 11, {0, 0, 0x80, 0xd8}, 4,
     "layers.4.ffn.gate.bias_vl: element 11 is too large (0xd8800000)", "verify:f32_too_large"},
};

static void verify_refuses(void **state)
{
    const violation *v = *state;
    iso_alloc_stats before, after;
    iso_error error = {0};
    uint8_t bytes[4];
    char *text = NULL;

    memcpy(bytes, v->bytes, sizeof bytes);
    swap_bytes(v->tensor, v->at, bytes, v->count);
    iso_alloc_get_stats(&before);
    assert_fails(iso_verify(checkpoint, false, NULL, NULL, &text, &error), ISO_BAD_TENSOR, error,
                 v->part);
    iso_alloc_get_stats(&after);
    assert_null(text);
    assert_int_equal(after.count_now, before.count_now);
    swap_bytes(v->tensor, v->at, bytes, v->count);
}

static void verify_counts_what_is_cleaned(void **state)
{
    uint8_t small[4] = {0xff, 0xff, 0x7f, 0x26}, scale = 64;

    (void)state;
    swap_bytes("layers.0.ffn.gate.bias", 0, small, 4);           /* just below 2^-50 */
    assert_int_equal(counted("to_clean"), 1);
    assert_int_equal(counted("tensors_to_clean"), 1);
    swap_bytes("layers.0.attn.wq_a.scale", 0, &scale, 1);        /* all 32 x 32 codes of a tile */
    assert_true(counted("to_clean") > 1000 && counted("to_clean") <= 1025);
    assert_int_equal(counted("tensors_to_clean"), 2);
    swap_bytes("layers.0.ffn.gate.bias", 0, small, 4);
    swap_bytes("layers.0.attn.wq_a.scale", 0, &scale, 1);
    assert_int_equal(counted("to_clean"), 0);
}

/* ---- refused before any value is read ---- */

static void verify_refuses_another_shape(void **state)
{
    iso_error error = {0};
    char *text = NULL;

    (void)state;
    file_replace(checkpoint, "config.json", "\"moe_intermediate_size\": 96",
                 "\"moe_intermediate_size\": 64");
    assert_fails(iso_verify(checkpoint, false, NULL, NULL, &text, &error), ISO_BAD_TENSOR, error,
                 "layers.0.ffn.shared_experts.w1.weight: shape [96,160], expected [64,160]");
    file_replace(checkpoint, "config.json", "\"moe_intermediate_size\": 64",
                 "\"moe_intermediate_size\": 96");
}

static void verify_refuses_other_engram_rows(void **state)
{
    iso_error error = {0};
    char *text = NULL;

    (void)state;
    file_replace(checkpoint, "config.json", "\"engram_vocab_size\": 400",
                 "\"engram_vocab_size\": 410");
    assert_fails(iso_verify(checkpoint, false, NULL, NULL, &text, &error), ISO_BAD_CONFIG, error,
                 "engram_num_embeddings[0]");
    file_replace(checkpoint, "config.json", "\"engram_vocab_size\": 410",
                 "\"engram_vocab_size\": 400");
}

/* ---- progress ---- */

typedef struct watch {
    uint64_t last, total, calls, stop_after;
} watch;

static bool on_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    watch *w = context;

    assert_string_equal(phase, "verify");
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    return ++w->calls != w->stop_after;
}

static void verify_reports_progress_and_stops(void **state)
{
    watch whole = {0}, stopped = {.stop_after = 5};
    iso_error error = {0};
    char *text = NULL;

    (void)state;
    assert_ok(iso_verify(checkpoint, false, on_progress, &whole, &text, &error), error);
    iso_free(text);
    assert_int_equal(whole.last, whole.total);
    text = NULL;
    assert_fails(iso_verify(checkpoint, false, on_progress, &stopped, &text, &error),
                 ISO_CANCELLED, error, "cancelled");
    assert_null(text);
    assert_int_equal(stopped.calls, 5);
}

int main(void)
{
    enum { REFUSED = sizeof violations / sizeof violations[0], FIXED = 5 };
    struct CMUnitTest tests[FIXED + REFUSED] = {
        {"verify:accepts", verify_accepts, NULL, NULL, NULL},
        {"verify:counts_what_is_cleaned", verify_counts_what_is_cleaned, NULL, NULL, NULL},
        {"verify:refuses_another_shape", verify_refuses_another_shape, NULL, NULL, NULL},
        {"verify:refuses_other_engram_rows", verify_refuses_other_engram_rows, NULL, NULL, NULL},
        {"verify:reports_progress_and_stops", verify_reports_progress_and_stops, NULL, NULL,
         NULL},
    };

    for (size_t i = 0; i < REFUSED; i++)
        tests[FIXED + i] = (struct CMUnitTest){violations[i].name, verify_refuses, NULL, NULL,
                                               (void *)(uintptr_t)&violations[i]};
    return cmocka_run_group_tests_name("verify", tests, setup, teardown);
}
