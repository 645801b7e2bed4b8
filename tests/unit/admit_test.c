/* admit: every bf16 pattern, every scale byte with every code, tails, places in messages. The
 * expected answers are computed from the definition of the formats, exactly, in doubles. */
#include "tests/unit/unit.h"

#include "model/admit.h"

#include <stdio.h>
#include <stdlib.h>

static double scaled(double value, int exponent)     /* value x 2^exponent, exact */
{
    for (; exponent > 0; exponent--)
        value *= 2;
    for (; exponent < 0; exponent++)
        value /= 2;
    return value;
}

static double magnitude_of(double value) { return value < 0 ? -value : value; }

/* ---- plain values ---- */

static double f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void values_bf16_exhaustive(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x10000; code++) {
        const double value = f32_of(code << 16);
        const bool is_good = magnitude_of(value) < scaled(1, 50);         /* false for NaN */
        const bool is_small = magnitude_of(value) < scaled(1, -50);
        uint16_t bits = (uint16_t)code;
        uint64_t to_clean = 0;

        assert_int_equal(iso_admit_scan(ISO_DTYPE_BF16, &bits, 1, &to_clean), is_good ? 1 : 0);
        if (!is_good)
            continue;
        assert_int_equal(to_clean, is_small && code != 0);
        iso_clean_values(ISO_DTYPE_BF16, &bits, 1);
        assert_int_equal(bits, is_small ? 0 : code);
    }
}

