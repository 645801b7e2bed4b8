#include "convert/tiny_values.h"

#include "core/hash.h"

#include <string.h>

typedef enum kind { KIND_BELL, KIND_LINEAR, KIND_FLAT } kind;

typedef struct fill {
    const char *end;
    kind kind;
    int32_t a, b;
} fill;

static const fill rows[] = {
#define FILL(end, kind, a, b) {end, KIND_##kind, a, b},
#include "convert/tiny_fill.def"
#undef FILL
};

static const fill *row_of(const char *name)
{
    const size_t length = strlen(name);

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        const size_t end = strlen(rows[i].end);

        if (end <= length && strcmp(name + length - end, rows[i].end) == 0)
            return &rows[i];
    }
    ISO_ASSERT(false && "the last row of tiny_fill.def matches every name");
    return NULL;
}

/* ---- draws ---- */

static uint64_t draw(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int32_t bell(uint64_t x)
{
    const uint32_t sum = (uint32_t)(x & 0xffff) + (uint32_t)(x >> 16 & 0xffff)
                       + (uint32_t)(x >> 32 & 0xffff) + (uint32_t)(x >> 48);

    return (int32_t)sum - 131070;
}

static uint64_t key_of(const char *name, uint64_t seed)
{
    uint64_t hash[2];

    iso_hash(name, strlen(name), hash);
    return draw(draw(seed, 0) ^ hash[0], 1) ^ hash[1];
}

static int32_t log2_floor(uint64_t x)    /* x > 0 */
{
    int32_t log = 0;

    while (x >>= 1)
        log++;
    return log;
}

/* ---- bf16 and f32: integer x 2^exponent, exact in f32 ---- */

/* f32 bits of value x 2^exponent, |value| < 2^24, result normal. */
static uint32_t f32_bits(int32_t value, int32_t exponent)
{
    const uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    int32_t top;

    if (value == 0)
        return 0;
    top = log2_floor(magnitude);
    return (value < 0 ? 0x80000000u : 0) | (uint32_t)(top + exponent + 127) << 23
         | (magnitude << (23 - top) & 0x7fffffu);
}

static uint16_t bf16_bits(uint32_t bits)
{
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

typedef struct source {
    const fill *row;
    uint64_t key;
    int32_t factor, exponent;        /* of the bell: value = bell x factor x 2^exponent */
} source;

/* 1 / sqrt(K): half of log2 K goes to the exponent, an odd rest is a factor 45/64 (about
 * sqrt(1/2)). bell / 2^15 has a standard deviation of 1.15. */
static source source_of(const iso_weight_spec *spec, uint64_t seed)
{
    source s = {.row = row_of(spec->name), .key = key_of(spec->name, seed), .factor = 1};
    const int32_t log = log2_floor((uint64_t)spec->extent[spec->rank - 1]);

    s.exponent = s.row->a - 15;
    if (s.row->kind == KIND_LINEAR) {
        s.exponent -= log / 2;
        if (log % 2 != 0) {
            s.factor = 45;
            s.exponent -= 6;
        }
    }
    return s;
}

static uint32_t plain(const source *s, uint64_t index)
{
    const uint64_t x = draw(s->key, index);

    if (s->row->kind == KIND_FLAT)
        return f32_bits(s->row->a + (int32_t)((x >> 32) % (uint32_t)(s->row->b - s->row->a + 1)),
                        -8);
    return f32_bits(bell(x) * s->factor, s->exponent);
}

static void fill_bf16(const source *s, uint64_t first, uint8_t *out, size_t count)
{
    for (size_t i = 0; i + 2 <= count; i += 2) {
        const uint16_t bits = bf16_bits(plain(s, (first + i) / 2));

        out[i] = (uint8_t)bits;
        out[i + 1] = (uint8_t)(bits >> 8);
    }
}

static void fill_f32(const source *s, uint64_t first, uint8_t *out, size_t count)
{
    for (size_t i = 0; i + 4 <= count; i += 4) {
        const uint32_t bits = plain(s, (first + i) / 4);

        for (int k = 0; k < 4; k++)
            out[i + (size_t)k] = (uint8_t)(bits >> 8 * k);
    }
}

/* ---- codes and scales ---- */

/* The e4m3 code of bell x 2^-9, cut to 4 significant bits: |bell| < 2^17, so the exponent field is
 * at most 14 and no code is NaN. The standard deviation is 73.9, about 2^6.2. */
static uint8_t e4m3_code(int32_t value)
{
    const uint32_t sign = value < 0 ? 0x80 : 0;
    const uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    int32_t top;

    if (magnitude < 8)
        return (uint8_t)(sign | magnitude);
    top = log2_floor(magnitude);
    return (uint8_t)(sign | (uint32_t)(top - 2) << 3 | (magnitude >> (top - 3) & 7));
}

/* A bell-shaped e2m1 code; the standard deviation is about 2.2, 2^1.1. */
static uint8_t e2m1_code(int32_t value)
{
    static const uint8_t code[16] = {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7};
    const uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);

    return (uint8_t)((value < 0 ? 8 : 0) | code[magnitude >> 13]);
}

static void fill_e4m3(const source *s, uint64_t first, uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = e4m3_code(bell(draw(s->key, first + i)));
}

static void fill_fp4(const source *s, uint64_t first, uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = 2 * (first + i);

        out[i] = (uint8_t)(e2m1_code(bell(draw(s->key, at)))
                           | e2m1_code(bell(draw(s->key, at + 1))) << 4);
    }
}

/* Scale bytes: the size that makes code x scale what the row says, and one more or less for half of
 * the neighbours. Twice the logarithms, to halve log2 K once. */
static void fill_scales(const source *s, const iso_weight_spec *spec, uint64_t first, uint8_t *out,
                        size_t count)
{
    static const int8_t jitter[4] = {-1, 0, 0, 1};
    const int32_t code_log = spec->encoding == ISO_ENCODING_FP4_SCALES ? 2 : 12;
    const int32_t fan_log = s->row->kind == KIND_LINEAR
                                ? log2_floor((uint64_t)spec->extent[1] * 32) : 0;
    const int32_t base = 127 + s->row->a - (code_log + fan_log + 1) / 2;

    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)(base + jitter[draw(s->key, first + i) >> 62]);
}

void iso_tiny_fill(const iso_weight_spec *spec, uint64_t seed, uint64_t first, uint8_t *out,
                   size_t count)
{
    const source s = source_of(spec, seed);

    switch (spec->encoding) {
    case ISO_ENCODING_PLAIN:
        if (spec->dtype == ISO_DTYPE_BF16)
            fill_bf16(&s, first, out, count);
        else
            fill_f32(&s, first, out, count);
        return;
    case ISO_ENCODING_FP8_CODES:
    case ISO_ENCODING_TABLE_CODES:
        fill_e4m3(&s, first, out, count);
        return;
    case ISO_ENCODING_FP4_CODES:
        fill_fp4(&s, first, out, count);
        return;
    case ISO_ENCODING_FP8_SCALES:
    case ISO_ENCODING_FP4_SCALES:
    case ISO_ENCODING_TABLE_SCALES:
        fill_scales(&s, spec, first, out, count);
        return;
    }
}
