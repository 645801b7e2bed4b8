/* config_test: the two released spellings read alike; every broken value is refused by name. */
#include "core/json.h"
#include "model/config.h"
#include "model/engram.h"
#include "model/rope_freq.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

static char *nested, *flat;
static size_t nested_bytes, flat_bytes;

static int setup(void **state)
{
    iso_error error;

    (void)state;
    return iso_json_read_text(ISO_SOURCE_DIR "/tests/golden/config/nested.json", 1 << 20, &nested,
                              &nested_bytes, &error)
        || iso_json_read_text(ISO_SOURCE_DIR "/tests/golden/config/flat.json", 1 << 20, &flat,
                              &flat_bytes, &error);
}

static int teardown(void **state)
{
    (void)state;
    iso_free(nested);
    iso_free(flat);
    return 0;
}

static void both_spellings_read_alike(void **state)
{
    static iso_config a, b;
    iso_error error;

    (void)state;
    assert_ok(iso_config_parse(nested, nested_bytes, "nested", &a, &error), error);
    assert_ok(iso_config_parse(flat, flat_bytes, "flat", &b, &error), error);
    assert_string_equal(a.family, "deepseek_v41");
    b.image_id = a.image_id;             /* the flat file lacks the token ids */
    memcpy(b.source, a.source, sizeof b.source);
#define U32(member, required, n, f, low, high, fallback) assert_int_equal(a.member, b.member);
#define I32(member, required, n, f, low, high, fallback) assert_int_equal(a.member, b.member);
#define REAL(member, required, n, f, low, high, fallback)                                         \
    assert_memory_equal(&a.member, &b.member, sizeof a.member);
#define LIST(member, required, n, f, low, high)                                                   \
    assert_memory_equal(&a.member, &b.member, sizeof a.member);
#define WORD(required, n, f, expected)
#include "model/config.def"
#undef U32
#undef I32
#undef REAL
#undef LIST
#undef WORD
    assert_true(a.has_engram && a.has_vision && b.has_engram && b.has_vision);
    assert_int_equal(iso_config_kv_bytes_per_token(&a), 890);
    assert_int_equal(iso_config_ring_bytes(&a), 2703360);
}

static void roles_of_layers(void **state)
{
    static iso_config c;
    iso_error error;

    (void)state;
    assert_ok(iso_config_parse(nested, nested_bytes, "nested", &c, &error), error);
    for (uint32_t layer = 2; layer < 40; layer++) {
        const uint32_t owner = layer >= 20 ? 20 : layer >= 14 ? 14 : layer >= 8 ? 8 : 2;

        assert_int_equal(iso_config_ratio(&c, layer), layer < 20 ? 2 : 1);
        assert_int_equal(iso_config_kv_owner(&c, layer), owner);
        assert_int_equal(iso_config_index_owner(&c, layer),
                         layer < 24 ? owner : layer / 4 * 4 > 36 ? 36 : layer / 4 * 4);
    }
    assert_int_equal(iso_config_engram_index(&c, 1), 0);
    assert_int_equal(iso_config_engram_index(&c, 14), 1);
    assert_int_equal(iso_config_engram_index(&c, 2), -1);
}

/* The nested text with one exact piece replaced; NULL `from` inserts nothing. */
static iso_status parse_edited(const char *from, const char *to, iso_error *error)
{
    static iso_config config;
    const char *at = strstr(nested, from);
    char *edited = malloc(nested_bytes + strlen(to) + 1);
    iso_status status;
    int bytes;

    if (at == NULL)
        fail_msg("the golden configuration has no %s", from);
    bytes = sprintf(edited, "%.*s%s%s", (int)(at - nested), nested, to, at + strlen(from));
    status = iso_config_parse(edited, (size_t)bytes, "config.json", &config, error);
    free(edited);
    return status;
}

