/* container: reading page 0 and the directory. A hand-made container of four tensors and two files
 * is accepted; each field in turn is made wrong (and the hashes right again, so that the field's
 * own check is reached), and the one line that refuses it is compared. */
#include "tests/unit/folders.h"

#include "convert/container.h"
#include "convert/store_container.h"
#include "core/alloc.h"
#include "core/hash.h"

enum {
    TENSORS = 4, FILES = 2, DIRECTORY = 24576,
    RECORDS = TENSORS * ISO_CONTAINER_TENSOR_BYTES + FILES * ISO_CONTAINER_FILE_BYTES,
    NAMES = 36, BYTES = DIRECTORY + RECORDS + NAMES
};
#define RECORD(i) (DIRECTORY + (i) * ISO_CONTAINER_TENSOR_BYTES)
#define FILE_RECORD(i) (RECORD(TENSORS) + (i) * ISO_CONTAINER_FILE_BYTES)

static const char names[NAMES] = "a\0e.0\0e.1\0s\0config.json\0notes.txt\0";

typedef struct made_tensor {
    uint32_t name, name_bytes;
    const char *dtype, *layout;
    uint32_t rank, flags;
    int64_t extent[4];
    uint64_t offset, bytes;
} made_tensor;

/* f32 [2,2]; two packed e2m1 [3,8] one behind the other: a tile of 32 rows of 4 bytes each; a bf16
 * scalar. */
static const made_tensor made[TENSORS] = {
    {0, 1, "f32", "plain", 2, 0, {2, 2, 1, 1}, 4096, 16},
    {2, 3, "e2m1", "rows32", 2, 0, {3, 8, 1, 1}, 8192, 128},
    {6, 3, "e2m1", "rows32", 2, 1, {3, 8, 1, 1}, 8320, 128},
    {10, 1, "bf16", "plain", 0, 0, {1, 1, 1, 1}, 12288, 2},
};

static void seal(uint8_t *file, uint64_t bytes)
{
    uint64_t hash[2];

    iso_hash(file + DIRECTORY, (size_t)(bytes - DIRECTORY), hash);
    iso_put_u64(file + ISO_PAGE_DIRECTORY_HASH, hash[0]);
    iso_put_u64(file + ISO_PAGE_DIRECTORY_HASH + 8, hash[1]);
    iso_hash(file, ISO_PAGE_HASH, hash);
    iso_put_u64(file + ISO_PAGE_HASH, hash[0]);
    iso_put_u64(file + ISO_PAGE_HASH + 8, hash[1]);
}

static void put_hash(uint8_t *file, uint64_t record, uint64_t offset, uint64_t bytes)
{
    uint64_t hash[2];

    iso_hash(file + offset, (size_t)bytes, hash);
    iso_put_u64(file + record, hash[0]);
    iso_put_u64(file + record + 8, hash[1]);
}

static void make_tensor(uint8_t *file, uint32_t index)
{
    const made_tensor *t = &made[index];
    uint8_t *r = file + RECORD(index);

    for (uint64_t i = 0; i < t->bytes; i++)
        file[t->offset + i] = (uint8_t)(1 + i + index);
    iso_put_u32(r + ISO_RECORD_NAME, t->name);
    iso_put_u32(r + ISO_RECORD_NAME_BYTES, t->name_bytes);
    memcpy(r + ISO_RECORD_DTYPE, t->dtype, strlen(t->dtype));
    memcpy(r + ISO_RECORD_LAYOUT, t->layout, strlen(t->layout));
    iso_put_u32(r + ISO_RECORD_RANK, t->rank);
    iso_put_u32(r + ISO_RECORD_FLAGS, t->flags);
    for (uint32_t k = 0; k < 4; k++)
        iso_put_u64(r + ISO_RECORD_EXTENT + 8 * k, (uint64_t)t->extent[k]);
    iso_put_u64(r + ISO_RECORD_OFFSET, t->offset);
    iso_put_u64(r + ISO_RECORD_BYTES, t->bytes);
    iso_put_u64(r + ISO_RECORD_CLEANED, 5 * index);
    put_hash(file, RECORD(index) + ISO_RECORD_HASH, t->offset, t->bytes);
}

