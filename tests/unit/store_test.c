/* store: opening checkpoints; hostile files are refused with one line that names the place, leave
 * nothing allocated, and never lead to a read outside the file. */
#include "tests/unit/folders.h"

#include "convert/shard.h"
#include "core/alloc.h"
#include "core/store.h"

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}"
#define B "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[16,24]}"
#define GOOD "{" A "," B "}"
#define ONE(dtype, shape, span)                                                                   \
    "{\"t.w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" span "}}"
#define INDEX "model.safetensors.index.json"

/* ---- one file ---- */

typedef struct hostile {
    const char *header;
    int64_t length;                  /* -1: the header's */
    uint32_t payload;                /* bytes */
    iso_status status;
    const char *part;                /* of the message */
    const char *name;
} hostile;

static const hostile shards[] = {
    {"", 0, 0, ISO_BAD_FILE, "does not start with {", "store:header_length_zero"},
    {GOOD, 25, 0, ISO_BAD_JSON, "model.safetensors", "store:header_cut"},
    {GOOD, 1000, 24, ISO_BAD_FILE, "header length 1000", "store:header_behind_the_file"},
    {GOOD, INT64_MAX, 24, ISO_BAD_FILE, "header length 9223372036854775807",
     "store:header_length_huge"},
    {"[1,2]", -1, 0, ISO_BAD_FILE, "does not start with {", "store:header_is_array"},
    {"  {}", -1, 0, ISO_BAD_FILE, "does not start with {", "store:header_starts_with_blank"},
    {"{\"t.w\":", -1, 0, ISO_BAD_JSON, "model.safetensors", "store:header_is_no_json"},
    {GOOD "x", -1, 24, ISO_BAD_JSON, "model.safetensors", "store:header_with_garbage"},
    {"{\"\xff\":1}", -1, 0, ISO_BAD_JSON, "model.safetensors", "store:header_invalid_utf8"},
    {"{" A "," A "}", -1, 16, ISO_BAD_JSON, "duplicate", "store:name_twice_in_a_shard"},
    {"{\"a\\u0000b\":{}}", -1, 0, ISO_BAD_JSON, "model.safetensors", "store:name_with_nul"},
    {"{\"t.w\":3}", -1, 0, ISO_BAD_TENSOR, "t.w: its header entry is no object",
     "store:entry_is_number"},
    {"{\"t.w\":null}", -1, 0, ISO_BAD_TENSOR, "t.w: its header entry is no object",
     "store:entry_is_null"},
    {"{\"t.w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", -1, 4, ISO_BAD_TENSOR,
     "t.w: key dtype is missing", "store:dtype_missing"},
    {ONE("7", "[1]", "[0,4]"), -1, 4, ISO_BAD_TENSOR, "t.w: dtype is no string",
     "store:dtype_is_number"},
    {ONE("\"F16\"", "[1]", "[0,2]"), -1, 2, ISO_BAD_TENSOR, "t.w: unknown dtype \"F16\"",
     "store:dtype_unknown"},
    {ONE("\"\"", "[1]", "[0,2]"), -1, 2, ISO_BAD_TENSOR, "t.w: unknown dtype \"\"",
     "store:dtype_empty"},
    {ONE("\"e2m1\"", "[2]", "[0,1]"), -1, 1, ISO_BAD_TENSOR, "t.w: unknown dtype",
     "store:dtype_is_our_own_name"},
    {"{\"t.w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", -1, 4, ISO_BAD_TENSOR,
     "t.w: key shape is missing", "store:shape_missing"},
    {ONE("\"F32\"", "4", "[0,16]"), -1, 16, ISO_BAD_TENSOR, "t.w: shape is no array",
     "store:shape_is_number"},
    {ONE("\"F32\"", "[-1]", "[0,4]"), -1, 4, ISO_BAD_TENSOR, "t.w: shape entry 0",
     "store:shape_negative"},
    {ONE("\"F32\"", "[1,1.0]", "[0,4]"), -1, 4, ISO_BAD_TENSOR, "t.w: shape entry 1",
     "store:shape_real"},
    {ONE("\"F32\"", "[\"1\"]", "[0,4]"), -1, 4, ISO_BAD_TENSOR, "t.w: shape entry 0",
     "store:shape_text"},
    {ONE("\"F32\"", "[9223372036854775808]", "[0,4]"), -1, 4, ISO_BAD_JSON, "too big",
     "store:shape_beyond_int64"},
    {ONE("\"F32\"", "[1,1,1,1,1]", "[0,4]"), -1, 4, ISO_BAD_TENSOR, "t.w: rank 5",
     "store:shape_rank_5"},
    {ONE("\"U8\"", "[4294967296,4294967296]", "[0,0]"), -1, 0, ISO_BAD_TENSOR,
     "t.w: shape overflows", "store:shape_wraps_to_zero"},
    {ONE("\"I8\"", "[4294967296,4294967296]", "[0,0]"), -1, 0, ISO_BAD_TENSOR,
     "t.w: shape overflows", "store:shape_wraps_to_zero_packed_fp4"},
    {ONE("\"F8_E4M3\"", "[4294967296,4294967296,1]", "[0,0]"), -1, 0, ISO_BAD_TENSOR,
     "t.w: shape overflows", "store:shape_wraps_to_zero_fp8"},
    {ONE("\"F32\"", "[4611686018427387904]", "[0,0]"), -1, 0, ISO_BAD_TENSOR,
     "t.w: shape overflows", "store:bytes_wrap_to_zero"},
    {ONE("\"BF16\"", "[4294967296,2147483649]", "[0,0]"), -1, 0, ISO_BAD_TENSOR,
     "t.w: shape overflows", "store:bytes_wrap_to_small"},
    {ONE("\"U8\"", "[0,9223372036854775807,9223372036854775807]", "[0,4]"), -1, 4,
     ISO_BAD_TENSOR, "t.w: U8 of its shape needs 0 bytes", "store:shape_zero_times_huge"},
    {"{\"t.w\":{\"dtype\":\"F32\",\"shape\":[1]}}", -1, 4, ISO_BAD_TENSOR,
     "t.w: key data_offsets is missing", "store:offsets_missing"},
    {ONE("\"F32\"", "[1]", "[4]"), -1, 4, ISO_BAD_TENSOR, "t.w: data_offsets is not",
     "store:offsets_one_number"},
    {ONE("\"F32\"", "[1]", "[0,4,8]"), -1, 4, ISO_BAD_TENSOR, "t.w: data_offsets is not",
     "store:offsets_three_numbers"},
    {ONE("\"F32\"", "[1]", "[0,\"4\"]"), -1, 4, ISO_BAD_TENSOR, "t.w: data_offsets is not",
     "store:offsets_text"},
    {ONE("\"F32\"", "[1]", "{\"a\":0,\"b\":4}"), -1, 4, ISO_BAD_TENSOR,
     "t.w: data_offsets is not", "store:offsets_object"},
    {ONE("\"F32\"", "[1]", "[4,0]"), -1, 4, ISO_BAD_TENSOR, "t.w: data_offsets [4,0]",
     "store:offsets_reversed"},
    {ONE("\"F32\"", "[1]", "[-4,0]"), -1, 4, ISO_BAD_TENSOR, "t.w: data_offsets [-4,0]",
     "store:offsets_negative"},
    {ONE("\"F32\"", "[2]", "[0,8]"), -1, 7, ISO_BAD_TENSOR, "the file has 7 payload bytes",
     "store:payload_truncated"},
    {ONE("\"F32\"", "[1]", "[9223372036854775803,9223372036854775807]"), -1, 4, ISO_BAD_TENSOR,
     "t.w: data_offsets [9223372036854775803", "store:offsets_far_behind"},
    {ONE("\"F32\"", "[3]", "[0,8]"), -1, 8, ISO_BAD_TENSOR, "t.w: F32 of its shape needs 12",
     "store:span_too_small"},
    {ONE("\"BF16\"", "[3]", "[0,8]"), -1, 8, ISO_BAD_TENSOR, "t.w: BF16 of its shape needs 6",
     "store:span_too_large"},
    {"{" A ",\"c\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[15,24]}}", -1, 24,
     ISO_BAD_TENSOR, "c: data_offsets [15,24] overlap a, which ends at 16", "store:overlap"},
    {"{" A ",\"c\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", -1, 16,
     ISO_BAD_TENSOR, "c: data_offsets [0,16] overlap a", "store:overlap_same_range"},
    {"{" A ",\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", -1, 16,
     ISO_BAD_TENSOR, "c: data_offsets [4,8] overlap a", "store:overlap_inside"},
    {"{" A ",\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[17,21]}}", -1, 21,
     ISO_BAD_TENSOR, "c: data_offsets [17,21] leave a hole behind 16", "store:hole"},
    {ONE("\"U8\"", "[4]", "[1,5]"), -1, 5, ISO_BAD_TENSOR, "t.w: data_offsets [1,5] leave a hole",
     "store:hole_at_the_start"},
    {GOOD, -1, 25, ISO_BAD_FILE, "25 payload bytes, but the tensors end at 24",
     "store:trailing_byte"},
    {"{}", -1, 0, ISO_BAD_FILE, "no tensors", "store:no_tensors"},
    {"{\"t.w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", -1, 1,
     ISO_BAD_TENSOR, "t.w: expected only dtype", "store:entry_with_another_key"},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", -1, 1, ISO_BAD_TENSOR,
     "tensor name \"\" has 0 bytes", "store:name_empty"},
    {"{\"__metadata__\":[]," A "}", -1, 16, ISO_BAD_FILE, "__metadata__ is no object",
     "store:metadata_is_array"},
    {"{\"__metadata__\":{\"k\":1}," A "}", -1, 16, ISO_BAD_FILE, "__metadata__: k is no string",
     "store:metadata_is_number"},
    {"{\"t\\nw\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", -1, 1, ISO_BAD_TENSOR,
     "t?w: U8 of its shape", "store:name_with_newline"},
};

