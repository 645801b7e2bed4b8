/* residency: filling, in-place use, budgets, leases, rows, allocation failures. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/backends.h"
#include "core/residency.h"
#include "core/rows32.h"

static iso_error error;
static const iso_backend *backend;
static iso_device *device;

static int open_cpu(void **state)
{
    (void)state;
    return iso_backend_open_device("cpu", NULL, &backend, &device, &error) == ISO_OK ? 0 : -1;
}

static int close_cpu(void **state)
{
    (void)state;
    backend->close(&device);
    return 0;
}

static iso_residency *create(uint64_t budget)
{
    iso_residency *residency = NULL;

    assert_ok(iso_residency_create(backend, device, budget, &residency, &error), error);
    return residency;
}

static uint32_t declare(iso_residency *residency, const char *name, iso_weight_group group,
                        iso_tensor_desc desc)
{
    const iso_weight_decl decl = {name, group, desc};
    uint32_t id = UINT32_MAX;

    assert_ok(iso_residency_declare(residency, &decl, &id, &error), error);
    return id;
}

static void residency_fills_and_leases(void **state)
{
    iso_residency *r = create(0);
    const uint32_t id = declare(r, "w", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_F32, 4));
    const float values[4] = {1, 2, 3, 4};
    iso_residency_stats stats;
    iso_lease lease = {0};
    void *host = NULL;
    iso_slice slice;

    (void)state;
    assert_fails(iso_residency_acquire(r, &id, 1, &lease, &error), ISO_BAD_TENSOR, error,
                 "w: 0 of 16 bytes");
    assert_ok(iso_residency_write(r, id, 8, values + 2, 8, &error), error);
    assert_fails(iso_residency_acquire(r, &id, 1, &lease, &error), ISO_BAD_TENSOR, error,
                 "w: 8 of 16 bytes");
    assert_fails(iso_residency_write(r, id, 12, values, 8, &error), ISO_BAD_ARGUMENT, error,
                 "[12, +8)");
    assert_fails(iso_residency_import(r, id, values, &error), ISO_BAD_ARGUMENT, error, "already");
    assert_ok(iso_residency_write(r, id, 0, values, 8, &error), error);
    assert_ok(iso_residency_acquire(r, &id, 1, &lease, &error), error);
    slice = iso_residency_slice(r, id);
    assert_int_equal(slice.offset, 0);
    assert_ok(backend->buffer_map(slice.buffer, &host, &error), error);
    assert_memory_equal(host, values, sizeof values);
    iso_residency_release(r, &lease);
    iso_residency_release(r, &lease);                        /* closed: fine */
    iso_residency_get_stats(r, &stats);
    assert_int_equal(stats.resident_bytes, 16);
    assert_int_equal(stats.mapped_bytes, 0);
    iso_residency_destroy(&r);
    assert_null(r);
}

static void residency_imports_what_is_aligned(void **state)
{
    static const _Alignas(64) unsigned char file[64] = {9};
    iso_residency *r = create(0);
    const uint32_t id = declare(r, "aligned", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_BF16, 8));
    const uint32_t odd = declare(r, "odd", ISO_GROUP_EXPERT, iso_desc1(ISO_DTYPE_BF16, 8));
    iso_residency_stats stats;
    iso_lease lease = {0};

    (void)state;
    assert_ok(iso_residency_import(r, id, file + 2, &error), error);
    assert_fails(iso_residency_import(r, odd, file + 3, &error), ISO_UNSUPPORTED, error,
                 "odd: cpu: import at an address that is no multiple of 2");
    assert_ok(iso_residency_write(r, odd, 0, file + 3, 16, &error), error);
    assert_fails(iso_residency_write(r, id, 0, file, 2, &error), ISO_BAD_ARGUMENT, error,
                 "in place");
    assert_ok(iso_residency_acquire(r, &id, 1, &lease, &error), error);
    iso_residency_release(r, &lease);
    iso_residency_get_stats(r, &stats);
    assert_int_equal(stats.mapped_bytes, 16);
    assert_int_equal(stats.resident_bytes, 16);
    iso_residency_destroy(&r);
}

static void residency_keeps_the_budget(void **state)
{
    iso_residency *r = create(100);
    const uint32_t a = declare(r, "a", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_U8, 60));
    const uint32_t b = declare(r, "b", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_U8, 41));
    const uint32_t c = declare(r, "c", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_U8, 40));
    const unsigned char byte = 1;

    (void)state;
    assert_ok(iso_residency_write(r, a, 0, &byte, 1, &error), error);
    assert_fails(iso_residency_write(r, b, 0, &byte, 1, &error), ISO_OVER_BUDGET, error,
                 "b: 41 bytes needed, 60 of 100 are in use");
    assert_ok(iso_residency_write(r, c, 0, &byte, 1, &error), error);
    iso_residency_destroy(&r);
}

