/* cpuinfo_test: masks of instruction sets. */
#include "core/cpuinfo.h"
#include "tests/unit/unit.h"

static void native_is_all_that_is_there(void **state)
{
    uint32_t a = 0, b = 0;
    iso_error error;

    (void)state;
    assert_ok(iso_isa_mask(NULL, &a, &error), error);
    assert_ok(iso_isa_mask("native", &b, &error), error);
    assert_int_equal(a, b);
    assert_int_equal(a, iso_isa_available());
    assert_true(a & 1u << ISO_ISA_portable);
}

static void a_mask_keeps_the_weaker_sets(void **state)
{
    (void)state;
    for (iso_isa isa = 0; isa < ISO_ISA_COUNT; isa++) {
        uint32_t mask = 0;
        iso_error error;

        if ((iso_isa_available() & 1u << isa) == 0) {
            assert_fails(iso_isa_mask(iso_isa_name(isa), &mask, &error), ISO_BAD_ARGUMENT, error,
                         "this processor has");
            continue;
        }
        assert_ok(iso_isa_mask(iso_isa_name(isa), &mask, &error), error);
        assert_int_equal(mask, iso_isa_available() & ((2u << isa) - 1));
        assert_non_null(iso_isa_needs(isa));
    }
}

static void unknown_names_are_refused(void **state)
{
    static const char *const name[] = {"", "avx", "AVX2", "reference", "portable "};
    uint32_t mask = 77;
    iso_error error;

    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        assert_fails(iso_isa_mask(name[i], &mask, &error), ISO_BAD_ARGUMENT, error, "portable");
    assert_int_equal(mask, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_is_all_that_is_there),
        cmocka_unit_test(a_mask_keeps_the_weaker_sets),
        cmocka_unit_test(unknown_names_are_refused),
    };

    return cmocka_run_group_tests_name("cpuinfo", tests, NULL, NULL);
}