static void refuse(const char *path, iso_status status, const char *part)
{
    iso_alloc_stats before, after;
    iso_error error = {0};
    iso_store *store = NULL;

    iso_alloc_get_stats(&before);
    assert_fails(iso_store_open(path, &store, &error), status, error, part);
    assert_null(store);
    assert_null(strchr(error.text, '\n'));
    iso_alloc_get_stats(&after);
    assert_int_equal(after.count_now, before.count_now);
    assert_int_equal(after.bytes_now, before.bytes_now);
}

static void refuse_shard(void **state)
{
    const hostile *h = *state;
    char path[FOLDER_PATH];

    folder_create(path);
    shard_write(path, "model.safetensors", h->header, h->length, h->payload);
    refuse(path, h->status, h->part);
    folder_remove(path);
}

/* ---- several files ---- */

typedef struct hostile_index {
    const char *index;
    iso_status status;
    const char *part, *name;
} hostile_index;

/* Beside one.safetensors (a, b) and two.safetensors (c). */
#define MAP_A "\"a\":\"one.safetensors\""
#define MAP_B "\"b\":\"one.safetensors\""
#define MAP_C "\"c\":\"two.safetensors\""
#define MAPPED(entries) "{\"weight_map\":{" entries "}}"

static const hostile_index indices[] = {
    {"", ISO_BAD_JSON, INDEX, "store:index_empty_file"},
    {"[]", ISO_BAD_FILE, "expected an object", "store:index_is_array"},
    {"{\"weight_map\":{" MAP_A "}", ISO_BAD_JSON, INDEX, "store:index_cut"},
    {"{\"metadata\":{}}", ISO_BAD_FILE, "key weight_map is missing", "store:index_without_map"},
    {MAPPED(""), ISO_BAD_FILE, "weight_map is empty", "store:index_empty_map"},
    {"{\"weight_map\":[1]}", ISO_BAD_FILE, "weight_map is empty or no object",
     "store:index_map_is_array"},
    {MAPPED("\"a\":1"), ISO_BAD_FILE, "a: its file is no string", "store:index_file_is_number"},
    {MAPPED("\"a\":\"../one.safetensors\""), ISO_BAD_FILE, "a: \"../one.safetensors\"",
     "store:index_file_in_parent"},
    {MAPPED("\"a\":\"..\""), ISO_BAD_FILE, "a: \"..\"", "store:index_file_is_parent"},
    {MAPPED("\"a\":\"x/one.safetensors\""), ISO_BAD_FILE, "a: \"x/one.safetensors\"",
     "store:index_file_with_slash"},
    {MAPPED("\"a\":\"/etc/passwd\""), ISO_BAD_FILE, "a: \"/etc/passwd\"",
     "store:index_file_absolute"},
    {MAPPED("\"a\":\"\""), ISO_BAD_FILE, "a: \"\"", "store:index_file_empty"},
    {MAPPED(MAP_A "," MAP_B ",\"c\":\"none.safetensors\""), ISO_NOT_FOUND, "none.safetensors",
     "store:index_file_missing"},
    {MAPPED(MAP_A "," MAP_B ",\"c\":\"cut.safetensors\""), ISO_BAD_FILE, "cut.safetensors",
     "store:index_file_truncated"},
    {MAPPED(MAP_A "," MAP_B "," MAP_C ",\"d\":\"two.safetensors\""), ISO_BAD_TENSOR,
     "tensor d is assigned to two.safetensors, which does not have it",
     "store:index_tensor_missing"},
    {MAPPED(MAP_A "," MAP_B ",\"c\":\"one.safetensors\",\"d\":\"two.safetensors\""),
     ISO_BAD_TENSOR, "tensor c is assigned to one.safetensors, but lies in two.safetensors",
     "store:index_tensor_elsewhere"},
    {MAPPED(MAP_A "," MAP_C), ISO_BAD_TENSOR, "one.safetensors: b is not in the index",
     "store:index_tensor_unlisted"},
    {MAPPED(MAP_A "," MAP_B ",\"c\":\"again.safetensors\""), ISO_BAD_TENSOR,
     "tensor a is in two shards", "store:index_tensor_in_two_shards"},
    {MAPPED(MAP_A "," MAP_A), ISO_BAD_JSON, "duplicate", "store:index_name_twice"},
    {"{\"metadata\":{\"total_size\":31},\"weight_map\":{" MAP_A "," MAP_B "," MAP_C "}}",
     ISO_BAD_FILE, "total_size is 31, but the tensors have 32 bytes", "store:index_total_wrong"},
    {"{\"metadata\":{\"total_size\":-1},\"weight_map\":{" MAP_A "," MAP_B "," MAP_C "}}",
     ISO_BAD_FILE, "total_size is -1", "store:index_total_negative"},
    {"{\"metadata\":{\"total_size\":32.0},\"weight_map\":{" MAP_A "," MAP_B "," MAP_C "}}",
     ISO_BAD_FILE, "total_size is no whole number", "store:index_total_real"},
};

