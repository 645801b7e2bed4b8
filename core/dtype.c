#include "core/dtype.h"

#include <string.h>

struct row {
    const char *name, *tag;
    uint32_t block_elems, block_bytes, align;
};

static const struct row rows[ISO_DTYPE_COUNT] = {
    [ISO_DTYPE_NONE] = {"none", "", 1, 0, 1},
#define DTYPE(name, text, block_elems, block_bytes, align, tag)                                   \
    [ISO_DTYPE_##name] = {text, tag, block_elems, block_bytes, align},
#include "core/dtype.def"
#undef DTYPE
};

static const struct row *row_of(iso_dtype dtype)
{
    ISO_ASSERT((unsigned)dtype < ISO_DTYPE_COUNT);
    return &rows[dtype];
}

const char *iso_dtype_name(iso_dtype dtype) { return row_of(dtype)->name; }
uint32_t iso_dtype_block_elems(iso_dtype dtype) { return row_of(dtype)->block_elems; }
uint32_t iso_dtype_block_bytes(iso_dtype dtype) { return row_of(dtype)->block_bytes; }
uint32_t iso_dtype_align(iso_dtype dtype) { return row_of(dtype)->align; }
const char *iso_dtype_tag(iso_dtype dtype) { return row_of(dtype)->tag; }

bool iso_dtype_bytes(iso_dtype dtype, uint64_t count, uint64_t *bytes)
{
    const struct row *row = row_of(dtype);

    if (count % row->block_elems != 0)
        return false;
    return iso_mul_u64(count / row->block_elems, row->block_bytes, bytes);
}

iso_dtype iso_dtype_of_name(const char *name)
{
    for (int d = 1; d < ISO_DTYPE_COUNT; d++)
        if (strcmp(rows[d].name, name) == 0)
            return (iso_dtype)d;
    return ISO_DTYPE_NONE;
}

iso_dtype iso_dtype_of_tag(const char *tag)
{
    for (int d = 1; d < ISO_DTYPE_COUNT; d++)
        if (rows[d].tag[0] != '\0' && strcmp(rows[d].tag, tag) == 0)
            return (iso_dtype)d;
    return ISO_DTYPE_NONE;
}
