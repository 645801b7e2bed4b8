/* lane: the scalar functions against the golden hashes of numerics A.1, published answers, and
 * every value of the small formats. What needs 2^32 inputs is in tests/night/lane_exhaustive.c. */
#include "core/check.h"
#include "ggml-style-ops/lane/erf.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/lane/i32.h"
#include "ggml-style-ops/lane/key64.h"
#include "ggml-style-ops/lane/log1p.h"
#include "ggml-style-ops/lane/philox.h"
#include "ggml-style-ops/lane/sincos.h"
#include "tests/unit/golden.h"
#include "tests/unit/unit.h"

static void expect_hash(const golden *g, uint64_t hash)
{
    assert_int_equal(g->hash, hash);
}

/* 2^e as a double, without libm. */
static double pow2(int e)
{
    double v = 1.0;

    for (; e > 0; e--)
        v *= 2.0;
    for (; e < 0; e++)
        v *= 0.5;
    return v;
}

/* ---- functions of f32 ---- */

static uint32_t drop;                /* range flags of results nobody asked about */

static float clean(float x) { return lane_clean(x, &drop); }
static float magnitude(float x) { return lane_float(lane_bits(x) & 0x7fffffffu); }
static float at_exp(float x) { return lane_exp(x); }
static float at_softplus(float x) { return lane_softplus(clean(x)); }
static float at_sigmoid(float x) { return lane_sigmoid(clean(x)); }
static float at_silu(float x) { return clean(lane_silu(clean(x))); }
static float at_erf(float x) { return clean(lane_erf(clean(x))); }
static float at_gelu(float x) { return clean(lane_gelu(clean(x))); }
static float at_sqrt(float x) { return lane_sqrt(magnitude(clean(x))); }

static float at_log1p(float x)
{
    const float a = magnitude(clean(x));

    return lane_log1p01(a > 1.0f ? lane_div(1.0f, a) : a);
}

static float at_rsqrt(float x)
{
    const float a = magnitude(clean(x));

    return lane_rsqrt(lane_bits(a) == 0 ? 1.0f : a);
}

/* 2^21 inputs spread over all of binary32; except for exp those of the domain. */
static uint64_t hash_of(float (*f)(float), bool domain_only)
{
    golden g = golden_begin(1);

    for (uint32_t i = 0; i < 1u << 21; i++) {
        const uint32_t u = i * 2053u + 7u;

        if (!domain_only || (u & 0x7fffffffu) < LANE_CLEAN_MAX)
            golden_put_f32(&g, f(lane_float(u)));
    }
    return g.hash;
}

static void functions_match_golden(void **state)
{
    static const struct {
        const char *name;
        float (*f)(float);
        uint64_t hash;
    } row[] = {
        {"exp", at_exp, 0x4913d1e992398b90u},
        {"log1p01", at_log1p, 0x7b287d9cd9da053cu},
        {"softplus", at_softplus, 0x1304562bc614eea8u},
        {"sigmoid", at_sigmoid, 0xeaea1a73fa823c26u},
        {"silu", at_silu, 0xc2d0774341b06fabu},
        {"erf", at_erf, 0x291f5949b3e14ae5u},
        {"gelu", at_gelu, 0x8fb5aeaa0de9560fu},
        {"sqrt", at_sqrt, 0x127c1a1625d1f6c6u},
        {"rsqrt", at_rsqrt, 0x93aaed5272ab050bu},
    };

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(row); i++) {
        const uint64_t hash = hash_of(row[i].f, row[i].f != at_exp);

        if (hash != row[i].hash)
            print_error("%s\n", row[i].name);
        assert_int_equal(hash, row[i].hash);
    }
}

static void div_matches_golden(void **state)
{
    golden g = golden_begin(2);

    (void)state;
    for (int i = 0; i < 1 << 21; i++) {
        const float a = golden_f32(&g, (enum golden_dist)(i % 3));
        const float b = golden_f32(&g, (enum golden_dist)(i % 3));

        golden_put_f32(&g, lane_div(a, lane_bits(b) << 1 == 0 ? 3.0f : b));
    }
    expect_hash(&g, 0x979f97ec61680234u);
}

