#include "model/admit.h"

#include <string.h>

/* ---- bf16 and f32 ---- */

enum {
    CHUNK = 1024,                    /* values copied to aligned memory and tested at a time */
    BF16_LOW = 0x2680, BF16_HIGH = 0x5880    /* 2^-50 and 2^50 */
};
static const uint32_t f32_low = 0x26800000u, f32_high = 0x58800000u;

/* Tests a whole chunk without branches: *clean counts the values that change, the result says
 * whether any is refused. The constant trip count lets the compiler use vectors. */
static bool chunk_bf16(const uint16_t *v, uint32_t *clean)
{
    uint16_t bad = 0, small = 0;         /* small <= CHUNK: fits */

    for (int i = 0; i < CHUNK; i++) {
        const uint16_t a = v[i] & 0x7fff;

        bad = (uint16_t)(bad | (a >= BF16_HIGH));
        small = (uint16_t)(small + ((a < BF16_LOW) & (v[i] != 0)));
    }
    *clean = small;
    return bad != 0;
}

static bool chunk_f32(const uint32_t *v, uint32_t *clean)
{
    uint32_t bad = 0, small = 0;

    for (int i = 0; i < CHUNK; i++) {
        const uint32_t a = v[i] & 0x7fffffffu;

        bad |= (uint32_t)(a >= f32_high);
        small += (uint32_t)(a < f32_low) & (uint32_t)(v[i] != 0);
    }
    *clean = small;
    return bad != 0;
}

static uint64_t scan_bf16(const uint8_t *data, uint64_t count, uint64_t *to_clean)
{
    uint16_t chunk[CHUNK];

    for (uint64_t i = 0; i < count; i += CHUNK) {
        const uint64_t have = count - i < CHUNK ? count - i : CHUNK;
        uint32_t clean;

        memcpy(chunk, data + 2 * i, 2 * have);
        memset(chunk + have, 0, 2 * (CHUNK - have));
        if (chunk_bf16(chunk, &clean))
            for (uint64_t k = 0; k < have; k++)
                if ((chunk[k] & 0x7fff) >= BF16_HIGH)
                    return i + k;
        *to_clean += clean;
    }
    return count;
}

static uint64_t scan_f32(const uint8_t *data, uint64_t count, uint64_t *to_clean)
{
    uint32_t chunk[CHUNK];

    for (uint64_t i = 0; i < count; i += CHUNK) {
        const uint64_t have = count - i < CHUNK ? count - i : CHUNK;
        uint32_t clean;

        memcpy(chunk, data + 4 * i, 4 * have);
        memset(chunk + have, 0, 4 * (CHUNK - have));
        if (chunk_f32(chunk, &clean))
            for (uint64_t k = 0; k < have; k++)
                if ((chunk[k] & 0x7fffffffu) >= f32_high)
                    return i + k;
        *to_clean += clean;
    }
    return count;
}

uint64_t iso_admit_scan(iso_dtype dtype, const void *data, uint64_t count, uint64_t *to_clean)
{
    ISO_ASSERT(dtype == ISO_DTYPE_BF16 || dtype == ISO_DTYPE_F32);
    return dtype == ISO_DTYPE_BF16 ? scan_bf16(data, count, to_clean)
                                   : scan_f32(data, count, to_clean);
}

static uint32_t value_bits(iso_dtype dtype, const void *data, uint64_t index)
{
    uint16_t half;
    uint32_t word;

    if (dtype == ISO_DTYPE_F32) {
        memcpy(&word, (const uint8_t *)data + 4 * index, 4);
        return word;
    }
    memcpy(&half, (const uint8_t *)data + 2 * index, 2);
    return half;
}

iso_status iso_admit_refuse(const char *name, iso_dtype dtype, const void *data, uint64_t index,
                            int64_t columns, iso_error *error)
{
    const bool is_f32 = dtype == ISO_DTYPE_F32;
    const uint32_t bits = value_bits(dtype, data, index);
    const uint32_t magnitude = (is_f32 ? bits : bits << 16) & 0x7fffffffu;
    const char *kind = magnitude > 0x7f800000u ? "NaN" : magnitude == 0x7f800000u ? "Inf"
                                                                                 : "too large";
    char place[64];

    if (columns > 0)
        snprintf(place, sizeof place, "row %llu, column %llu",
                 (unsigned long long)(index / (uint64_t)columns),
                 (unsigned long long)(index % (uint64_t)columns));
    else
        snprintf(place, sizeof place, "element %llu", (unsigned long long)index);
    return iso_fail(error, ISO_BAD_TENSOR, "%s: %s is %s (0x%0*x), expected a magnitude below "
                    "2^50", name, place, kind, is_f32 ? 8 : 4, bits);
}

