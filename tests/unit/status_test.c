/* status: names, sentences, and what iso_fail makes of foreign text. */
#include "tests/unit/unit.h"

static void status_names_every_code(void **state)
{
    (void)state;
    assert_string_equal(iso_status_name(ISO_OK), "OK");
    assert_string_equal(iso_status_name(ISO_BAD_SHAPE), "BAD_SHAPE");
    assert_string_equal(iso_status_sentence(ISO_RANGE_ERROR), "value outside the numeric domain");
    assert_string_equal(iso_status_name((iso_status)-999), "UNKNOWN");
    assert_string_equal(iso_status_sentence((iso_status)7), "unknown status");
}

static void fail_writes_one_line(void **state)
{
    iso_error error = {.driver_code = 5};

    (void)state;
    assert_int_equal(iso_fail(&error, ISO_IO, "%s: line\n\033[1m%d", "name", 7), ISO_IO);
    assert_int_equal(error.status, ISO_IO);
    assert_int_equal(error.driver_code, 0);
    assert_string_equal(error.text, "name: line??[1m7");
    assert_int_equal(iso_fail(NULL, ISO_IO, "nobody listens"), ISO_IO);
}

static void fail_cuts_at_a_character(void **state)
{
    char long_text[600];
    iso_error error;

    (void)state;
    memset(long_text, 'a', sizeof long_text);
    memcpy(long_text + 510, "\xc3\xa9", 3);           /* its second byte would be number 512 */
    assert_int_equal(iso_fail(&error, ISO_IO, "%s", long_text), ISO_IO);
    assert_int_equal(strlen(error.text), 510);
}

static void fail_in_prefixes(void **state)
{
    iso_error error;

    (void)state;
    (void)iso_fail(&error, ISO_IO, "inner");
    error.driver_code = 3;
    assert_int_equal(iso_fail_in(&error, ISO_BAD_FILE, "outer %d", 1), ISO_BAD_FILE);
    assert_string_equal(error.text, "outer 1: inner");
    assert_int_equal(error.driver_code, 3);
    assert_int_equal(iso_fail_in(NULL, ISO_IO, "x"), ISO_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names_every_code),
        cmocka_unit_test(fail_writes_one_line),
        cmocka_unit_test(fail_cuts_at_a_character),
        cmocka_unit_test(fail_in_prefixes),
    };

    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