static void make_file(uint8_t *file, uint32_t index)
{
    static const uint64_t name[FILES] = {12, 24}, name_bytes[FILES] = {11, 9};
    static const char *const text[FILES] = {"{}\n", "hi"};
    uint8_t *r = file + FILE_RECORD(index);
    const uint64_t offset = 16384 + 4096 * (uint64_t)index;

    memcpy(file + offset, text[index], strlen(text[index]));
    iso_put_u32(r + ISO_FILE_NAME, (uint32_t)name[index]);
    iso_put_u32(r + ISO_FILE_NAME_BYTES, (uint32_t)name_bytes[index]);
    iso_put_u64(r + ISO_FILE_OFFSET, offset);
    iso_put_u64(r + ISO_FILE_BYTES, strlen(text[index]));
    put_hash(file, FILE_RECORD(index) + ISO_FILE_HASH, offset, strlen(text[index]));
}

/* The good container, from malloc: reading behind its end is seen by a sanitizer. */
static uint8_t *make_container(void)
{
    uint8_t *file = calloc(1, BYTES);

    assert_non_null(file);
    memcpy(file, ISO_CONTAINER_MAGIC, 8);
    iso_put_u32(file + ISO_PAGE_MAJOR, 1);
    iso_put_u32(file + ISO_PAGE_ORDER, 0x01020304);
    iso_put_u32(file + ISO_PAGE_ALIGN, 4096);
    iso_put_u64(file + ISO_PAGE_FILE_BYTES, BYTES);
    iso_put_u64(file + ISO_PAGE_DIRECTORY, DIRECTORY);
    iso_put_u64(file + ISO_PAGE_DIRECTORY_BYTES, RECORDS + NAMES);
    iso_put_u32(file + ISO_PAGE_TENSORS, TENSORS);
    iso_put_u32(file + ISO_PAGE_FILES, FILES);
    memcpy(file + ISO_PAGE_CONTRACT, ISO_NUMERICS_ID, strlen(ISO_NUMERICS_ID));
    memcpy(file + DIRECTORY + RECORDS, names, NAMES);
    for (uint32_t i = 0; i < TENSORS; i++)
        make_tensor(file, i);
    for (uint32_t i = 0; i < FILES; i++)
        make_file(file, i);
    seal(file, BYTES);
    return file;
}

/* ---- wrong fields ---- */

typedef struct wrong {
    uint32_t at, width;              /* bytes to replace: 1, 4 or 8; 0: none */
    uint64_t value;
    iso_status status;
    const char *part;                /* of the message */
    const char *name;
    bool is_unsealed;                /* the hashes stay those of the good file */
} wrong;