static void residency_fetches_rows(void **state)
{
    static const unsigned char table[1 + 4 * 3] = {0, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41,
                                                   42};
    iso_residency *r = create(1);                            /* rows need no budget */
    const uint32_t id = declare(r, "t", ISO_GROUP_ROWS, iso_desc2(ISO_DTYPE_U8, 4, 3));
    const uint32_t trunk = declare(r, "w", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_U8, 4));
    uint32_t rows[3] = {3, 0, 3};
    unsigned char out[9] = {0};
    iso_residency_stats stats;
    iso_lease lease = {0};

    (void)state;
    assert_fails(iso_residency_rows(r, id, rows, 3, out, &error), ISO_BAD_ARGUMENT, error,
                 "not filled");
    assert_ok(iso_residency_import(r, id, table + 1, &error), error);
    assert_ok(iso_residency_rows(r, id, rows, 3, out, &error), error);
    assert_memory_equal(out, "\x28\x29\x2a\x0a\x0b\x0c\x28\x29\x2a", 9);
    rows[1] = 4;
    assert_fails(iso_residency_rows(r, id, rows, 3, out, &error), ISO_BAD_INDEX, error,
                 "t: row 4 of 4");
    assert_fails(iso_residency_rows(r, trunk, rows, 1, out, &error), ISO_BAD_ARGUMENT, error,
                 "no table");
    assert_fails(iso_residency_acquire(r, &id, 1, &lease, &error), ISO_BAD_ARGUMENT, error,
                 "fetched, not leased");
    iso_residency_get_stats(r, &stats);
    assert_int_equal(stats.rows_read, 3);
    assert_int_equal(stats.row_bytes_read, 9);
    iso_residency_destroy(&r);
}

/* Packed bytes are rows32's, whoever held the plain ones, and unpacking gives those back. */
static void residency_arranges_both_ways(void **state)
{
    enum { ROWS = 95, COLUMNS = 130, BYTES = ROWS * COLUMNS };
    static _Alignas(64) unsigned char plain[BYTES], packed[96 * COLUMNS];
    const iso_tensor_desc desc = iso_desc2(ISO_DTYPE_E4M3, ROWS, COLUMNS);
    iso_residency *r = create(0);
    const uint32_t ids[2] = {declare(r, "mapped", ISO_GROUP_TRUNK, desc),
                             declare(r, "written", ISO_GROUP_TRUNK, desc)};
    iso_residency_stats stats;
    iso_lease lease = {0};
    void *host = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (unsigned char)(i * 37 + i / 251);
    iso_rows32_pack(&desc, 0, iso_rows32_tiles(&desc), plain, packed);
    assert_ok(iso_residency_import(r, ids[0], plain, &error), error);
    assert_fails(iso_residency_arrange(r, ids[1], ISO_LAYOUT_ROWS32, 1, &error), ISO_BAD_ARGUMENT,
                 error, "written: not filled");
    assert_ok(iso_residency_write(r, ids[1], 0, plain, BYTES, &error), error);
    for (int round = 0; round < 2; round++) {
        const iso_layout layout = round == 0 ? ISO_LAYOUT_ROWS32 : ISO_LAYOUT_PLAIN;
        const uint64_t bytes = round == 0 ? sizeof packed : sizeof plain;

        for (uint32_t i = 0; i < 2; i++) {
            assert_ok(iso_residency_arrange(r, ids[i], layout, i + 1, &error), error);
            assert_ok(iso_residency_arrange(r, ids[i], layout, 1, &error), error);
        }
        iso_residency_get_stats(r, &stats);
        assert_int_equal(stats.mapped_bytes, 0);
        assert_int_equal(stats.resident_bytes, 2 * bytes);
        assert_ok(iso_residency_acquire(r, ids, 2, &lease, &error), error);
        for (uint32_t i = 0; i < 2; i++) {
            assert_ok(backend->buffer_map(iso_residency_slice(r, ids[i]).buffer, &host, &error),
                      error);
            assert_memory_equal(host, round == 0 ? packed : plain, bytes);
        }
        iso_residency_release(r, &lease);
    }
    iso_residency_destroy(&r);
}