static void formats_match_golden(void **state)
{
    golden g = golden_begin(3);
    uint32_t flags = 0;

    (void)state;
    for (uint32_t i = 0; i < 1u << 20; i++) {
        const float x = lane_float(i * 4099u);

        golden_put(&g, lane_bf16(x, &flags));
        if ((lane_bits(x) & 0x7fffffffu) < 0x7f800000u)
            golden_put(&g, lane_e4m3(x, &flags) | lane_e2m1(x) << 8
                               | (lane_ue8m0_ceil(x) & 255u) << 16);
        golden_put_f32(&g, lane_i32_f32((int32_t)(i * 2047u) / 2));
    }
    expect_hash(&g, 0x62593e73472c46bau);
}

static void special_values(void **state)
{
    const float inf = lane_float(0x7f800000u), nan = lane_float(0x7fc12345u);

    (void)state;
    assert_int_equal(lane_bits(lane_exp(0.0f)), 0x3f800000u);
    assert_int_equal(lane_bits(lane_exp(-inf)), 0);
    assert_int_equal(lane_bits(lane_exp(inf)), 0x7f800000u);
    assert_int_equal(lane_bits(lane_exp(nan)), 0x7fc00000u);
    assert_int_equal(lane_bits(lane_div(1.0f, 0.0f)), 0x7f800000u);
    assert_int_equal(lane_bits(lane_div(-1.0f, inf)), 0x80000000u);
    assert_int_equal(lane_bits(lane_div(0.0f, 0.0f)), 0x7fc00000u);
    assert_int_equal(lane_bits(lane_div(inf, inf)), 0x7fc00000u);
    assert_int_equal(lane_bits(lane_div(nan, 1.0f)), 0x7fc00000u);
    assert_int_equal(lane_bits(lane_sqrt(lane_float(0x80000000u))), 0);
    assert_int_equal(lane_bits(lane_sqrt(-1.0f)), 0x7fc00000u);
    assert_int_equal(lane_bits(lane_sqrt(inf)), 0x7f800000u);
    assert_int_equal(lane_bits(lane_erf(inf)), 0x3f800000u);
    assert_int_equal(lane_bits(lane_erf(nan)), 0x7fc00000u);
    assert_int_equal(lane_bits(lane_log1p01(1.0f)), 0x3f317218u);
    assert_int_equal(lane_bits(lane_sigmoid(0.0f)), 0x3f000000u);
}

/* ---- clean ---- */

static void clean_at_the_ends_of_the_domain(void **state)
{
    static const struct {
        uint32_t in, out, flags;
    } row[] = {
        {0x00000000u, 0x00000000u, 0}, {0x80000000u, 0x00000000u, 0},
        {0x00000001u, 0x00000000u, 0}, {0x267fffffu, 0x00000000u, 0},
        {0xa67fffffu, 0x00000000u, 0}, {0x26800000u, 0x26800000u, 0},
        {0xa6800000u, 0xa6800000u, 0}, {0x587fffffu, 0x587fffffu, 0},
        {0x58800000u, 0x58800000u, LANE_RANGE}, {0xd8800000u, 0xd8800000u, LANE_RANGE},
        {0x7f800000u, 0x7f800000u, LANE_RANGE}, {0xff800001u, 0x7fc00000u, LANE_RANGE},
    };

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(row); i++) {
        uint32_t flags = 0;

        assert_int_equal(lane_bits(lane_clean(lane_float(row[i].in), &flags)), row[i].out);
        assert_int_equal(flags, row[i].flags);
    }
}

/* ---- every value of the small formats ---- */

static void bf16_all_values(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint32_t a = h & 0x7fffu;
        uint32_t flags = 0;
        const uint32_t back = lane_bf16(lane_bf16_f32(h), &flags);

        assert_int_equal(lane_bits(lane_bf16_f32(h)), h << 16);
        assert_int_equal(flags, a >= 0x5880u ? LANE_RANGE : 0);
        assert_int_equal(back, a < 0x2680u ? 0 : a > 0x7f80u ? 0x7fc0u : h);
    }
}

/* Between two neighbours: below the middle down, above it up, the middle to the even one. */
static void bf16_rounds_to_nearest_even(void **state)
{
    uint32_t flags = 0;

    (void)state;
    for (uint32_t h = 0x2680u; h < 0x5880u; h++) {
        assert_int_equal(lane_bf16(lane_float(h << 16 | 0x7fffu), &flags), h);
        assert_int_equal(lane_bf16(lane_float(h << 16 | 0x8000u), &flags), h + (h & 1u));
        assert_int_equal(lane_bf16(lane_float(h << 16 | 0x8001u), &flags), h + 1);
    }
    assert_int_equal(flags, 0);
}

