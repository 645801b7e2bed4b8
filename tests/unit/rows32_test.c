/* rows32: packing against the definition, the inverse, single tiles, padding. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/rows32.h"

static const iso_dtype dtypes[] = {ISO_DTYPE_E4M3, ISO_DTYPE_UE8M0, ISO_DTYPE_BF16, ISO_DTYPE_F32,
                                   ISO_DTYPE_E2M1};
static const int64_t shapes[][3] = {{1, 1, 2},   {1, 31, 6},   {1, 32, 8},  {1, 33, 130},
                                    {3, 40, 66}, {2, 64, 128}, {2, 95, 514}};

static iso_tensor_desc desc_of(iso_dtype dtype, const int64_t shape[3])
{
    return shape[0] == 1 ? iso_desc2(dtype, shape[1], shape[2])
                         : iso_desc3(dtype, shape[0], shape[1], shape[2]);
}

/* Byte i of the packed tensor, from the definition: the plain byte, or 0. */
static unsigned char defined(const iso_tensor_desc *desc, const unsigned char *plain, uint64_t i)
{
    const uint64_t unit = iso_rows32_unit(desc->dtype);
    const uint64_t rows = (uint64_t)desc->extent[desc->rank - 2];
    const uint64_t row_bytes = (uint64_t)iso_desc_last(desc) * iso_dtype_block_bytes(desc->dtype)
                             / iso_dtype_block_elems(desc->dtype);
    const uint64_t tile_bytes = (row_bytes + unit - 1) / unit * unit * 32;
    const uint64_t tiles = (rows + 31) / 32, tile = i / tile_bytes, at = i % tile_bytes;
    const uint64_t row = tile % tiles * 32 + at / unit % 32;
    const uint64_t byte = at / (unit * 32) * unit + at % unit;

    return row < rows && byte < row_bytes
               ? plain[(tile / tiles * rows + row) * row_bytes + byte] : 0;
}

static void check_shape(iso_dtype dtype, const int64_t shape[3])
{
    const iso_tensor_desc desc = desc_of(dtype, shape);
    iso_tensor_desc packed_desc = desc;
    const uint64_t tiles = iso_rows32_tiles(&desc), bytes = iso_desc_bytes(&desc);
    unsigned char *plain = iso_alloc(bytes, 64, "test"), *back = iso_alloc(bytes, 64, "test");
    unsigned char *packed, *single;
    uint64_t packed_bytes;

    packed_desc.layout = ISO_LAYOUT_ROWS32;
    packed_bytes = iso_desc_bytes(&packed_desc);
    assert_int_equal(packed_bytes, tiles * iso_rows32_tile_bytes(&desc));
    packed = iso_alloc(packed_bytes, 64, "test");
    single = iso_alloc(packed_bytes, 64, "test");
    for (uint64_t i = 0; i < bytes; i++)
        plain[i] = (unsigned char)(i * 131 % 251 + 1);           /* never 0 */
    memset(packed, 0xee, packed_bytes);
    memset(single, 0xdd, packed_bytes);
    memset(back, 0xcc, bytes);
    iso_rows32_pack(&desc, 0, tiles, plain, packed);
    for (uint64_t tile = tiles; tile-- > 0;)
        iso_rows32_pack(&packed_desc, tile, tile + 1, plain, single);
    assert_memory_equal(single, packed, packed_bytes);
    for (uint64_t i = 0; i < packed_bytes; i++)
        assert_int_equal(packed[i], defined(&desc, plain, i));
    iso_rows32_unpack(&desc, 0, tiles, packed, back);
    assert_memory_equal(back, plain, bytes);
    iso_release(plain, bytes);
    iso_release(back, bytes);
    iso_release(packed, packed_bytes);
    iso_release(single, packed_bytes);
}

static void packs_as_defined(void **state)
{
    (void)state;
    for (size_t d = 0; d < ISO_COUNT_OF(dtypes); d++)
        for (size_t s = 0; s < ISO_COUNT_OF(shapes); s++)
            check_shape(dtypes[d], shapes[s]);
}

static void a_vector_is_not_packed(void **state)
{
    iso_tensor_desc desc = iso_desc1(ISO_DTYPE_BF16, 64);
    iso_error error;

    (void)state;
    desc.layout = ISO_LAYOUT_ROWS32;
    assert_fails(iso_desc_check(&desc, "w", &error), ISO_BAD_LAYOUT, error,
                 "w: rank 1 is rows32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_as_defined),
        cmocka_unit_test(a_vector_is_not_packed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