/* One exact piece of the nested file, what it becomes, and what the error must say. */
static const struct {
    const char *from, *to, *text;
} edit[] = {
    {"\"model_type\": \"deepseek_v41\"", "\"model_type\": \"deepseek_v4\"", "deepseek_v4"},
    {"\"model_type\": \"deepseek_v41\"", "\"model_type\": \"llama\"", "llama"},
    {"\"model_type\": \"deepseek_v41\",", "", "model_type"},
    {"\"hidden_size\": 5120,", "", "hidden_size is missing"},
    {"\"hidden_size\": 5120", "\"hidden_size\": 0", "hidden_size is 0"},
    {"\"hidden_size\": 5120", "\"hidden_size\": 2147483647", "hidden_size is 2147483647"},
    {"\"hidden_size\": 5120", "\"hidden_size\": 5121", "hidden_size is 5121"},
    {"\"hidden_size\": 5120", "\"hidden_size\": \"5120\"", "hidden_size is a string"},
    {"\"hidden_size\": 5120", "\"hidden_size\": 5120.0", "hidden_size is a real"},
    {"\"hidden_size\": 5120", "\"hidden_size\": 99999999999999999999", "integer"},
    {"\"num_hidden_layers\": 40", "\"num_hidden_layers\": 0", "num_hidden_layers is 0"},
    {"\"num_hidden_layers\": 40", "\"num_hidden_layers\": 513", "num_hidden_layers is 513"},
    {"\"num_hidden_layers\": 40", "\"num_hidden_layers\": 39", "compress_ratios has 43"},
    {"\"num_attention_heads\": 64", "\"num_attention_heads\": 63", "multiple of o_groups"},
    {"\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": 65", "even"},
    {"\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": -64", "qk_rope_head_dim is -64"},
    {"\"index_head_dim\": 128", "\"index_head_dim\": 32", "index_head_dim"},
    {"\"head_dim\": 512", "\"head_dim\": 32", "at most head_dim"},
    {"\"n_shared_experts\": 1", "\"n_shared_experts\": 2", "n_shared_experts is 2"},
    {"\"num_experts_per_tok\": 6", "\"num_experts_per_tok\": 65", "num_experts_per_tok is 65"},
    {"\"n_routed_experts\": 384", "\"n_routed_experts\": 5", "at most 5"},
    {"\"sqrtsoftplus\"", "\"sigmoid\"", "scoring_func is \"sigmoid\""},
    {"\"hc_mult\": 4", "\"hc_mult\": 2", "hc_mult is 2"},
    {"\"weight_block_size\": [\n      32,\n      32\n",
     "\"weight_block_size\": [\n      128,\n      128\n",
     "weight_block_size is [128,128], expected [32,32]"},
    {"\"scale_fmt\": \"ue8m0\"", "\"scale_fmt\": \"float\"", "scale_fmt"},
    {"\"expert_dtype\": \"fp4\"", "\"expert_dtype\": \"int4\"", "expert_dtype"},
    {"\"candidate_source_layer_id\": 20", "\"candidate_source_layer_id\": 19",
     "candidate_source_layer_id is 19"},
    {"\"candidate_source_layer_id\": 20",
     "\"candidate_source_layer_id\": 14", "last kv source"},
    {"\"candidate_topk_blocks\": 2048", "\"candidate_topk_blocks\": 64", "cannot hold"},
    {"\"rms_norm_eps\": 1e-20", "\"rms_norm_eps\": -1", "rms_norm_eps"},
    {"\"engram_num_embeddings\": [\n      384006168,",
     "\"engram_num_embeddings\": [", "entries"},
    {"\"engram_head_dim\": 256,", "", "engram_"},
    {"\"engram_pad_token_id\": 2", "\"engram_pad_token_id\": 129280", "engram_pad_token_id"},
    {"\"bos_token_id\": 0", "\"bos_token_id\": 129280", "bos_token_id is 129280"},
    {"\"dspark_markov_rank\": 256,", "", "dspark"},
    {"\"patch_size\": 14,", "", "vision"},
    {"\"kv_source_layer_ids\": [\n      2,\n      8,",
     "\"kv_source_layer_ids\": [\n      8,\n      2,",
     "kv_source_layer_ids[1] is 2"},
    {"\"index_source_layer_ids\": [\n      2,",
     "\"index_source_layer_ids\": [", "no index source"},
    {"\"compress_ratios\": [\n      0,",
     "\"compress_ratios\": [\n      3,", "compress_ratios[0] is 3"},
    {"\"compress_ratios\": [\n      0,", "\"compress_ratios\": [\n      1,", "layer 0"},
    {"\"sliding_window\": 128", "\"sliding_window\": 128, \"sliding_window\": 64", "duplicate"},
    {"\"text_config\": {", "\"text_config\": [", ""},
};

static void broken_values_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(edit); i++) {
        iso_error error = {.text = ""};
        const iso_status status = parse_edited(edit[i].from, edit[i].to, &error);

        if (status != ISO_BAD_CONFIG && status != ISO_BAD_JSON)
            fail_msg("%s -> %s: %s %s", edit[i].from, edit[i].to, iso_status_name(status),
                     error.text);
        if (strstr(error.text, edit[i].text) == NULL || strstr(error.text, "config.json") == NULL)
            fail_msg("%s -> %s: \"%s\" does not say \"%s\"", edit[i].from, edit[i].to, error.text,
                     edit[i].text);
    }
}

