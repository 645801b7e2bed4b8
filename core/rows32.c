#include "core/rows32.h"

#include <string.h>

enum { RUN = 64 };                   /* units of a row that are moved together */

typedef struct shape {
    uint64_t rows, row_bytes, tiles, tile_bytes;     /* of one matrix; plain bytes of a row */
    uint32_t unit;
} shape;

uint32_t iso_rows32_unit(iso_dtype dtype)
{
    const bool is_bytes = iso_dtype_block_bytes(dtype) == 1 && iso_dtype_block_elems(dtype) == 1;

    return is_bytes ? 1 : 4;
}

static shape shape_of(const iso_tensor_desc *desc)
{
    shape s = {.unit = iso_rows32_unit(desc->dtype)};
    uint64_t units;

    ISO_ASSERT(desc->rank >= 2);
    s.rows = (uint64_t)desc->extent[desc->rank - 2];
    if (!iso_dtype_bytes(desc->dtype, (uint64_t)iso_desc_last(desc), &s.row_bytes))
        ISO_ASSERT_SAYS(false, "descriptor was not checked");
    units = (s.row_bytes + s.unit - 1) / s.unit;
    s.tiles = (s.rows + ISO_ROWS32 - 1) / ISO_ROWS32;
    s.tile_bytes = units * s.unit * ISO_ROWS32;
    return s;
}

uint64_t iso_rows32_tiles(const iso_tensor_desc *desc)
{
    uint64_t tiles = shape_of(desc).tiles;

    for (uint32_t i = 0; i + 2 < desc->rank; i++)
        tiles *= (uint64_t)desc->extent[i];
    return tiles;
}

uint64_t iso_rows32_tile_bytes(const iso_tensor_desc *desc) { return shape_of(desc).tile_bytes; }

/* One tile: its first row in the plain tensor, and how many of its rows exist. */
typedef struct place {
    uint64_t plain, packed;              /* bytes */
    uint32_t rows;
} place;

static place place_of(const shape *s, uint64_t tile)
{
    const uint64_t row = tile % s->tiles * ISO_ROWS32, left = s->rows - row;

    return (place){(tile / s->tiles * s->rows + row) * s->row_bytes, tile * s->tile_bytes,
                   left < ISO_ROWS32 ? (uint32_t)left : ISO_ROWS32};
}

/* Units begin .. end - 1 of a row; `unit` is a constant at every call. */
static inline void scatter(unsigned char *tile, const unsigned char *row, uint64_t begin,
                           uint64_t end, const uint32_t unit)
{
    for (uint64_t u = begin; u < end; u++)
        memcpy(tile + u * ISO_ROWS32 * unit, row + u * unit, unit);
}

static inline void gather(const unsigned char *tile, unsigned char *row, uint64_t begin,
                          uint64_t end, const uint32_t unit)
{
    for (uint64_t u = begin; u < end; u++)
        memcpy(row + u * unit, tile + u * ISO_ROWS32 * unit, unit);
}

static void pack_tile(const shape *s, uint32_t rows, const unsigned char *plain,
                      unsigned char *tile)
{
    const uint64_t full = s->row_bytes / s->unit, rest = s->row_bytes % s->unit;

    if (rows < ISO_ROWS32 || rest != 0)
        memset(tile, 0, (size_t)s->tile_bytes);
    for (uint64_t begin = 0; begin < full; begin += RUN) {
        const uint64_t end = full - begin < RUN ? full : begin + RUN;

        for (uint32_t r = 0; r < rows; r++)
            if (s->unit == 1)
                scatter(tile + r, plain + r * s->row_bytes, begin, end, 1);
            else
                scatter(tile + r * 4, plain + r * s->row_bytes, begin, end, 4);
    }
    for (uint32_t r = 0; r < rows; r++)
        if (rest != 0)
            memcpy(tile + (full * ISO_ROWS32 + r) * s->unit,
                   plain + r * s->row_bytes + full * s->unit, (size_t)rest);
}

static void unpack_tile(const shape *s, uint32_t rows, const unsigned char *tile,
                        unsigned char *plain)
{
    const uint64_t full = s->row_bytes / s->unit, rest = s->row_bytes % s->unit;

    for (uint64_t begin = 0; begin < full; begin += RUN) {
        const uint64_t end = full - begin < RUN ? full : begin + RUN;

        for (uint32_t r = 0; r < rows; r++)
            if (s->unit == 1)
                gather(tile + r, plain + r * s->row_bytes, begin, end, 1);
            else
                gather(tile + r * 4, plain + r * s->row_bytes, begin, end, 4);
    }
    for (uint32_t r = 0; r < rows; r++)
        if (rest != 0)
            memcpy(plain + r * s->row_bytes + full * s->unit,
                   tile + (full * ISO_ROWS32 + r) * s->unit, (size_t)rest);
}

void iso_rows32_pack(const iso_tensor_desc *desc, uint64_t begin, uint64_t end, const void *plain,
                     void *packed)
{
    const shape s = shape_of(desc);

    for (uint64_t tile = begin; tile < end; tile++) {
        const place p = place_of(&s, tile);

        pack_tile(&s, p.rows, (const unsigned char *)plain + p.plain,
                  (unsigned char *)packed + p.packed);
    }
}

void iso_rows32_unpack(const iso_tensor_desc *desc, uint64_t begin, uint64_t end,
                       const void *packed, void *plain)
{
    const shape s = shape_of(desc);

    for (uint64_t tile = begin; tile < end; tile++) {
        const place p = place_of(&s, tile);

        unpack_tile(&s, p.rows, (const unsigned char *)packed + p.packed,
                    (unsigned char *)plain + p.plain);
    }
}