static void write_shards(const char *path)
{
    shard_write(path, "one.safetensors", GOOD, -1, 24);
    shard_write(path, "two.safetensors",
                "{\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}", -1, 8);
    shard_write(path, "again.safetensors",
                "{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", -1, 2);
    file_write(path, "cut.safetensors", "\x10\0\0", 3);
}

static void refuse_index(void **state)
{
    const hostile_index *h = *state;
    char path[FOLDER_PATH];

    folder_create(path);
    write_shards(path);
    file_write(path, INDEX, h->index, strlen(h->index));
    refuse(path, h->status, h->part);
    folder_remove(path);
}

/* ---- what is accepted ---- */

static void open_reads_an_index(void **state)
{
    static const char index[] =
        "{\"metadata\":{\"total_size\":32,\"x\":1},\"weight_map\":{" MAP_C "," MAP_B "," MAP_A
        "}}";
    iso_error error = {0};
    iso_store *store = NULL;
    iso_store_tensor tensor;
    char path[FOLDER_PATH];

    (void)state;
    folder_create(path);
    write_shards(path);
    file_write(path, INDEX, index, strlen(index));
    assert_ok(iso_store_open(path, &store, &error), error);
    assert_int_equal(iso_store_count(store), 3);
    assert_string_equal(iso_store_path(store), path);
    iso_store_at(store, 1, &tensor);                     /* name order */
    assert_string_equal(tensor.name, "b");
    assert_true(iso_store_find(store, "a", &tensor));
    assert_string_equal(tensor.file, "one.safetensors");
    assert_int_equal(tensor.dtype, ISO_DTYPE_F32);
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.extent[1], 2);
    assert_int_equal(tensor.bytes, 16);
    assert_int_equal(((const uint8_t *)tensor.data)[15], 15);
    assert_int_equal(tensor.file_offset, 8 + strlen(GOOD));
    assert_true(iso_store_find(store, "c", &tensor));
    assert_int_equal(tensor.rank, 0);
    assert_int_equal(tensor.bytes, 8);
    assert_false(iso_store_find(store, "", &tensor));
    assert_false(iso_store_find(store, "aa", &tensor));
    assert_false(iso_store_find(store, "zz", &tensor));
    iso_store_close(&store);
    assert_null(store);
    iso_store_close(&store);
    folder_remove(path);
}