static uint64_t number(const iso_json *value)
{
    int64_t out = -1;

    assert_true(iso_json_int(value, &out));
    return (uint64_t)out;
}

/* Multipliers, primes, offsets and row counts of the release, from the configuration alone. */
static void engram_constants_equal_the_published_ones(void **state)
{
    static iso_config c;
    static iso_engram_layer layers[2];
    static const char *const order[] = {"2", "3", "4"};
    iso_json_doc *doc = NULL;
    iso_error error;

    (void)state;
    assert_ok(iso_config_parse(nested, nested_bytes, "nested", &c, &error), error);
    assert_ok(iso_engram_derive(&c, layers, &error), error);
    assert_ok(iso_json_read(ISO_SOURCE_DIR "/tests/golden/vectors/engram.json", 1 << 20, &doc,
                            &error), error);
    assert_int_equal(iso_engram_columns(&c), 24);
    for (size_t l = 0; l < 2; l++) {
        const iso_json *v = iso_json_at(iso_json_get(iso_json_root(doc), "layers"), l);

        assert_int_equal(layers[l].rows, number(iso_json_get(v, "rows")));
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(layers[l].multiplier[i],
                             number(iso_json_at(iso_json_get(v, "multipliers"), i)));
        for (size_t i = 0; i < 24; i++) {
            const iso_json *primes = iso_json_get(iso_json_get(v, "primes"), order[i / 8]);

            assert_int_equal(layers[l].prime[i], number(iso_json_at(primes, i % 8)));
            assert_int_equal(layers[l].offset[i],
                             number(iso_json_at(iso_json_get(v, "offsets"), i)));
        }
    }
    iso_json_free(&doc);
    c.engram_rows.at[1]++;
    assert_fails(iso_engram_derive(&c, layers, &error), ISO_BAD_CONFIG, error, "384016683");
    c.engram_rows.at[1]--;
    c.engram_keys = 512;                 /* multipliers beyond 2^53: no double may be on the way */
    assert_ok(iso_engram_derive(&c, layers, &error), error);
    assert_true(layers[0].multiplier[0] > 1ull << 53 || layers[0].multiplier[1] > 1ull << 53
                || layers[0].multiplier[2] > 1ull << 53 || layers[0].multiplier[3] > 1ull << 53);
}

static void frequencies_equal_the_normative_tables(void **state)
{
    static const char *const table[] = {"plain", "yarn"};
    static iso_config c;
    iso_json_doc *doc = NULL;
    iso_error error;

    (void)state;
    assert_ok(iso_config_parse(nested, nested_bytes, "nested", &c, &error), error);
    assert_ok(iso_json_read(ISO_SOURCE_DIR "/tests/golden/vectors/rope.json", 1 << 20, &doc,
                            &error), error);
    for (int t = 0; t < 2; t++) {
        const iso_json *freq =
            iso_json_get(iso_json_get(iso_json_root(doc), table[t]), "freq");
        float frequency[ISO_ROPE_PAIRS];

        assert_ok(iso_rope_frequencies(&c, t == 1, frequency, &error), error);
        assert_int_equal(iso_json_size(freq), ISO_ROPE_PAIRS);
        for (size_t i = 0; i < ISO_ROPE_PAIRS; i++) {
            uint32_t bits;

            memcpy(&bits, &frequency[i], sizeof bits);
            assert_int_equal(bits, strtoul(iso_json_string(iso_json_at(freq, i), NULL), NULL, 16));
        }
    }
    iso_json_free(&doc);
    c.yarn_factor = 8;
    {
        float frequency[ISO_ROPE_PAIRS];

        assert_fails(iso_rope_frequencies(&c, true, frequency, &error), ISO_UNSUPPORTED, error,
                     "factor 8");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_spellings_read_alike),
        cmocka_unit_test(roles_of_layers),
        cmocka_unit_test(broken_values_are_refused_by_name),
        cmocka_unit_test(engram_constants_equal_the_published_ones),
        cmocka_unit_test(frequencies_equal_the_normative_tables),
    };

    return cmocka_run_group_tests_name("config", tests, setup, teardown);
}