/* Value of an e4m3 code by its definition. */
static double e4m3_value(uint32_t code)
{
    const int e = (int)(code >> 3 & 15u), m = (int)(code & 7u);
    const double v = e != 0 ? (1.0 + m / 8.0) * pow2(e - 7) : m * pow2(-9);

    return (code & 0x80u) != 0 ? -v : v;
}

static void e4m3_all_codes(void **state)
{
    uint32_t flags = 0;

    (void)state;
    for (uint32_t c = 0; c < 256; c++) {
        if ((c & 0x7fu) == 0x7fu)
            continue;
        assert_true((double)lane_e4m3_f32(c) == e4m3_value(c));
        assert_int_equal(lane_e4m3_int(c), (int32_t)(e4m3_value(c) * 512.0));
        if (c != 0x80u)                           /* an integer zero has no sign */
            assert_int_equal(lane_e4m3(lane_e4m3_f32(c), &flags), c);
    }
    assert_int_equal(lane_e4m3(lane_float(0x80000000u), &flags), 0x80u);
    assert_int_equal(flags, 0);
    assert_int_equal(lane_e4m3(lane_float(0x7fc00000u), &flags), 0x7fu);
    assert_int_equal(flags, LANE_RANGE);
}

static void e4m3_midpoints_go_to_the_even_code(void **state)
{
    uint32_t flags = 0;

    (void)state;
    for (uint32_t c = 0; c < 0x7e; c++) {
        const float middle = 0.5f * (lane_e4m3_f32(c) + lane_e4m3_f32(c + 1));

        assert_int_equal(lane_e4m3(middle, &flags), c + (c & 1u));
        assert_int_equal(lane_e4m3(lane_float(lane_bits(middle) - 1), &flags), c);
        assert_int_equal(lane_e4m3(lane_float(lane_bits(middle) + 1), &flags), c + 1);
        assert_int_equal(lane_e4m3(-middle, &flags), (c + (c & 1u)) | 0x80u);
    }
    assert_int_equal(lane_e4m3(lane_float(0x7f800000u), &flags), 0x7eu);
    assert_int_equal(flags, 0);
}

static void e2m1_all_codes(void **state)
{
    static const float value[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

    (void)state;
    for (uint32_t c = 0; c < 16; c++) {
        const float v = (c & 8u) != 0 ? -value[c & 7u] : value[c & 7u];

        assert_true(lane_e2m1_f32(c) == v);
        assert_int_equal(lane_e2m1_int(c), (int32_t)(v * 2.0f));
        assert_int_equal(lane_e2m1(v), c);        /* -0.0f keeps its sign */
    }
    for (uint32_t c = 0; c < 7; c++) {
        const float middle = 0.5f * (value[c] + value[c + 1]);

        assert_int_equal(lane_e2m1(middle), c + (c & 1u));
        assert_int_equal(lane_e2m1(lane_float(lane_bits(middle) - 1)), c);
        assert_int_equal(lane_e2m1(lane_float(lane_bits(middle) + 1)), c + 1);
    }
    assert_int_equal(lane_e2m1(lane_float(0xff800000u)), 15);
}

static void ue8m0_all_bytes(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 255; b++) {
        const float v = lane_ue8m0_f32(b);

        assert_true((double)v == pow2((int)b - 127));
        if (b == 0)
            continue;
        assert_int_equal(lane_ue8m0_ceil(v), b);
        assert_int_equal(lane_ue8m0_ceil(lane_float(lane_bits(v) + 1)), b + 1);
        assert_int_equal(lane_bits(lane_pow2((int32_t)b - 127)), lane_bits(v));
    }
    assert_int_equal(lane_bits(lane_ue8m0_f32(255)), 0x7fc00000u);
}

/* ---- integers ---- */

