/* tensor: descriptors, dtypes, checked sizes; live rows of op.h. */
#include "tests/unit/unit.h"

#include "core/hash.h"
#include "core/op.h"

static void dtype_counts_blocks(void **state)
{
    uint64_t bytes = 0;

    (void)state;
    assert_true(iso_dtype_bytes(ISO_DTYPE_E2M1, 6, &bytes));
    assert_int_equal(bytes, 3);
    assert_false(iso_dtype_bytes(ISO_DTYPE_E2M1, 5, &bytes));
    assert_false(iso_dtype_bytes(ISO_DTYPE_I64, UINT64_MAX / 4, &bytes));
    assert_int_equal(iso_dtype_of_tag("F8_E4M3"), ISO_DTYPE_E4M3);
    assert_int_equal(iso_dtype_of_tag("F16"), ISO_DTYPE_NONE);
    assert_string_equal(iso_dtype_tag(ISO_DTYPE_E2M1), "");
    assert_string_equal(iso_dtype_name(ISO_DTYPE_NONE), "none");
}

static void desc_measures(void **state)
{
    const iso_tensor_desc desc = iso_desc3(ISO_DTYPE_BF16, 5, 4, 256);
    const iso_tensor_desc none = iso_desc_none();
    char text[ISO_DESC_TEXT];

    (void)state;
    assert_int_equal(iso_desc_elems(&desc), 5 * 4 * 256);
    assert_int_equal(iso_desc_rows(&desc), 20);
    assert_int_equal(iso_desc_last(&desc), 256);
    assert_int_equal(iso_desc_bytes(&desc), 5 * 4 * 512);
    assert_string_equal(iso_desc_text(&desc, text), "bf16[5,4,256]");
    assert_int_equal(iso_desc_bytes(&none), 0);
    assert_string_equal(iso_desc_text(&none, text), "none");
    assert_true(iso_desc_equal(&desc, &desc));
    assert_false(iso_desc_equal(&desc, &none));
}

static void desc_check_refuses(void **state)
{
    const int64_t huge = INT64_C(1) << 40;
    iso_tensor_desc desc = iso_desc2(ISO_DTYPE_F32, huge, huge);
    iso_error error;

    (void)state;
    assert_fails(iso_desc_check(&desc, "x", &error), ISO_BAD_SHAPE, error, "x: element count");
    desc = iso_desc2(ISO_DTYPE_F32, -1, 2);
    assert_fails(iso_desc_check(&desc, "x", &error), ISO_BAD_SHAPE, error, "extent 0 is -1");
    desc = iso_desc2(ISO_DTYPE_E2M1, 4, 31);
    assert_fails(iso_desc_check(&desc, "x", &error), ISO_BAD_SHAPE, error, "no multiple of 2");
    desc = iso_desc1(ISO_DTYPE_F32, 3);
    desc.rank = 5;
    assert_fails(iso_desc_check(&desc, "x", &error), ISO_BAD_SHAPE, error, "rank 5");
    desc = iso_desc1(ISO_DTYPE_F32, 3);
    desc.dtype = (iso_dtype)77;
    assert_fails(iso_desc_check(&desc, "x", &error), ISO_BAD_DTYPE, error, "77");
    desc = iso_desc2(ISO_DTYPE_F32, 0, 7);
    assert_ok(iso_desc_check(&desc, "x", &error), error);
}

static void live_resolves(void **state)
{
    const uint32_t block[2] = {3, UINT32_MAX};
    iso_tensor_desc desc = iso_desc2(ISO_DTYPE_F32, 8, 2), out = iso_desc2(ISO_DTYPE_F32, 16, 2);

    (void)state;
    assert_int_equal(iso_live_resolve(iso_live_of(&desc), block), 8);
    desc.live_scalar = 1;
    desc.live_mult = 2;
    assert_int_equal(iso_live_resolve(iso_live_of(&desc), block), 6);
    desc.live_scalar = 2;                                    /* beyond the capacity, no overflow */
    assert_int_equal(iso_live_resolve(iso_live_of(&desc), block), 8);
    iso_live_copy(&out, &desc, 3);
    assert_int_equal(out.live_mult, 6);
    assert_int_equal(out.live_scalar, 2);
}

static void hash_streams(void **state)
{
    uint64_t whole[2], parts[2];
    iso_hasher hasher;

    (void)state;
    iso_hash("abcdef", 6, whole);
    iso_hasher_init(&hasher);
    iso_hasher_add(&hasher, "abc", 3);
    iso_hasher_add(&hasher, "def", 3);
    iso_hasher_end(&hasher, parts);
    assert_memory_equal(whole, parts, sizeof whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtype_counts_blocks),
        cmocka_unit_test(desc_measures),
        cmocka_unit_test(desc_check_refuses),
        cmocka_unit_test(live_resolves),
        cmocka_unit_test(hash_streams),
    };

    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