#define T(field) ISO_RECORD_##field
static const wrong wrongs[] = {
    {0, 1, 'I', ISO_BAD_FILE, "x: neither a container", "container:magic", false},
    {7, 1, 0, ISO_BAD_FILE, "x: neither a container", "container:magic_end", false},
    {ISO_PAGE_MAJOR, 4, 2, ISO_UNSUPPORTED, "x: container version 2.0, expected 1.x",
     "container:version_newer", false},
    {ISO_PAGE_MAJOR, 4, 0, ISO_UNSUPPORTED, "version 0.0", "container:version_zero", false},
    {ISO_PAGE_MAJOR, 4, 2, ISO_UNSUPPORTED, "version 2.0", "container:version_before_hash", true},
    {ISO_PAGE_ORDER, 4, 0x04030201, ISO_BAD_FILE, "byte order mark 04030201, expected 01020304",
     "container:byte_order", false},
    {ISO_PAGE_ALIGN, 4, 64, ISO_BAD_FILE, "alignment 64, expected 4096", "container:alignment",
     false},
    {ISO_PAGE_FILE_BYTES, 8, BYTES + 1, ISO_BAD_FILE, "bytes, expected", "container:file_longer",
     false},
    {ISO_PAGE_FILE_BYTES, 8, BYTES - 1, ISO_BAD_FILE, "bytes, expected", "container:file_shorter",
     false},
    {ISO_PAGE_DIRECTORY, 8, 0, ISO_BAD_FILE, "directory at 0", "container:directory_at_zero",
     false},
    {ISO_PAGE_DIRECTORY, 8, UINT64_MAX, ISO_BAD_FILE, "directory at 18446744073709551615",
     "container:directory_wraps", false},
    {ISO_PAGE_DIRECTORY_BYTES, 8, 1, ISO_BAD_FILE, "1 bytes, expected to end with the file",
     "container:directory_short", false},
    {ISO_PAGE_DIRECTORY_BYTES, 8, UINT64_MAX, ISO_BAD_FILE, "expected to end with the file",
     "container:directory_huge", false},
    {ISO_PAGE_TENSORS, 4, 0, ISO_LIMIT, "0 tensors", "container:no_tensors", false},
    {ISO_PAGE_TENSORS, 4, 6, ISO_BAD_FILE, "its records need 768", "container:tensors_too_many",
     false},
    {ISO_PAGE_TENSORS, 4, UINT32_MAX, ISO_LIMIT, "4294967295 tensors", "container:tensors_huge",
     false},
    {ISO_PAGE_FILES, 4, UINT32_MAX, ISO_LIMIT, "4294967295 files", "container:files_huge", false},
    {ISO_PAGE_CONTRACT + 16, 1, '2', ISO_UNSUPPORTED, "contract isobit-numerics/2",
     "container:other_contract", false},
    {ISO_PAGE_CONTRACT + 20, 1, 'x', ISO_UNSUPPORTED, "values prepared for contract",
     "container:contract_tail", false},
    {ISO_PAGE_RESERVED, 1, 1, ISO_BAD_FILE, "reserved bytes of page 0", "container:page_reserved",
     false},
    {ISO_PAGE_HASH - 1, 1, 1, ISO_BAD_FILE, "reserved bytes of page 0",
     "container:page_reserved_end", false},
    {ISO_PAGE_CLEANED, 1, 1, ISO_BAD_FILE, "page 0 does not have its hash", "container:page_hash",
     true},
    {ISO_PAGE_HASH + 15, 1, 0x55, ISO_BAD_FILE, "page 0 does not have its hash",
     "container:page_hash_itself", true},
    {RECORD(2) + T(CLEANED), 1, 1, ISO_BAD_FILE, "the directory does not have its hash",
     "container:directory_hash", true},
    {BYTES - 1, 1, 'x', ISO_BAD_FILE, "the directory does not have its hash",
     "container:directory_hash_end", true},
    {RECORD(1) + T(NAME_BYTES), 4, 0, ISO_BAD_TENSOR, "tensor 1: name of 0 bytes",
     "container:name_empty", false},
    {RECORD(1) + T(NAME_BYTES), 4, 256, ISO_BAD_TENSOR, "tensor 1: name of 256 bytes",
     "container:name_long", false},
    {RECORD(1) + T(NAME_BYTES), 4, 2, ISO_BAD_TENSOR, "tensor 1: name without its end",
     "container:name_cut", false},
    {RECORD(1) + T(NAME_BYTES), 4, 4, ISO_BAD_TENSOR, "tensor 1: name without its end",
     "container:name_with_nul", false},
    {RECORD(1) + T(NAME), 4, NAMES - 3, ISO_BAD_TENSOR, "tensor 1: name at 33 of 36",
     "container:name_behind", false},
    {RECORD(1) + T(NAME), 4, UINT32_MAX, ISO_BAD_TENSOR, "tensor 1: name at 4294967295",
     "container:name_far_behind", false},
    {RECORD(0) + T(DTYPE), 4, 0x343666, ISO_BAD_TENSOR, "x: a: unknown dtype \"f64\"",
     "container:dtype_unknown", false},
    {RECORD(0) + T(DTYPE), 8, 0, ISO_BAD_TENSOR, "a: unknown dtype \"\"", "container:dtype_empty",
     false},
    {RECORD(1) + T(LAYOUT) + 4, 1, '6', ISO_BAD_TENSOR, "e.0: unknown layout \"rows62\"",
     "container:layout_unknown", false},
    {RECORD(0) + T(RANK), 4, 5, ISO_BAD_TENSOR, "a: rank 5", "container:rank", false},
    {RECORD(0) + T(RANK), 4, 1, ISO_BAD_TENSOR, "a: extent 1 is 2", "container:rank_too_small",
     false},
    {RECORD(0) + T(RANK), 4, 0, ISO_BAD_TENSOR, "a: rank 0 with layout plain and extent 2",
     "container:rank_zero", false},
    {RECORD(1) + T(RANK), 4, 1, ISO_BAD_TENSOR, "e.0: rank 1 is rows32", "container:rank_packed",
     false},
    {RECORD(0) + T(EXTENT), 8, UINT64_MAX, ISO_BAD_TENSOR, "a: extent 0 is -1",
     "container:extent_negative", false},
    {RECORD(1) + T(EXTENT) + 8, 8, INT64_MAX - 1, ISO_BAD_TENSOR, "e.0: element count overflows",
     "container:extent_overflows", false},
    {RECORD(0) + T(EXTENT), 8, INT64_MAX / 4, ISO_BAD_TENSOR, "a: byte count overflows",
     "container:bytes_overflow", false},
    {RECORD(0) + T(EXTENT), 8, 3, ISO_BAD_TENSOR, "a: 16 bytes, expected 24", "container:extent",
     false},
    {RECORD(1) + T(EXTENT) + 8, 8, 7, ISO_BAD_TENSOR, "e.0: last extent 7 is no multiple of 2",
     "container:extent_odd", false},
    {RECORD(0) + T(BYTES), 8, 15, ISO_BAD_TENSOR, "a: 15 bytes, expected 16", "container:bytes",
     false},
    {RECORD(1) + T(FLAGS), 4, 2, ISO_BAD_TENSOR, "e.0: unknown flags 00000002",
     "container:flags_unknown", false},
    {RECORD(0) + T(FLAGS), 4, 1, ISO_BAD_TENSOR, "a: continues page 0",
     "container:first_continues", false},
    {RECORD(1) + T(FLAGS), 4, 1, ISO_BAD_TENSOR, "e.0: continues a, which is no tensor of its",
     "container:other_continues", false},
    {RECORD(2) + T(FLAGS), 4, 0, ISO_BAD_TENSOR, "e.1: bytes at 8320, expected a multiple of 4096",
     "container:unaligned", false},
    {RECORD(0) + T(OFFSET), 8, 0, ISO_BAD_TENSOR, "a: bytes at 0 overlap page 0",
     "container:over_page_0", false},
    {RECORD(1) + T(OFFSET), 8, 4096, ISO_BAD_TENSOR, "e.0: bytes at 4096 overlap a, which ends at "
     "4112", "container:overlap", false},
    {RECORD(2) + T(OFFSET), 8, 8319, ISO_BAD_TENSOR, "e.1: bytes at 8319 overlap e.0",
     "container:overlap_by_one", false},
    {RECORD(2) + T(OFFSET), 8, 8321, ISO_BAD_TENSOR, "e.1: bytes at 8321 leave a hole behind e.0, "
     "expected 8320", "container:hole", false},
    {RECORD(3) + T(OFFSET), 8, 16384, ISO_BAD_TENSOR, "s: bytes at 16384 leave a hole behind e.1",
     "container:hole_of_a_page", false},
    {RECORD(3) + T(OFFSET), 8, DIRECTORY, ISO_BAD_TENSOR, "s: 2 bytes at 24576, but the payload "
     "ends at 24576", "container:behind_the_payload", false},
    {RECORD(3) + T(OFFSET), 8, UINT64_MAX - 1, ISO_BAD_TENSOR, "s: 2 bytes at 184467440737095516",
     "container:offset_wraps", false},
    {RECORD(0) + T(RESERVED), 8, 1, ISO_BAD_TENSOR, "a: reserved bytes", "container:reserved",
     false},
    {FILE_RECORD(0) + ISO_FILE_NAME_BYTES, 4, 0, ISO_BAD_TENSOR, "file 0: name of 0 bytes",
     "container:file_name_empty", false},
    {FILE_RECORD(1) + ISO_FILE_NAME, 4, 100, ISO_BAD_TENSOR, "file 1: name at 100",
     "container:file_name_behind", false},
    {FILE_RECORD(0) + ISO_FILE_OFFSET, 8, 12288, ISO_BAD_TENSOR, "config.json: bytes at 12288 "
     "overlap s", "container:file_overlap", false},
    {FILE_RECORD(0) + ISO_FILE_OFFSET, 8, 16385, ISO_BAD_TENSOR, "config.json: bytes at 16385, "
     "expected a multiple", "container:file_unaligned", false},
    {FILE_RECORD(0) + ISO_FILE_BYTES, 8, UINT64_MAX, ISO_BAD_TENSOR, "config.json: 184467440737",
     "container:file_huge", false},
    {FILE_RECORD(1) + ISO_FILE_BYTES, 8, 4097, ISO_BAD_TENSOR, "notes.txt: 4097 bytes at 20480, "
     "but the payload ends", "container:file_too_long", false},
    {FILE_RECORD(0) + ISO_FILE_BYTES, 8, 4097, ISO_BAD_TENSOR, "notes.txt: bytes at 20480 overlap "
     "config.json", "container:file_over_file", false},
    {FILE_RECORD(0) + ISO_FILE_RESERVED, 8, 1, ISO_BAD_TENSOR, "config.json: reserved bytes",
     "container:file_reserved", false},
};