static void i32_near_the_rounding_limits(void **state)
{
    golden g = golden_begin(4);

    (void)state;
    for (int32_t d = -70000; d <= 70000; d++) {
        assert_true(lane_i32_f32((1 << 24) + d) == (float)((1 << 24) + d));
        assert_true(lane_i32_f32(-(1 << 25) + d) == (float)(-(1 << 25) + d));
        assert_true(lane_i32_f32(88080384 + d) == (float)(88080384 + d));
    }
    for (int i = 0; i < 100000; i++) {
        const int32_t v = (int32_t)(golden_u32(&g) >> 1) - (1 << 30);

        assert_true(lane_i32_f32(v) == (float)v);
    }
}

static void mul_high_is_exact(void **state)
{
    golden g = golden_begin(5);

    (void)state;
    for (int i = 0; i < 100000; i++) {
        const uint32_t a = golden_u32(&g), b = golden_u32(&g);
        const uint64_t product = (uint64_t)a * b;

        assert_int_equal(lane_mul_high(a, b), product >> 32);
        assert_int_equal(lane_mul_low(a, b), product & 0xffffffffu);
    }
    assert_int_equal(lane_mul_high(UINT32_MAX, UINT32_MAX), 0xfffffffeu);
}

static void key_orders_scores(void **state)
{
    uint32_t flags = 0, last = 0;

    (void)state;
    for (uint32_t h = 0x5880u; h-- > 0x2680u;) {              /* negative, descending magnitude */
        const uint32_t key = lane_key_high(lane_bf16_f32(h | 0x8000u), &flags);

        assert_true(key > last);
        last = key;
    }
    assert_true(lane_key_high(0.0f, &flags) > last);
    last = lane_key_high(lane_float(0x80000000u), &flags);
    assert_int_equal(last, lane_key_high(0.0f, &flags));
    for (uint32_t h = 0x2680u; h < 0x5880u; h++) {
        const uint32_t key = lane_key_high(lane_bf16_f32(h), &flags);

        assert_true(key > last);
        last = key;
    }
    assert_int_equal(flags, 0);
    assert_true(lane_key_low(3) > lane_key_low(4));
    assert_int_equal(lane_key_high(lane_float(0x7fc00000u), &flags), 0);
    assert_int_equal(flags, LANE_RANGE);
}

/* Known answers of the Random123 library. */
static void philox_known_answers(void **state)
{
    static const struct {
        struct lane_philox counter;
        uint32_t key[2];
        struct lane_philox out;
    } row[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u},
         {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u},
         {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
    };

    (void)state;
    for (size_t i = 0; i < ISO_COUNT_OF(row); i++) {
        const struct lane_philox out = lane_philox4x32(row[i].counter, row[i].key[0],
                                                       row[i].key[1]);

        assert_memory_equal(&out, &row[i].out, sizeof out);
    }
}

static void sincos_simple_angles(void **state)
{
    float s, c;
    int slow;

    (void)state;
    assert_true(lane_sincos(0.0f, &s, &c, &slow));
    assert_int_equal(lane_bits(s), 0);
    assert_int_equal(lane_bits(c), 0x3f800000u);
    assert_true(lane_sincos(1.0f, &s, &c, &slow));
    assert_int_equal(lane_bits(s), 0x3f576aa4u);
    assert_int_equal(lane_bits(c), 0x3f0a5140u);
    assert_true(lane_sincos(-1.0f, &s, &c, &slow));
    assert_int_equal(lane_bits(s), 0xbf576aa4u);
    assert_int_equal(lane_bits(c), 0x3f0a5140u);
    assert_true(lane_sincos(0x1p-50f, &s, &c, &slow));
    assert_int_equal(lane_bits(s), 0x26800000u);
    assert_int_equal(lane_bits(c), 0x3f800000u);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_match_golden),
        cmocka_unit_test(div_matches_golden),
        cmocka_unit_test(formats_match_golden),
        cmocka_unit_test(special_values),
        cmocka_unit_test(clean_at_the_ends_of_the_domain),
        cmocka_unit_test(bf16_all_values),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(e4m3_all_codes),
        cmocka_unit_test(e4m3_midpoints_go_to_the_even_code),
        cmocka_unit_test(e2m1_all_codes),
        cmocka_unit_test(ue8m0_all_bytes),
        cmocka_unit_test(i32_near_the_rounding_limits),
        cmocka_unit_test(mul_high_is_exact),
        cmocka_unit_test(key_orders_scores),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(sincos_simple_angles),
    };

    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