static void open_reads_one_file(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[5,5]},"
        "\"byte\":{\"dtype\":\"F8_E8M0\",\"shape\":[1,1,1,1],\"data_offsets\":[0,1]}}   ";
    iso_error error = {0};
    char path[FOLDER_PATH], file[FOLDER_PATH + 64];

    (void)state;
    folder_create(path);
    shard_write(path, "model.safetensors", header, -1, 5);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    for (int i = 0; i < 2; i++) {                        /* the directory, the file */
        iso_store *store = NULL;
        iso_store_tensor tensor;

        assert_ok(iso_store_open(i == 0 ? path : file, &store, &error), error);
        assert_string_equal(iso_store_path(store), path);
        assert_true(iso_store_find(store, "odd", &tensor));
        assert_int_equal(((const uint8_t *)tensor.data)[0], 1);
        assert_true(iso_store_find(store, "none", &tensor));
        assert_int_equal(tensor.bytes, 0);
        iso_store_close(&store);
    }
    folder_remove(path);
}

static void open_refuses_what_is_no_checkpoint(void **state)
{
    char path[FOLDER_PATH], inside[FOLDER_PATH + 64];

    (void)state;
    folder_create(path);
    refuse(path, ISO_NOT_FOUND, "not a checkpoint directory");
    snprintf(inside, sizeof inside, "%s/none", path);
    refuse(inside, ISO_NOT_FOUND, "none");
    snprintf(inside, sizeof inside, "%s/none.safetensors", path);
    refuse(inside, ISO_NOT_FOUND, "none.safetensors");
    file_write(path, "file", "x", 1);
    snprintf(inside, sizeof inside, "%s/file", path);
    refuse(inside, ISO_BAD_FILE, "neither a container nor a .safetensors file");
    refuse("", ISO_NOT_FOUND, "path");
    file_write(path, "model.safetensors", "", 0);
    refuse(path, ISO_BAD_FILE, "0 bytes");
    assert_int_equal(truncate(strcat(strcpy(inside, path), "/model.safetensors"), 7), 0);
    refuse(path, ISO_BAD_FILE, "7 bytes");
    assert_int_equal(unlink(inside), 0);
    assert_int_equal(mkdir(inside, 0777), 0);
    refuse(path, ISO_BAD_FILE, "model.safetensors");
    folder_remove(path);
}