static void put(uint8_t *at, uint32_t width, uint64_t value)
{
    for (uint32_t i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void refuse(const uint8_t *file, uint64_t bytes, iso_status status, const char *part)
{
    uint8_t *exact = malloc(bytes == 0 ? 1 : bytes);
    iso_alloc_stats before, after;
    iso_container container = {0};
    iso_error error = {0};

    assert_non_null(exact);
    memcpy(exact, file, bytes);
    iso_alloc_get_stats(&before);
    assert_fails(iso_container_read(exact, bytes, "x", &container, &error), status, error, part);
    assert_null(container.tensors);
    assert_null(strchr(error.text, '\n'));
    iso_alloc_get_stats(&after);
    assert_int_equal(after.bytes_now, before.bytes_now);
    free(exact);
}

static void refuse_wrong(void **state)
{
    const wrong *w = *state;
    uint8_t *file = make_container();

    put(file + w->at, w->width, w->value);
    if (!w->is_unsealed)
        seal(file, BYTES);
    refuse(file, BYTES, w->status, w->part);
    free(file);
}

static void refuse_cut(void **state)
{
    uint8_t *file = make_container();

    (void)state;
    for (uint64_t bytes = 0; bytes < BYTES; bytes += bytes < 4095 ? 315 : 331)
        refuse(file, bytes, ISO_BAD_FILE, bytes < 4096 ? "neither a container" : "bytes, expected");
    refuse(file, BYTES - 1, ISO_BAD_FILE, "bytes, expected");
    free(file);
}

/* The last tensor moved into the page before: a page of nothing lies before the directory. */
static void refuse_hole_before_directory(void **state)
{
    uint8_t *file = make_container();

    (void)state;
    put(file + RECORD(3) + ISO_RECORD_OFFSET, 8, 8448);
    memcpy(file + RECORD(3) + ISO_RECORD_DTYPE, file + RECORD(2) + ISO_RECORD_DTYPE, 24);
    memcpy(file + RECORD(3) + ISO_RECORD_EXTENT, file + RECORD(2) + ISO_RECORD_EXTENT, 32);
    put(file + RECORD(3) + ISO_RECORD_FLAGS, 4, 1);
    put(file + RECORD(3) + ISO_RECORD_BYTES, 8, 128);
    put(file + FILE_RECORD(0) + ISO_FILE_OFFSET, 8, 12288);
    put(file + FILE_RECORD(1) + ISO_FILE_OFFSET, 8, 16384);
    seal(file, BYTES);
    refuse(file, BYTES, ISO_BAD_FILE, "directory at 24576, expected at 20480, behind notes.txt");
    free(file);
}

/* ---- the good file ---- */

static void accept(void **state)
{
    uint8_t *file = make_container();
    iso_container c;
    iso_error error = {0};

    (void)state;
    assert_ok(iso_container_read(file, BYTES, "x", &c, &error), error);
    assert_int_equal(c.tensor_count, 4);
    assert_string_equal(c.tensors[2].name, "e.1");
    assert_int_equal(c.tensors[2].desc.dtype, ISO_DTYPE_E2M1);
    assert_int_equal(c.tensors[2].desc.layout, ISO_LAYOUT_ROWS32);
    assert_int_equal(c.tensors[2].offset, 8320);
    assert_int_equal(c.tensors[2].cleaned, 10);
    assert_string_equal(c.files[1].name, "notes.txt");
    iso_container_free(&c);
    free(file);
}

/* A minor version only adds what older readers may ignore. */
static void accept_newer_minor(void **state)
{
    uint8_t *file = make_container();
    iso_container c;
    iso_error error = {0};

    (void)state;
    put(file + ISO_PAGE_MINOR, 4, 7);
    put(file + ISO_PAGE_RESERVED, 8, UINT64_MAX);
    seal(file, BYTES);
    assert_ok(iso_container_read(file, BYTES, "x", &c, &error), error);
    iso_container_free(&c);
    free(file);
}

/* ---- the store ---- */

static void store_lends(void **state)
{
    char folder[FOLDER_PATH], path[FOLDER_PATH + 16], *text = NULL;
    uint8_t *file = make_container();
    iso_store *store = NULL;
    iso_store_tensor t;
    iso_error error = {0};
    size_t bytes = 0;

    (void)state;
    folder_create(folder);
    file_write(folder, "m.isobit", file, BYTES);
    snprintf(path, sizeof path, "%s/m.isobit", folder);
    assert_ok(iso_store_open(path, &store, &error), error);
    assert_int_equal(iso_store_count(store), 4);
    assert_true(iso_store_find(store, "e.1", &t));
    assert_int_equal(t.dtype, ISO_DTYPE_I8);     /* as the checkpoint has it */
    assert_int_equal(t.extent[1], 4);
    assert_int_equal(t.layout, ISO_LAYOUT_ROWS32);
    assert_int_equal(t.bytes, 128);
    assert_true(t.is_clean);
    assert_memory_equal(t.data, file + 8320, 128);
    assert_int_equal((uintptr_t)t.data % 64, 0);
    assert_false(iso_store_find(store, "e.2", &t));
    iso_store_at(store, 3, &t);
    assert_string_equal(t.name, "s");
    assert_ok(iso_store_text(store, "config.json", 100, &text, &bytes, &error), error);
    assert_string_equal(text, "{}\n");
    assert_int_equal(bytes, 3);
    iso_free(text);
    assert_fails(iso_store_text(store, "config.json", 2, &text, &bytes, &error), ISO_LIMIT, error,
                 "config.json: 3 bytes, limit 2");
    assert_fails(iso_store_text(store, "tokenizer.json", 9, &text, &bytes, &error), ISO_NOT_FOUND,
                 error, "has no file tokenizer.json");
    iso_store_close(&store);
    folder_remove(folder);
    free(file);
}

static void refuse_open(const uint8_t *file, const char *name, iso_status status, const char *part)
{
    char folder[FOLDER_PATH], path[2 * FOLDER_PATH];
    iso_alloc_stats before, after;
    iso_store *store = NULL;
    iso_error error = {0};

    folder_create(folder);
    file_write(folder, name, file, BYTES);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    iso_alloc_get_stats(&before);
    assert_fails(iso_store_open(path, &store, &error), status, error, part);
    assert_null(store);
    iso_alloc_get_stats(&after);
    assert_int_equal(after.bytes_now, before.bytes_now);
    folder_remove(folder);
}

static void store_refuses(void **state)
{
    uint8_t *file = make_container();

    (void)state;
    refuse_open(file, "m" ISO_CONTAINER_SUFFIX, ISO_BAD_FILE, "a conversion that has not ended");
    put(file + RECORD(2) + ISO_RECORD_NAME, 4, 2);
    seal(file, BYTES);
    refuse_open(file, "m.isobit", ISO_BAD_TENSOR, "tensor e.0 is there twice");
    memset(file, 0, ISO_CONTAINER_PAGE);
    refuse_open(file, "m.isobit", ISO_BAD_FILE, "neither a container");
    free(file);
}

static void file_twice(void **state)
{
    uint8_t *file = make_container();

    (void)state;
    put(file + FILE_RECORD(1) + ISO_FILE_NAME, 4, 12);
    put(file + FILE_RECORD(1) + ISO_FILE_NAME_BYTES, 4, 11);
    seal(file, BYTES);
    refuse(file, BYTES, ISO_BAD_TENSOR, "file config.json is there twice");
    free(file);
}

static void text_changed(void **state)
{
    char folder[FOLDER_PATH], path[FOLDER_PATH + 16], *text = NULL;
    uint8_t *file = make_container();
    iso_store *store = NULL;
    iso_error error = {0};
    size_t bytes = 0;

    (void)state;
    file[16384] = '[';
    folder_create(folder);
    file_write(folder, "m", file, BYTES);
    snprintf(path, sizeof path, "%s/m", folder);
    assert_ok(iso_store_open(path, &store, &error), error);
    assert_fails(iso_store_text(store, "config.json", 9, &text, &bytes, &error), ISO_BAD_FILE,
                 error, "config.json does not have its hash");
    iso_store_close(&store);
    folder_remove(folder);
    free(file);
}

int main(void)
{
    static const struct CMUnitTest whole[] = {
        cmocka_unit_test(accept),
        cmocka_unit_test(accept_newer_minor),
        cmocka_unit_test(refuse_cut),
        cmocka_unit_test(refuse_hole_before_directory),
        cmocka_unit_test(store_lends),
        cmocka_unit_test(store_refuses),
        cmocka_unit_test(file_twice),
        cmocka_unit_test(text_changed),
    };
    enum { WRONGS = sizeof wrongs / sizeof wrongs[0] };
    static struct CMUnitTest tests[WRONGS];

    for (size_t i = 0; i < WRONGS; i++)
        tests[i] = (struct CMUnitTest){.name = wrongs[i].name, .test_func = refuse_wrong,
                                       .initial_state = (void *)(uintptr_t)&wrongs[i]};
    return cmocka_run_group_tests_name("container", whole, NULL, NULL)
         + cmocka_run_group_tests_name("container fields", tests, NULL, NULL);
}
