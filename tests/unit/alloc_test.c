/* alloc: counting, failing, overflow, growing arrays and texts when memory ends. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/array.h"
#include "core/text.h"

static void alloc_counts(void **state)
{
    iso_alloc_stats before, with, after;
    void *memory;

    (void)state;
    iso_alloc_get_stats(&before);
    memory = iso_alloc(1000, 4096, "test");
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 4096, 0);
    iso_alloc_get_stats(&with);
    assert_int_equal(with.bytes_now, before.bytes_now + 1000);
    assert_int_equal(with.count_now, before.count_now + 1);
    iso_release(memory, 1000);
    iso_release(NULL, 5);
    iso_alloc_get_stats(&after);
    assert_int_equal(after.bytes_now, before.bytes_now);
    assert_true(after.bytes_peak >= before.bytes_now + 1000);
}

static void alloc_refuses_overflow(void **state)
{
    (void)state;
    assert_null(iso_alloc(0, 1, "test"));
    assert_null(iso_alloc(SIZE_MAX, 64, "test"));
    assert_null(iso_alloc_zero(SIZE_MAX / 2, 3, "test"));
    assert_null(iso_alloc_public(0));
}

static void alloc_fails_at(void **state)
{
    void *memory;

    (void)state;
    iso_alloc_fail_at(2);
    memory = iso_alloc_zero(4, 4, "test");
    assert_non_null(memory);
    assert_null(iso_alloc_public(4));
    iso_release(memory, 16);
    memory = iso_alloc(4, 4, "test");                  /* once only */
    assert_non_null(memory);
    iso_release(memory, 4);
}

static void array_grows_and_survives(void **state)
{
    uint32_t *items = NULL, capacity = 0;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(iso_array_reserve(&items, &capacity, i, 1, sizeof *items, "test"));
        items[i] = i;
    }
    iso_alloc_fail_at(1);
    assert_false(iso_array_reserve(&items, &capacity, 1000, capacity, sizeof *items, "test"));
    iso_alloc_fail_at(0);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    assert_false(iso_array_reserve(&items, &capacity, 1000, UINT32_MAX, sizeof *items, "test"));
    iso_array_free(&items, &capacity, sizeof *items);
    assert_null(items);
    assert_int_equal(capacity, 0);
}

static void text_reports_no_memory(void **state)
{
    iso_alloc_stats before, after;
    iso_error error;
    char *out = NULL;

    (void)state;
    iso_alloc_get_stats(&before);
    for (uint64_t n = 1;; n++) {
        iso_text text = {0};
        iso_status status;

        iso_alloc_fail_at(n);
        for (int i = 0; i < 100; i++)
            iso_text_printf(&text, "line %d\n", i);
        status = iso_text_take(&text, &out, &error);
        iso_alloc_fail_at(0);
        if (status == ISO_OK)
            break;
        assert_int_equal(status, ISO_NO_MEMORY);
        assert_null(out);
    }
    assert_int_equal(strlen(out), 10 * 7 + 90 * 8);
    iso_free(out);
    iso_alloc_get_stats(&after);
    assert_int_equal(after.bytes_now, before.bytes_now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_counts),
        cmocka_unit_test(alloc_refuses_overflow),
        cmocka_unit_test(alloc_fails_at),
        cmocka_unit_test(array_grows_and_survives),
        cmocka_unit_test(text_reports_no_memory),
    };

    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