/* A length field above the limit is refused before the JSON is looked at. */
static void open_refuses_a_long_header(void **state)
{
    static const uint8_t length[9] = {0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{'};
    char path[FOLDER_PATH], file[FOLDER_PATH + 64];

    (void)state;
    folder_create(path);
    file_write(path, "model.safetensors", length, sizeof length);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    assert_int_equal(truncate(file, 100000100), 0);
    refuse(path, ISO_LIMIT, "header length 100000001");
    folder_remove(path);
}

static void open_refuses_a_long_name(void **state)
{
    char path[FOLDER_PATH], header[600], name[257];

    (void)state;
    memset(name, 'n', 256);
    name[256] = '\0';
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", name);
    folder_create(path);
    shard_write(path, "model.safetensors", header, -1, 1);
    refuse(path, ISO_BAD_TENSOR, "has 256 bytes");
    folder_remove(path);
}

/* ---- every prefix and every changed byte of a good file ---- */

static size_t good_bytes(uint8_t data[256])
{
    const size_t header = strlen(GOOD);

    memset(data, 0, 256);
    data[0] = (uint8_t)header;
    memcpy(data + 8, GOOD, header);
    return 8 + header + 24;
}

static void read_refuses_every_prefix(void **state)
{
    uint8_t good[256];
    const size_t bytes = good_bytes(good);

    (void)state;
    for (size_t i = 0; i <= bytes; i++) {
        uint8_t *copy = malloc(i == 0 ? 1 : i);      /* exact size: ASan sees any read behind */
        iso_shard shard = {.file = "prefix"};
        iso_error error = {0};
        iso_status status;

        assert_non_null(copy);
        memcpy(copy, good, i);
        status = iso_shard_read(copy, i, &shard, &error);
        assert_true((status == ISO_OK) == (i == bytes));
        iso_shard_free(&shard);
        free(copy);
    }
}

static void read_survives_every_changed_byte(void **state)
{
    uint8_t good[256];
    const size_t bytes = good_bytes(good);
    iso_alloc_stats before, after;

    (void)state;
    iso_alloc_get_stats(&before);
    for (size_t i = 0; i < bytes - 24; i++)
        for (int value = 0; value < 256; value += i < 8 ? 1 : 3) {
            uint8_t *copy = malloc(bytes);
            iso_shard shard = {.file = "changed"};

            assert_non_null(copy);
            memcpy(copy, good, bytes);
            copy[i] = (uint8_t)value;
            if (iso_shard_read(copy, bytes, &shard, NULL) == ISO_OK)
                for (size_t k = 0; k < shard.tensor_count; k++)
                    assert_true(shard.payload + shard.tensors[k].end <= bytes);
            iso_shard_free(&shard);
            free(copy);
        }
    iso_alloc_get_stats(&after);
    assert_int_equal(after.count_now, before.count_now);
}

static void open_survives_failed_allocations(void **state)
{
    static const char index[] = MAPPED(MAP_A "," MAP_B "," MAP_C);
    iso_status status = ISO_NO_MEMORY;
    char path[FOLDER_PATH];
    uint64_t n = 0;

    (void)state;
    folder_create(path);
    write_shards(path);
    file_write(path, INDEX, index, strlen(index));
    while (status == ISO_NO_MEMORY) {
        iso_alloc_stats before, after;
        iso_store *store = NULL;

        iso_alloc_get_stats(&before);
        iso_alloc_fail_at(++n);
        status = iso_store_open(path, &store, NULL);
        iso_alloc_fail_at(0);
        iso_store_close(&store);
        iso_alloc_get_stats(&after);
        assert_int_equal(after.count_now, before.count_now);
    }
    assert_int_equal(status, ISO_OK);
    assert_true(n > 5);
    folder_remove(path);
}

int main(void)
{
    enum { SHARDS = sizeof shards / sizeof shards[0], INDICES = sizeof indices / sizeof indices[0],
           FIXED = 8 };
    struct CMUnitTest tests[FIXED + SHARDS + INDICES] = {
        {"store:open_reads_an_index", open_reads_an_index, NULL, NULL, NULL},
        {"store:open_reads_one_file", open_reads_one_file, NULL, NULL, NULL},
        {"store:open_refuses_what_is_no_checkpoint", open_refuses_what_is_no_checkpoint, NULL,
         NULL, NULL},
        {"store:open_refuses_a_long_header", open_refuses_a_long_header, NULL, NULL, NULL},
        {"store:open_refuses_a_long_name", open_refuses_a_long_name, NULL, NULL, NULL},
        {"store:read_refuses_every_prefix", read_refuses_every_prefix, NULL, NULL, NULL},
        {"store:read_survives_every_changed_byte", read_survives_every_changed_byte, NULL, NULL,
         NULL},
        {"store:open_survives_failed_allocations", open_survives_failed_allocations, NULL, NULL,
         NULL},
    };

    for (size_t i = 0; i < SHARDS; i++)
        tests[FIXED + i] = (struct CMUnitTest){shards[i].name, refuse_shard, NULL, NULL,
                                               (void *)(uintptr_t)&shards[i]};
    for (size_t i = 0; i < INDICES; i++)
        tests[FIXED + SHARDS + i] = (struct CMUnitTest){indices[i].name, refuse_index, NULL, NULL,
                                                        (void *)(uintptr_t)&indices[i]};
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