static void residency_keeps_what_it_cannot_arrange(void **state)
{
    static const unsigned char plain[64] = {1, 2, 3};
    iso_residency *r = create(100);
    const uint32_t flat = declare(r, "flat", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_U8, 32));
    const uint32_t table = declare(r, "table", ISO_GROUP_ROWS, iso_desc2(ISO_DTYPE_U8, 4, 3));
    const uint32_t w = declare(r, "w", ISO_GROUP_TRUNK, iso_desc2(ISO_DTYPE_U8, 4, 16));
    iso_residency_stats stats;
    iso_lease lease = {0};
    void *host = NULL;

    (void)state;
    assert_ok(iso_residency_import(r, table, plain, &error), error);
    assert_ok(iso_residency_write(r, flat, 0, plain, 32, &error), error);
    assert_ok(iso_residency_write(r, w, 0, plain, 64, &error), error);
    assert_fails(iso_residency_arrange(r, flat, ISO_LAYOUT_ROWS32, 1, &error), ISO_BAD_LAYOUT,
                 error, "flat: rank 1");
    assert_fails(iso_residency_arrange(r, table, ISO_LAYOUT_ROWS32, 1, &error), ISO_BAD_ARGUMENT,
                 error, "table: ");
    assert_fails(iso_residency_arrange(r, w, ISO_LAYOUT_ROWS32, 1, &error), ISO_OVER_BUDGET,
                 error, "w: 512 bytes needed");
    iso_residency_get_stats(r, &stats);
    assert_int_equal(stats.resident_bytes, 96);
    assert_ok(iso_residency_acquire(r, &w, 1, &lease, &error), error);
    assert_ok(backend->buffer_map(iso_residency_slice(r, w).buffer, &host, &error), error);
    assert_memory_equal(host, plain, sizeof plain);
    iso_residency_release(r, &lease);
    iso_residency_destroy(&r);
}

static void residency_refuses_bad_declarations(void **state)
{
    iso_residency *r = create(0);
    iso_weight_decl decl = {"x", ISO_GROUP_TRUNK, iso_desc2(ISO_DTYPE_F32, 0, 4)};
    const unsigned char byte = 1;
    uint32_t id = 77;

    (void)state;
    assert_fails(iso_residency_declare(r, &decl, &id, &error), ISO_BAD_SHAPE, error, "without");
    decl.desc = iso_desc1(ISO_DTYPE_F32, 4);
    decl.group = ISO_GROUP_ROWS;
    assert_fails(iso_residency_declare(r, &decl, &id, &error), ISO_BAD_SHAPE, error, "rank 1");
    assert_int_equal(id, 77);
    assert_fails(iso_residency_write(r, 0, 0, &byte, 1, &error), ISO_BAD_ARGUMENT, error,
                 "weight 0 of 0");
    iso_residency_destroy(&r);
}

static iso_status fill_one(iso_residency **residency)
{
    const iso_weight_decl decl = {"w", ISO_GROUP_TRUNK, iso_desc1(ISO_DTYPE_F32, 4)};
    static const _Alignas(4) unsigned char file[16];
    const float value = 1.0f;
    uint32_t id = 0;

    ISO_TRY(iso_residency_create(backend, device, 0, residency, &error));
    ISO_TRY(iso_residency_declare(*residency, &decl, &id, &error));
    ISO_TRY(iso_residency_write(*residency, id, 0, &value, 4, &error));
    ISO_TRY(iso_residency_declare(*residency, &decl, &id, &error));
    return iso_residency_import(*residency, id, file, &error);
}

static void residency_survives_no_memory(void **state)
{
    iso_alloc_stats before, after;
    iso_residency *residency = NULL;
    iso_status status;
    uint64_t n = 0;

    (void)state;
    iso_alloc_get_stats(&before);
    do {
        iso_alloc_fail_at(++n);
        status = fill_one(&residency);
        iso_alloc_fail_at(0);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
        iso_residency_destroy(&residency);
        iso_alloc_get_stats(&after);
        assert_int_equal(after.bytes_now, before.bytes_now);
    } while (status != ISO_OK);
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residency_fills_and_leases),
        cmocka_unit_test(residency_imports_what_is_aligned),
        cmocka_unit_test(residency_keeps_the_budget),
        cmocka_unit_test(residency_fetches_rows),
        cmocka_unit_test(residency_arranges_both_ways),
        cmocka_unit_test(residency_keeps_what_it_cannot_arrange),
        cmocka_unit_test(residency_refuses_bad_declarations),
        cmocka_unit_test(residency_survives_no_memory),
    };

    return cmocka_run_group_tests_name("residency", tests, open_cpu, close_cpu);
}