static void values_f32_edges(void **state)
{
    static const struct {
        uint32_t bits;
        bool is_good, is_small;
    } edge[] = {
        {0x00000000, true, true},  {0x80000000, true, true},  {0x00000001, true, true},
        {0x267fffff, true, true},  {0xa67fffff, true, true},  {0x26800000, true, false},
        {0xa6800000, true, false}, {0x3f800000, true, false}, {0x587fffff, true, false},
        {0x58800000, false, false}, {0xd8800000, false, false}, {0x7f800000, false, false},
        {0xff800000, false, false}, {0x7f800001, false, false}, {0xffffffff, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++) {
        uint32_t bits = edge[i].bits;
        uint64_t to_clean = 0;

        assert_int_equal(iso_admit_scan(ISO_DTYPE_F32, &bits, 1, &to_clean), edge[i].is_good);
        if (!edge[i].is_good)
            continue;
        assert_int_equal(to_clean, edge[i].is_small && edge[i].bits != 0);
        iso_clean_values(ISO_DTYPE_F32, &bits, 1);
        assert_int_equal(bits, edge[i].is_small ? 0 : edge[i].bits);
    }
}

/* Every count around the chunk of 1024, a bad value at each end, any alignment. */
static void values_tails_and_alignment(void **state)
{
    static uint8_t room[4 * 2100 + 8];

    (void)state;
    for (uint32_t width = 2; width <= 4; width += 2)
        for (uint64_t count = 1020; count <= 2052; count += count < 1030 ? 1 : 341) {
            const iso_dtype dtype = width == 2 ? ISO_DTYPE_BF16 : ISO_DTYPE_F32;
            const uint8_t shift = (uint8_t)(count % 4);
            uint8_t *data = room + shift;
            uint64_t to_clean = 0;

            memset(room, 0x7f, sizeof room);                     /* NaN outside */
            memset(data, 0, width * count);
            assert_int_equal(iso_admit_scan(dtype, data, count, &to_clean), count);
            assert_int_equal(to_clean, 0);
            data[width * (count - 1)] = 1;                       /* a subnormal at the end */
            assert_int_equal(iso_admit_scan(dtype, data, count, &to_clean), count);
            assert_int_equal(to_clean, 1);
            memset(data + width * (count - 1), 0x7f, width);
            assert_int_equal(iso_admit_scan(dtype, data, count, &to_clean), count - 1);
            memset(data, 0x7f, width);
            assert_int_equal(iso_admit_scan(dtype, data, count, &to_clean), 0);
        }
}

static void values_message_names_the_place(void **state)
{
    uint16_t half[6] = {0x3f80, 0, 0x3f80, 0x7fc0, 0, 0};
    uint32_t word[4] = {0, 0, 0xff800000, 0};
    iso_error error = {0};
    uint64_t to_clean = 0;

    (void)state;
    assert_fails(iso_admit_values("a.b", ISO_DTYPE_BF16, half, 6, &to_clean, &error),
                 ISO_BAD_TENSOR, error, "a.b: element 3 is NaN (0x7fc0), expected a magnitude");
    assert_fails(iso_admit_refuse("a.b", ISO_DTYPE_BF16, half, 3, 2, &error), ISO_BAD_TENSOR,
                 error, "a.b: row 1, column 1 is NaN");
    assert_fails(iso_admit_values("c", ISO_DTYPE_F32, word, 4, &to_clean, &error),
                 ISO_BAD_TENSOR, error, "c: element 2 is Inf (0xff800000)");
    word[1] = 0x58800000;
    assert_fails(iso_admit_values("c", ISO_DTYPE_F32, word, 4, &to_clean, &error),
                 ISO_BAD_TENSOR, error, "c: element 1 is too large (0x58800000)");
}

/* ---- codes ---- */

static double e4m3_value(uint32_t code)
{
    const uint32_t exponent = code >> 3 & 15, mantissa = code & 7;

    return exponent == 0 ? scaled(mantissa, -9) : scaled(8.0 + mantissa, (int)exponent - 10);
}

static double e2m1_value(uint32_t code)
{
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

    return value[code & 7];
}

static bool is_dropped(double magnitude, uint32_t scale)
{
    return magnitude != 0 && magnitude * scaled(1, (int)scale - 127) < scaled(1, -50);
}

/* One element of each code under each scale byte: [1,32] tables with the code in column 5. */
static void codes_e4m3_exhaustive(void **state)
{
    (void)state;
    for (uint32_t scale = 0; scale < 256; scale++)
        for (uint32_t code = 0; code < 256; code++) {
            uint8_t codes[32] = {0}, cleaned[32], scale_byte = (uint8_t)scale;
            const iso_coded coded = {.name = "t", .encoding = ISO_ENCODING_TABLE_CODES,
                                     .rows = 1, .columns = 32, .codes = codes,
                                     .scales = &scale_byte};
            const bool is_nan = (code & 0x7f) == 0x7f, is_zero = (code & 0x7f) == 0;
            const bool is_inside = scale >= 64 && scale <= 168;
            const bool drops = is_inside && is_dropped(e4m3_value(code), scale);
            uint8_t clean_scale = scale_byte;
            uint64_t to_clean = 0;
            iso_status status;

            codes[5] = (uint8_t)code;
            status = iso_admit_codes(&coded, &to_clean, NULL);
            assert_int_equal(status == ISO_OK, !is_nan && (is_inside || is_zero));
            if (status != ISO_OK)
                continue;
            assert_int_equal(to_clean, (drops ? 1 : 0) + (is_inside ? 0 : 1));
            memcpy(cleaned, codes, sizeof codes);
            iso_clean_codes(&coded, cleaned, &clean_scale);
            assert_int_equal(cleaned[5], drops ? 0 : code);
            assert_int_equal(clean_scale, is_inside ? scale : 127);
        }
}

static void codes_e2m1_exhaustive(void **state)
{
    (void)state;
    for (uint32_t scale = 0; scale < 256; scale++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint8_t codes[16] = {0}, cleaned[16], scale_byte = (uint8_t)scale;
            const iso_coded coded = {.name = "t", .encoding = ISO_ENCODING_FP4_CODES,
                                     .rows = 1, .columns = 32, .codes = codes,
                                     .scales = &scale_byte};
            const bool is_inside = scale >= 64 && scale <= 168;
            const bool low = is_inside && is_dropped(e2m1_value(byte), scale);
            const bool high = is_inside && is_dropped(e2m1_value(byte >> 4), scale);
            uint8_t clean_scale = scale_byte;
            uint64_t to_clean = 0;
            iso_status status;

            codes[15] = (uint8_t)byte;
            status = iso_admit_codes(&coded, &to_clean, NULL);
            assert_int_equal(status == ISO_OK, is_inside || (byte & 0x77) == 0);
            if (status != ISO_OK)
                continue;
            assert_int_equal(to_clean, (low ? 1 : 0) + (high ? 1 : 0) + (is_inside ? 0 : 1));
            memcpy(cleaned, codes, sizeof codes);
            iso_clean_codes(&coded, cleaned, &clean_scale);
            assert_int_equal(cleaned[15], (low ? 0 : byte & 15) | (high ? 0 : byte & 0xf0));
            assert_int_equal(clean_scale, is_inside ? scale : 127);
        }
}

/* 70 x 45 with tiles of 32: the last tiles are 6 rows and 13 columns. A NaN at every place. */
static void codes_fp8_tiles_and_places(void **state)
{
    enum { ROWS = 70, COLUMNS = 45, SCALES = 6 };
    static uint8_t codes[ROWS * COLUMNS], cleaned[ROWS * COLUMNS];
    uint8_t scales[SCALES], clean_scales[SCALES];
    iso_coded coded = {.name = "w.weight", .encoding = ISO_ENCODING_FP8_CODES, .tile = 32,
                       .row_first = 1000, .rows = ROWS, .columns = COLUMNS, .codes = codes,
                       .scales = scales};
    iso_error error = {0};
    uint64_t to_clean = 0;
    char part[96];

    (void)state;
    assert_int_equal(iso_coded_scale_bytes(ISO_ENCODING_FP8_CODES, 32, ROWS, COLUMNS), SCALES);
    memset(scales, 100, sizeof scales);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        memset(codes, 1, sizeof codes);
        codes[i] = i % 2 == 0 ? 0x7f : 0xff;
        snprintf(part, sizeof part, "w.weight: row %lld, column %lld: code 0x%02x is NaN",
                 (long long)(1000 + i / COLUMNS), (long long)(i % COLUMNS), codes[i]);
        assert_fails(iso_admit_codes(&coded, &to_clean, &error), ISO_BAD_TENSOR, error, part);
    }
    memset(codes, 1, sizeof codes);                      /* 2^-9: dropped below scale 86 */
    scales[5] = 85;
    to_clean = 0;
    assert_int_equal(iso_admit_codes(&coded, &to_clean, &error), ISO_OK);
    assert_int_equal(to_clean, 6 * 13);
    memcpy(cleaned, codes, sizeof codes);
    memcpy(clean_scales, scales, sizeof scales);
    iso_clean_codes(&coded, cleaned, clean_scales);
    assert_memory_equal(clean_scales, scales, sizeof scales);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        assert_int_equal(cleaned[i], i / COLUMNS >= 64 && i % COLUMNS >= 32 ? 0 : 1);
    scales[5] = 86;
    scales[3] = 169;
    assert_fails(iso_admit_codes(&coded, &to_clean, &error), ISO_BAD_TENSOR, error,
                 "w.weight: row 1032, column 32: nonzero code 0x01 under scale byte 169, expected "
                 "a scale byte from 64 to 168");
}