iso_status iso_admit_values(const char *name, iso_dtype dtype, const void *data, uint64_t count,
                            uint64_t *to_clean, iso_error *error)
{
    const uint64_t bad = iso_admit_scan(dtype, data, count, to_clean);

    return bad == count ? ISO_OK : iso_admit_refuse(name, dtype, data, bad, 0, error);
}

void iso_clean_values(iso_dtype dtype, void *data, uint64_t count)
{
    const uint32_t low = dtype == ISO_DTYPE_F32 ? f32_low : BF16_LOW;
    const uint32_t mask = dtype == ISO_DTYPE_F32 ? 0x7fffffffu : 0x7fffu;
    const size_t bytes = dtype == ISO_DTYPE_F32 ? 4 : 2;

    ISO_ASSERT(dtype == ISO_DTYPE_BF16 || dtype == ISO_DTYPE_F32);
    for (uint64_t i = 0; i < count; i++)
        if ((value_bits(dtype, data, i) & mask) < low)
            memset((uint8_t *)data + bytes * i, 0, bytes);
}

/* ---- codes with scales ---- */

/* Scale bytes: one per block of `band` rows and `width` code bytes; `blocks` of them in a band. */
typedef struct grid {
    bool is_fp4;
    int64_t band, width, row_bytes, blocks;
    uint32_t harmless;               /* scales from here to 168 clean nothing */
} grid;

enum { SCALE_LOW = 64, SCALE_HIGH = 168, SCALE_NEUTRAL = 127, FP8_HARMLESS = 86,
       FP4_HARMLESS = 78 };

static grid grid_of(iso_encoding encoding, uint32_t tile, int64_t columns)
{
    const bool is_fp8 = encoding == ISO_ENCODING_FP8_CODES;
    grid g = {.is_fp4 = encoding == ISO_ENCODING_FP4_CODES};

    ISO_ASSERT(is_fp8 || g.is_fp4 || encoding == ISO_ENCODING_TABLE_CODES);
    ISO_ASSERT(!is_fp8 || tile > 0);
    g.band = is_fp8 ? tile : 1;
    g.width = is_fp8 ? tile : g.is_fp4 ? 16 : 32;
    g.row_bytes = g.is_fp4 ? columns / 2 : columns;
    g.blocks = (g.row_bytes + g.width - 1) / g.width;
    g.harmless = g.is_fp4 ? FP4_HARMLESS : FP8_HARMLESS;
    return g;
}

int64_t iso_coded_row_bytes(iso_encoding encoding, int64_t columns)
{
    return grid_of(encoding, 1, columns).row_bytes;
}

int64_t iso_coded_scale_bytes(iso_encoding encoding, uint32_t tile, int64_t rows, int64_t columns)
{
    const grid g = grid_of(encoding, tile, columns);

    return (rows + g.band - 1) / g.band * g.blocks;
}

/* Smallest code magnitude that a scale byte in [64, harmless) keeps at or above 2^-50. e4m3: code
 * of the integer X = 2^(86 - s) in units of 2^-9 (X below 8 is its own code, 2^k has code
 * 8 (k - 2)); e2m1: of the half-integer count 2^(78 - s), 1 2 4 8 -> 1 2 4 6 (12 is code 7). */
static uint32_t first_kept(const grid *g, uint32_t scale)
{
    static const uint8_t fp4_code[] = {1, 2, 4, 6};
    const uint32_t k = g->harmless - scale;

    if (g->is_fp4)
        return k < sizeof fp4_code ? fp4_code[k] : 8;
    return k < 3 ? 1u << k : (k - 2) * 8;
}

/* One block of codes: rows of `bytes` bytes each. */
typedef struct block {
    int64_t row, rows, at, bytes;    /* first row in the band of rows given; first byte of a row */
    uint32_t scale;
} block;

/* Codes of the byte that are nonzero with a magnitude below `kept`: a mask of the bits to drop. */
static uint32_t dropped(const grid *g, uint32_t byte, uint32_t kept)
{
    const uint32_t low = byte & 7, high = byte >> 4 & 7;

    if (!g->is_fp4)
        return (byte & 0x7f) != 0 && (byte & 0x7f) < kept ? 0xff : 0;
    return (low != 0 && low < kept ? 0x0fu : 0) | (high != 0 && high < kept ? 0xf0u : 0);
}

static uint64_t count_dropped(const iso_coded *c, const grid *g, const block *b)
{
    const uint32_t kept = first_kept(g, b->scale);
    uint64_t count = 0;

    for (int64_t r = b->row; r < b->row + b->rows; r++)
        for (int64_t i = b->at; i < b->at + b->bytes; i++) {
            const uint32_t drop = dropped(g, c->codes[r * g->row_bytes + i], kept);

            count += (drop & 0x0f) != 0;
            count += g->is_fp4 && (drop & 0xf0) != 0;
        }
    return count;
}

