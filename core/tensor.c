#include "core/tensor.h"

#include "core/rows32.h"

#include <string.h>

/* A layout may pad a byte of a row to a unit of 4, and a row to a tile of 32. */
enum { PADDING_MAX = 128 };

iso_tensor_desc iso_desc4(iso_dtype dtype, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    return (iso_tensor_desc){.dtype = dtype, .layout = ISO_LAYOUT_PLAIN, .rank = 4,
                             .extent = {e0, e1, e2, e3}};
}

iso_tensor_desc iso_desc3(iso_dtype dtype, int64_t e0, int64_t e1, int64_t e2)
{
    iso_tensor_desc desc = iso_desc4(dtype, e0, e1, e2, 1);

    desc.rank = 3;
    return desc;
}

iso_tensor_desc iso_desc2(iso_dtype dtype, int64_t e0, int64_t e1)
{
    iso_tensor_desc desc = iso_desc4(dtype, e0, e1, 1, 1);

    desc.rank = 2;
    return desc;
}

iso_tensor_desc iso_desc1(iso_dtype dtype, int64_t e0)
{
    iso_tensor_desc desc = iso_desc4(dtype, e0, 1, 1, 1);

    desc.rank = 1;
    return desc;
}

iso_tensor_desc iso_desc_none(void)
{
    return (iso_tensor_desc){.dtype = ISO_DTYPE_NONE, .extent = {1, 1, 1, 1}};
}

bool iso_desc_present(const iso_tensor_desc *desc) { return desc->dtype != ISO_DTYPE_NONE; }

int64_t iso_desc_elems(const iso_tensor_desc *desc)
{
    return desc->extent[0] * desc->extent[1] * desc->extent[2] * desc->extent[3];
}

int64_t iso_desc_last(const iso_tensor_desc *desc)
{
    return desc->rank == 0 ? 1 : desc->extent[desc->rank - 1];
}

int64_t iso_desc_rows(const iso_tensor_desc *desc)
{
    int64_t rows = 1;

    for (uint32_t i = 0; i + 1 < desc->rank; i++)
        rows *= desc->extent[i];
    return rows;
}

uint64_t iso_desc_bytes(const iso_tensor_desc *desc)
{
    uint64_t bytes = 0;

    if (!iso_desc_present(desc))
        return 0;
    if (desc->layout == ISO_LAYOUT_ROWS32)
        return iso_rows32_tiles(desc) * iso_rows32_tile_bytes(desc);
    if (!iso_dtype_bytes(desc->dtype, (uint64_t)iso_desc_elems(desc), &bytes))
        ISO_ASSERT_SAYS(false, "descriptor was not checked");
    return bytes;
}

bool iso_desc_equal(const iso_tensor_desc *a, const iso_tensor_desc *b)
{
    return a->dtype == b->dtype && a->layout == b->layout && a->rank == b->rank
        && a->live_scalar == b->live_scalar && a->live_mult == b->live_mult
        && memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

iso_status iso_desc_check(const iso_tensor_desc *desc, const char *what, iso_error *error)
{
    uint64_t elems = 1, bytes;

    if ((unsigned)desc->dtype >= ISO_DTYPE_COUNT)
        return iso_fail(error, ISO_BAD_DTYPE, "%s: unknown dtype %d", what, (int)desc->dtype);
    if (!iso_desc_present(desc))
        return ISO_OK;
    if (desc->rank < 1 || desc->rank > ISO_RANK_MAX)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: rank %u, expected 1 to %d", what, desc->rank,
                        ISO_RANK_MAX);
    if ((unsigned)desc->layout >= ISO_LAYOUT_COUNT)
        return iso_fail(error, ISO_BAD_LAYOUT, "%s: unknown layout %d", what, (int)desc->layout);
    if (desc->layout == ISO_LAYOUT_ROWS32 && desc->rank < 2)
        return iso_fail(error, ISO_BAD_LAYOUT, "%s: rank %u is rows32, expected rank 2 or more",
                        what, desc->rank);
    for (uint32_t i = 0; i < ISO_RANK_MAX; i++) {
        if (desc->extent[i] < 0 || (i >= desc->rank && desc->extent[i] != 1))
            return iso_fail(error, ISO_BAD_SHAPE, "%s: extent %u is %lld", what, i,
                            (long long)desc->extent[i]);
        if (!iso_mul_u64(elems, (uint64_t)desc->extent[i], &elems))
            return iso_fail(error, ISO_BAD_SHAPE, "%s: element count overflows", what);
    }
    if (iso_desc_last(desc) % iso_dtype_block_elems(desc->dtype) != 0)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: last extent %lld is no multiple of %u", what,
                        (long long)iso_desc_last(desc), iso_dtype_block_elems(desc->dtype));
    if (!iso_dtype_bytes(desc->dtype, elems, &bytes) || bytes > INT64_MAX / PADDING_MAX)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: byte count overflows", what);
    return ISO_OK;
}

const char *iso_desc_text(const iso_tensor_desc *desc, char buffer[ISO_DESC_TEXT])
{
    int used = snprintf(buffer, ISO_DESC_TEXT, "%s", iso_dtype_name(desc->dtype));

    for (uint32_t i = 0; i < desc->rank && used < ISO_DESC_TEXT; i++)
        used += snprintf(buffer + used, (size_t)(ISO_DESC_TEXT - used), "%s%lld%s",
                         i == 0 ? "[" : ",", (long long)desc->extent[i],
                         i == 0 && desc->live_scalar != 0 ? "*" : "");
    if (desc->rank != 0 && used < ISO_DESC_TEXT)
        snprintf(buffer + used, (size_t)(ISO_DESC_TEXT - used), "]");
    return buffer;
}