static void codes_fp4_rows_and_places(void **state)
{
    enum { ROWS = 3, COLUMNS = 96, SCALES = 9 };
    uint8_t codes[ROWS * COLUMNS / 2] = {0}, scales[SCALES];
    iso_coded coded = {.name = "e.weight", .encoding = ISO_ENCODING_FP4_CODES, .rows = ROWS,
                       .columns = COLUMNS, .codes = codes, .scales = scales};
    iso_error error = {0};
    uint64_t to_clean = 0;

    (void)state;
    assert_int_equal(iso_coded_row_bytes(ISO_ENCODING_FP4_CODES, COLUMNS), COLUMNS / 2);
    assert_int_equal(iso_coded_scale_bytes(ISO_ENCODING_FP4_CODES, 32, ROWS, COLUMNS), SCALES);
    memset(scales, 120, sizeof scales);
    scales[7] = 255;                                     /* row 2, columns 32 .. 63 */
    assert_int_equal(iso_admit_codes(&coded, &to_clean, &error), ISO_OK);
    assert_int_equal(to_clean, 1);
    codes[2 * COLUMNS / 2 + 20] = 0x80;                  /* -0 is a zero */
    assert_int_equal(iso_admit_codes(&coded, &to_clean, &error), ISO_OK);
    codes[2 * COLUMNS / 2 + 20] = 0x90;
    assert_fails(iso_admit_codes(&coded, &to_clean, &error), ISO_BAD_TENSOR, error,
                 "e.weight: row 2, column 41: nonzero code 0x90 under scale byte 255");
    codes[2 * COLUMNS / 2 + 20] = 0x92;
    assert_fails(iso_admit_codes(&coded, &to_clean, &error), ISO_BAD_TENSOR, error,
                 "e.weight: row 2, column 40");
}

/* Cleaned bytes are admitted and need no more cleaning. */
static void clean_is_idempotent(void **state)
{
    static const iso_encoding encoding[] = {ISO_ENCODING_FP8_CODES, ISO_ENCODING_FP4_CODES,
                                            ISO_ENCODING_TABLE_CODES};
    uint32_t seed = 1;

    (void)state;
    for (size_t e = 0; e < 3; e++)
        for (int round = 0; round < 50; round++) {
            uint8_t codes[64 * 64], scales[64 * 2];
            const iso_coded coded = {.name = "t", .encoding = encoding[e], .tile = 32,
                                     .rows = 64, .columns = 64, .codes = codes,
                                     .scales = scales};
            uint64_t to_clean = 0;

            for (size_t i = 0; i < sizeof codes; i++) {
                seed = seed * 1664525 + 1013904223;
                codes[i] = (uint8_t)((seed >> 24 & 0x7f) == 0x7f ? 0 : seed >> 24);
            }
            for (size_t i = 0; i < sizeof scales; i++) {
                seed = seed * 1664525 + 1013904223;
                scales[i] = (uint8_t)(64 + (seed >> 24) % 30);
            }
            assert_int_equal(iso_admit_codes(&coded, &to_clean, NULL), ISO_OK);
            assert_true(to_clean > 0);
            iso_clean_codes(&coded, codes, scales);
            to_clean = 0;
            assert_int_equal(iso_admit_codes(&coded, &to_clean, NULL), ISO_OK);
            assert_int_equal(to_clean, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_bf16_exhaustive),
        cmocka_unit_test(values_f32_edges),
        cmocka_unit_test(values_tails_and_alignment),
        cmocka_unit_test(values_message_names_the_place),
        cmocka_unit_test(codes_e4m3_exhaustive),
        cmocka_unit_test(codes_e2m1_exhaustive),
        cmocka_unit_test(codes_fp8_tiles_and_places),
        cmocka_unit_test(codes_fp4_rows_and_places),
        cmocka_unit_test(clean_is_idempotent),
    };

    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}