/* A scale byte outside [64, 168] is accepted over zeros only. */
static iso_status admit_zeros(const iso_coded *c, const grid *g, const block *b, iso_error *error)
{
    const uint32_t mask = g->is_fp4 ? 0x77 : 0x7f;

    for (int64_t r = b->row; r < b->row + b->rows; r++)
        for (int64_t i = b->at; i < b->at + b->bytes; i++) {
            const uint32_t byte = c->codes[r * g->row_bytes + i];
            const bool is_high = g->is_fp4 && (byte & 0x07) == 0;

            if ((byte & mask) != 0)
                return iso_fail(error, ISO_BAD_TENSOR, "%s: row %lld, column %lld: nonzero code "
                                "0x%02x under scale byte %u, expected a scale byte from %d to %d",
                                c->name, (long long)(c->row_first + r),
                                (long long)(g->is_fp4 ? 2 * i + is_high : i), byte, b->scale,
                                SCALE_LOW, SCALE_HIGH);
        }
    return ISO_OK;
}

/* Index of the first e4m3 NaN code among `count` bytes, or -1: eight at a time, a byte's low seven
 * bits plus one reach its top bit only from 0x7f. */
static int64_t find_nan(const uint8_t *codes, int64_t count)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu, one = 0x0101010101010101u;
    int64_t i = 0;

    for (; i + 32 <= count; i += 32) {
        uint64_t word[4], hit = 0;

        memcpy(word, codes + i, sizeof word);
        for (int k = 0; k < 4; k++)
            hit |= (word[k] & low) + one;
        if ((hit & ~low) != 0)
            break;
    }
    for (; i < count; i++)
        if ((codes[i] & 0x7f) == 0x7f)
            return i;
    return -1;
}

static iso_status admit_band(const iso_coded *c, const grid *g, const block *band,
                             const uint8_t *scales, uint64_t *to_clean, iso_error *error)
{
    if (!g->is_fp4) {
        const uint8_t *codes = c->codes + band->row * g->row_bytes;
        const int64_t bad = find_nan(codes, band->rows * g->row_bytes);

        if (bad >= 0)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: row %lld, column %lld: code 0x%02x is NaN, "
                            "expected a finite e4m3 code", c->name,
                            (long long)(c->row_first + band->row + bad / g->row_bytes),
                            (long long)(bad % g->row_bytes), codes[bad]);
    }
    for (int64_t i = 0; i < g->blocks; i++) {
        const int64_t at = i * g->width;
        const int64_t left = g->row_bytes - at;
        block b = {.row = band->row, .rows = band->rows, .at = at,
                   .bytes = left < g->width ? left : g->width, .scale = scales[i]};

        if (b.scale >= g->harmless && b.scale <= SCALE_HIGH)
            continue;
        if (b.scale >= SCALE_LOW && b.scale <= SCALE_HIGH) {
            *to_clean += count_dropped(c, g, &b);
            continue;
        }
        ISO_TRY(admit_zeros(c, g, &b, error));
        *to_clean += 1;
    }
    return ISO_OK;
}

iso_status iso_admit_codes(const iso_coded *coded, uint64_t *to_clean, iso_error *error)
{
    const grid g = grid_of(coded->encoding, coded->tile, coded->columns);
    const uint8_t *scales = coded->scales;

    for (int64_t row = 0; row < coded->rows; row += g.band, scales += g.blocks) {
        const int64_t left = coded->rows - row;
        const block band = {.row = row, .rows = left < g.band ? left : g.band};

        ISO_TRY(admit_band(coded, &g, &band, scales, to_clean, error));
    }
    return ISO_OK;
}

static void clean_block(const grid *g, const block *b, uint8_t *codes)
{
    const uint32_t kept = first_kept(g, b->scale);

    for (int64_t r = b->row; r < b->row + b->rows; r++)
        for (int64_t i = b->at; i < b->at + b->bytes; i++) {
            uint8_t *byte = &codes[r * g->row_bytes + i];

            *byte = (uint8_t)(*byte & ~dropped(g, *byte, kept));
        }
}

void iso_clean_codes(const iso_coded *coded, uint8_t *codes, uint8_t *scales)
{
    const grid g = grid_of(coded->encoding, coded->tile, coded->columns);

    for (int64_t row = 0; row < coded->rows; row += g.band, scales += g.blocks)
        for (int64_t i = 0; i < g.blocks; i++) {
            const int64_t left = coded->rows - row, at = i * g.width;
            const block b = {.row = row, .rows = left < g.band ? left : g.band, .at = at,
                             .bytes = g.row_bytes - at < g.width ? g.row_bytes - at : g.width,
                             .scale = scales[i]};

            if (b.scale < SCALE_LOW || b.scale > SCALE_HIGH)
                scales[i] = SCALE_NEUTRAL;
            else if (b.scale < g.harmless)
                clean_block(&g, &b, codes);
        }
}
