/* lane_exhaustive: the lane functions over all their inputs.  lane_exhaustive NAME [STEP]
 * looks at every STEP-th input (default 1: all; minutes each); without arguments it lists the
 * names. Accuracy is against binary64 libm, whose error is far below 2^-20 ulp of binary32. Exit
 * status 0: as numerics.md says; 1: not; 2: no such test. */
#include "core/check.h"
#include "ggml-style-ops/lane/erf.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/lane/i32.h"
#include "ggml-style-ops/lane/key64.h"
#include "ggml-style-ops/lane/log1p.h"
#include "ggml-style-ops/lane/sincos.h"
#include "ggml-style-ops/quant.h"
#include "tests/unit/golden.h"

#include <inttypes.h>
#include <math.h>

static int failures;
static uint64_t step = 1;

static void report(const char *what, uint64_t count, uint64_t bad)
{
    printf("%-66s n=%" PRIu64 " bad=%" PRIu64 "\n", what, count, bad);
    failures += bad != 0;
}

/* ---- accuracy ---- */

typedef float fn32(float);
typedef double fn64(double);

static double softplus64(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

static double sigmoid64(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double ulp32(double y)
{
    int e;

    frexp(y, &e);
    return ldexp(1.0, e - 24 < -149 ? -149 : e - 24);
}

/* Largest error in ulp over the inputs first .. last (bit patterns); at most `limit`. */
static void accuracy(const char *name, fn32 *f, fn64 *exact, uint64_t first, uint64_t last,
                     double limit)
{
    double worst = 0;
    uint64_t count = 0, at = 0;

    for (uint64_t i = first; i <= last; i += step) {
        const float x = lane_float((uint32_t)i);
        const double want = exact((double)x);
        double e;

        if (fabs(want) < 0x1p-126 || fabs(want) >= 0x1.ffffffp+127)
            continue;
        e = fabs((double)f(x) - want) / ulp32(want);
        if (!(e <= worst)) {
            worst = e;
            at = i;
        }
        count++;
    }
    printf("%-9s %08" PRIx64 "..%08" PRIx64 " n=%" PRIu64 " largest error %.4f ulp (limit %.2f) at "
           "%08" PRIx64 "\n", name, first, last, count, worst, limit, at);
    failures += !(worst <= limit);
}

static float f_exp(float x) { return lane_exp(x); }
static float f_log1p(float x) { return lane_log1p01(x); }
static float f_softplus(float x) { return lane_softplus(x); }
static float f_sigmoid(float x) { return lane_sigmoid(x); }
static float f_erf(float x) { return lane_erf(x); }

/* Underflow to +0, overflow, infinities, NaN. */
static void exp_specials(void)
{
    uint64_t bad = 0, count = 0;

    for (uint64_t i = 0; i <= UINT32_MAX; i += step) {
        const uint32_t u = (uint32_t)i, a = u & 0x7fffffffu;
        const double y = a > 0x7f800000u ? 1 : exp((double)lane_float(u));
        uint32_t want = 0x7fc00000u;

        if (a < 0x42a00000u)
            continue;
        if (a <= 0x7f800000u) {
            if (y >= 0x1p-126 && y <= 0x1.fffffefffffffp+127)
                continue;
            want = y < 0x1p-126 ? 0 : 0x7f800000u;
        }
        count++;
        bad += lane_bits(lane_exp(lane_float(u))) != want;
    }
    report("exp: underflow, overflow, infinities, NaN", count, bad);
}

static void test_exp(void)
{
    accuracy("exp", f_exp, exp, 0, 0x42b20000u, 0.71);
    accuracy("exp", f_exp, exp, 0x80000000u, 0xc2b00000u, 0.71);
    exp_specials();
}

static void test_log1p(void)
{
    accuracy("log1p01", f_log1p, log1p, 0x00800000u, 0x3f800000u, 1.39);
}

static void test_softplus(void)
{
    accuracy("softplus", f_softplus, softplus64, 0, 0x43000000u, 1.71);
    accuracy("softplus", f_softplus, softplus64, 0x80000000u, 0xc2ae0000u, 1.71);
}

static void test_sigmoid(void)
{
    accuracy("sigmoid", f_sigmoid, sigmoid64, 0, 0x42ae0000u, 2.41);
    accuracy("sigmoid", f_sigmoid, sigmoid64, 0x80000000u, 0xc2ae0000u, 2.41);
}

static void test_erf(void)
{
    accuracy("erf", f_erf, erf, LANE_CLEAN_MIN, 0x40a00000u, 1.47);
}

/* to_bf16(gelu(x)) equals the formula with libm's erff, for every bf16 of the domain. */
static void test_gelu(void)
{
    uint64_t bad = 0, count = 0;
    uint32_t flags = 0;

    for (uint32_t h = 0; h < 0x10000; h++) {
        const float x = lane_bf16_f32(h), t = x * lane_float(0x3f3504f3u);
        const float one = 1.0f + erff(t), half = 0.5f * x;

        if ((h & 0x7fffu) < 0x2680u || (h & 0x7fffu) >= ISO_BF16_OUTSIDE)
            continue;
        count++;
        bad += lane_bf16(lane_gelu(x), &flags) != lane_bf16(half * one, &flags);
    }
    report("gelu: every bf16 of the domain against libm's erff", count, bad);
}

/* ---- division and square root against the processor ---- */

static float no_subnormal(float x)
{
    return (lane_bits(x) & 0x7f800000u) != 0 ? x : lane_float(lane_bits(x) & 0x80000000u);
}

static uint32_t canonical(float y)
{
    const uint32_t u = lane_bits(y);

    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc00000u;
    return (u & 0x7f800000u) != 0 ? u : u & 0x80000000u;
}

static void test_sqrt(void)
{
    uint64_t bad = 0, count = 0;

    for (uint64_t i = 0; i <= UINT32_MAX; i += step, count++) {
        const float x = lane_float((uint32_t)i);
        const uint32_t want = canonical(sqrtf(no_subnormal(x)));

        bad += lane_bits(lane_sqrt(x)) != (want == 0x80000000u ? 0 : want);
    }
    report("sqrt: all inputs against the processor", count, bad);
}

/* The definition rounds to 24 bits first, then replaces results below 2^-126 by zero. */
static uint32_t ieee_div(float a, float b)
{
    uint32_t u;

    a = no_subnormal(a);
    b = no_subnormal(b);
    u = canonical(a / b);
    if ((u & 0x7fffffffu) == 0x00800000u
        && fabs((double)a / (double)b) < 0x1p-126 * (1.0 - 0x1p-25))
        u &= 0x80000000u;
    return u;
}

/* A pair of operands of one of six kinds. */
static void div_operands(golden *g, uint64_t i, uint32_t *ua, uint32_t *ub)
{
    double middle;

    *ua = golden_u32(g);
    *ub = golden_u32(g);
    switch (i % 8) {
    case 1:                                       /* both in [1, 2) */
        *ua = (*ua & 0x807fffffu) | 0x3f800000u;
        *ub = (*ub & 0x807fffffu) | 0x3f800000u;
        break;
    case 2:                                       /* reciprocals */
        *ua = 0x3f800000u;
        break;
    case 3:                                       /* quotients next to a midpoint */
        *ub = (*ub & 0x7fffffu) | 0x3f800000u;
        middle = (double)lane_float((*ua & 0x7fffffu) | 0x3f800000u) + 0x1p-24;
        *ua = lane_bits((float)((double)lane_float(*ub) * middle));
        break;
    case 4:                                       /* results near the underflow limit */
        *ua = (*ua & 0x00ffffffu) | 0x01000000u;
        *ub = (*ub & 0x01ffffffu) | 0x3f000000u;
        break;
    default:
        break;
    }
}

static void test_div(void)
{
    const uint64_t count = 1500000000u / step;
    golden g = golden_begin(1);
    uint64_t bad = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t ua, ub;

        div_operands(&g, i, &ua, &ub);
        bad += lane_bits(lane_div(lane_float(ua), lane_float(ub)))
            != ieee_div(lane_float(ua), lane_float(ub));
    }
    report("div: random, near ties, underflow, against the processor", count, bad);
}

/* The error e of the reciprocal estimate over all 2^23 divisors. Then the first quotient is off by
 * at most 2^24 (e + 2^-22) + 1 < 32, so the remainder fits in 31 bits, and the second digit leaves
 * an error of at most one, which the two corrections remove: the division is proved. */
static void test_reciprocal(void)
{
    double worst = 0;

    for (uint32_t m = 1u << 23; m < 1u << 24; m++) {
        const double e = fabs((double)lane_reciprocal_estimate((float)(int32_t)m) * m - 1);

        worst = e > worst ? e : worst;
    }
    printf("reciprocal estimate, all divisors: relative error at most 2^%.2f\n", log2(worst));
    failures += !(log2(worst) <= -22.69 + 0.005);
}

/* ---- formats ---- */

/* Nearest value with `bits` fraction bits, ties to even, exponents from `least` on. */
static double nearest(double v, int bits, int least)
{
    double unit;
    int e;

    if (v == 0)
        return v;
    frexp(v, &e);
    e = e - 1 < least ? least : e - 1;
    unit = ldexp(1.0, e - bits);
    return nearbyint(v / unit) * unit;
}

static double nearest_e2m1(double a)              /* a >= 0 */
{
    if (a > 6)
        return 6;
    if (a < 1)
        return nearbyint(a * 2) / 2;
    return nearest(a, 1, 0) > 6 ? 6 : nearest(a, 1, 0);
}

static void test_formats(void)
{
    uint64_t bad[4] = {0}, count = 0;

    for (uint64_t i = 0; i <= 0x7f800000u; i += step, count++) {
        const float v = lane_float((uint32_t)i);
        const double a = (double)v > 448 ? 448 : (double)v;
        uint32_t flags = 0;
        const uint32_t c8 = lane_e4m3(v, &flags), c4 = lane_e2m1(v);

        bad[0] += (double)lane_e4m3_f32(c8) != nearest(a, 3, -6);
        bad[1] += (double)lane_e2m1_f32(c4) != nearest_e2m1(a);
        bad[2] += lane_e4m3(-v, &flags) != (c8 | 0x80u) || lane_e2m1(-v) != (c4 | 8u);
        bad[2] += flags != 0;
        if (i < 0x7f000000u)
            bad[3] += (double)lane_bf16_f32(lane_bf16(v, &flags))
                   != ((double)v < 0x1p-50 ? 0 : nearest((double)v, 7, -126));
    }
    report("e4m3: every f32 >= 0 against binary64 rounding", count, bad[0]);
    report("e2m1: every f32 >= 0 against binary64 rounding", count, bad[1]);
    report("e4m3, e2m1: symmetric in the sign", count, bad[2]);
    report("bf16: every f32 in [0, 2^127)", count, bad[3]);
}

static void test_i32(void)
{
    uint64_t bad = 0, count = 0;

    for (int64_t i = -INT32_MAX; i <= INT32_MAX; i += (int64_t)step, count++)
        bad += lane_bits(lane_i32_f32((int32_t)i)) != lane_bits((float)(double)i);
    report("int32 to f32: split form against one rounding", count, bad);
}

static void test_keys(void)
{
    const uint32_t zero = 0x80000000u;
    uint32_t last = 0, flags = 0;
    uint64_t bad = 0, count = 0;

    for (int64_t i = -(int64_t)LANE_CLEAN_MAX + 1; i < (int64_t)LANE_CLEAN_MAX;
         i += (int64_t)step, count++) {
        const uint32_t u = i < 0 ? 0x80000000u | (uint32_t)-i : (uint32_t)i;
        const uint32_t key = lane_key_high(lane_float(u), &flags);
        const bool is_zero = (u & 0x7fffffffu) < LANE_CLEAN_MIN;

        bad += is_zero ? key != zero || last > key : key <= last;
        last = key;
    }
    report("keys: strictly increasing over the domain, all zeros equal", count, bad + flags);
}

/* ---- quantisers ---- */

static int32_t q8_exponent(uint32_t m) { return iso_scale_exponent(m, 135, 96, -22); }
static int32_t q4i_exponent(uint32_t m) { return iso_scale_exponent(m, 129, 64, -41); }

/* Smallest k >= floor with limit * 2^k >= a. */
static int32_t exact_exponent(double limit, int32_t floor, double a)
{
    int32_t k = floor;

    while (ldexp(limit, k) < a)
        k++;
    return k;
}

static void test_scales(void)
{
    const float least8 = lane_float(0x38d1b717u);                /* 1e-4 */
    uint64_t count = 0, bad[6] = {0};
    uint32_t flags = 0;

    for (uint32_t m = 0; m < ISO_BF16_OUTSIDE; m++) {
        const float a = lane_bf16_f32(m), f8 = a < least8 ? least8 : a;
        const float f4 = a < 0x1.8p-39f ? 0x1.8p-39f : a, fk = a < 0x1.8p-7f ? 0x1.8p-7f : a;
        uint32_t s;

        if (m != 0 && m < 0x2680u)
            continue;
        count++;
        bad[0] += q8_exponent(m) + 127 != (int32_t)lane_ue8m0_ceil(f8 * lane_float(0x3b124925u));
        bad[1] += q8_exponent(m) != exact_exponent(448, -22, (double)f8);
        bad[2] += q4i_exponent(m) + 127 != (int32_t)lane_ue8m0_ceil(f4 * lane_float(0x3e2aaaabu));
        bad[3] += q4i_exponent(m) != exact_exponent(6, -41, (double)f4);
        s = lane_e4m3(lane_div(fk, 6.0f), &flags);
        bad[4] += (double)lane_e4m3_f32(s) != nearest(fmin((double)fk / 6, 448), 3, -6);
        bad[5] += s != lane_e4m3(fk * lane_float(0x3e2aaaabu), &flags);
    }
    report("Q8 scale: integer rule == ceiling of f32(m * f32(1/448))", count, bad[0]);
    report("Q8 scale: integer rule == exact smallest power of two", count, bad[1]);
    report("Q4i scale: integer rule == ceiling of f32(m * f32(1/6))", count, bad[2]);
    report("Q4i scale: integer rule == exact smallest power of two", count, bad[3]);
    report("Q4kv scale: e4m3(f32(m / 6)) == e4m3(exact m / 6)", count, bad[4]);
    report("Q4kv scale: the same with f32(m * f32(1/6))", count, bad[5]);
}

/* Q4kv code without a division: |x| against threshold * s, all products exact. */
static uint32_t code_by_compare(float a, float s)
{
    return (uint32_t)(a > 0.25f * s) + (a >= 0.75f * s) + (a > 1.25f * s) + (a >= 1.75f * s)
         + (a > 2.5f * s) + (a >= 3.5f * s) + (a > 5.0f * s);
}

/* Codes of one bf16 x under every power of two, and whether their values are exact. */
static uint64_t check_codes(float x, uint64_t bad[3])
{
    uint32_t flags = 0;

    for (int k = -41; k <= 48; k++) {
        const double v = ldexp((double)x, -k), w = fabs(v) > 448 ? copysign(448, v) : v;
        const float p = lane_pow2(-k), scale = lane_pow2(k);
        const uint32_t c8 = lane_e4m3(x * p, &flags), c4 = lane_e2m1(x * p);
        const double v8 = ldexp((double)lane_e4m3_f32(c8), k);
        const double v4 = ldexp((double)lane_e2m1_f32(c4), k);

        bad[0] += (double)lane_e4m3_f32(c8) != nearest(w, 3, -6);
        bad[1] += (double)lane_e2m1_f32(c4) != copysign(nearest_e2m1(fabs(w)), w);
        if (fabs(v8) >= 0x1p-50)
            bad[2] += (double)lane_bf16_f32(lane_bf16(lane_e4m3_f32(c8) * scale, &flags)) != v8;
        if (fabs(v4) >= 0x1p-50)
            bad[2] += (double)lane_bf16_f32(lane_bf16(lane_e2m1_f32(c4) * scale, &flags)) != v4;
    }
    return 90;
}

static void test_codes(void)
{
    uint64_t n = 0, m = 0, bad[3] = {0}, by_compare = 0, by_product = 0;

    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint32_t a = h & 0x7fffu;
        const float x = lane_bf16_f32(h), positive = lane_bf16_f32(a);

        if (h != 0 && (a < 0x2680u || a >= ISO_BF16_OUTSIDE))
            continue;
        n += check_codes(x, bad);
        for (uint32_t code = 1; code <= 0x7e; code++, m++) {
            const float s = lane_e4m3_f32(code);
            const uint32_t want = lane_e2m1(lane_div(positive, s));

            by_compare += want != code_by_compare(positive, s);
            by_product += want != lane_e2m1(positive * lane_div(1.0f, s));
        }
    }
    report("Q8 code: every bf16 x every scale 2^-41 .. 2^48", n, bad[0]);
    report("Q4i code: the same", n, bad[1]);
    report("Q8, Q4i: dequantised values are exactly bf16", n, bad[2]);
    report("Q4kv code: division == exact comparison, bf16 x 126 scales", m, by_compare);
    printf("Q4kv code: x * (1/s), the forbidden form, differs in %" PRIu64 " of %" PRIu64 "\n",
           by_product, m);
    failures += by_product == 0;                  /* the control has to be sharp */
}

/* ---- flush-to-zero ---- */

#if defined(__x86_64__)
#include <xmmintrin.h>
static bool set_flush(bool on)
{
    _mm_setcsr(on ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
    return true;
}
#elif defined(__aarch64__)
static bool set_flush(bool on)
{
    uint64_t r;

    __asm__ volatile("mrs %0, fpcr" : "=r"(r));
    r = on ? r | 1u << 24 : r & ~((uint64_t)1 << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(r));
    return true;
}
#else
static bool set_flush(bool on)
{
    (void)on;
    return false;
}
#endif

static float f_silu(float x) { return lane_silu(x); }
static float f_gelu(float x) { return lane_gelu(x); }
static float f_sqrt(float x) { return lane_sqrt(x); }
static float f_third(float x) { return lane_div(x, 3.0f); }

/* Every value of the domain, cleaned results compared: only those matter to the contract. */
static void test_flush(void)
{
    static const struct {
        const char *name;
        fn32 *f;
    } row[] = {{"exp", f_exp}, {"sigmoid", f_sigmoid}, {"softplus", f_softplus}, {"erf", f_erf},
               {"silu", f_silu}, {"gelu", f_gelu}, {"sqrt", f_sqrt}, {"div by 3", f_third}};
    static float y[4096];

    if (!set_flush(false)) {
        printf("flush: skipped, no flush mode on this machine\n");
        return;
    }
    for (size_t k = 0; k < ISO_COUNT_OF(row); k++) {
        uint64_t bad = 0, count = 0;
        uint32_t flags = 0;

        for (uint64_t i = 0; i <= UINT32_MAX; i += 4096 * step) {
            for (uint32_t j = 0; j < 4096; j++)
                y[j] = row[k].f(lane_clean(lane_float((uint32_t)i + j), &flags));
            set_flush(true);
            for (uint32_t j = 0; j < 4096; j++, count++) {
                const float on = row[k].f(lane_clean(lane_float((uint32_t)i + j), &flags));

                bad += lane_bits(lane_clean(on, &flags)) != lane_bits(lane_clean(y[j], &flags));
            }
            set_flush(false);
        }
        printf("%-9s ", row[k].name);
        report("flush-to-zero on against off", count, bad);
    }
}

/* ---- rotary tables ---- */

static const uint32_t freq[2][32] = {
    {0x3f800000, 0x3f3ff911, 0x3f0ff59a, 0x3ed7e89b, 0x3ea1e89b, 0x3e72d423, 0x3e361887,
     0x3e088d77, 0x3dcccccd, 0x3d99940d, 0x3d6655c2, 0x3d2cba15, 0x3d0186e3, 0x3cc2434f,
     0x3c91ad39, 0x3c5a7bf2, 0x3c23d70a, 0x3bf5b9b0, 0x3bb8449c, 0x3b8a2e77, 0x3b4f3e38,
     0x3b1b690d, 0x3ae91528, 0x3aaec98e, 0x3a83126f, 0x3a44948c, 0x3a136a16, 0x39dd1725,
     0x39a5cb60, 0x3978a815, 0x393a7753, 0x390bd472},
    {0x3f800000, 0x3f300a3a, 0x3ef21c1f, 0x3ea67d01, 0x3e64f92e, 0x3e1d7475, 0x3dd88cb4,
     0x3d94e963, 0x3d4ccccd, 0x3d0cd4fb, 0x3cc1b019, 0x3c8530ce, 0x3c372dbf, 0x3bfbed88,
     0x3bad3d5e, 0x3b6e4237, 0x3b147ae1, 0x3ab714e0, 0x3a5ebdb6, 0x3a0530ce, 0x399bb3af,
     0x39305978, 0x38be904d, 0x383e9b5f, 0x37a3d70c, 0x36b443d0, 0x3677eba6, 0x362a7be8,
     0x35ea77ff, 0x35a13bdc, 0x355dbf30, 0x35187c4d},
};

/* numerics A.2, {plain, yarn} per block of 65536 positions. */
static const uint64_t block_hash[16][2] = {
    {0x687ba95fe588fea2u, 0xb2e6722421839998u}, {0x19eb4d72747a1020u, 0x22a9a95113c50cb1u},
    {0x1716a78b3d649710u, 0xd0cea656cbd6c35fu}, {0x5a37326066f5bc97u, 0xfb21f4768edb1754u},
    {0x87a4502bba2d04e7u, 0x02536ac83c9e72eau}, {0xda3ffc0616e00e8du, 0x38e885b5db4277a8u},
    {0x95735e2cdf0d90a0u, 0xf4ae7a6c63ce2c08u}, {0xd2027aaf4ada9f39u, 0x30194e8d60b2f6ceu},
    {0xacb50245970fba79u, 0x29e47f8cbf321ee7u}, {0xbdc7b3f91b1d543cu, 0x7d8e7d4bd7282418u},
    {0x65994c4c96fe7d2du, 0x4dece46362467f2fu}, {0x6fcedc8a7f396674u, 0xc49a8dc74228e3ddu},
    {0x35430710d9e8565cu, 0x85a0002ee2fcdc31u}, {0xf12cd0948a161bc2u, 0x6511fbeb7d4be19eu},
    {0xbe34429b1a30839du, 0x5b1ab94892771011u}, {0x821574a3a93c12e1u, 0x3157de7165a1cfedu},
};

static void test_rope(void)
{
    static float cosine[65536 * 32], sine[65536 * 32];
    uint64_t bad = 0, slow_count = 0, unproved = 0, blocks = 0;

    for (uint32_t b = 0; b < 16; b += (uint32_t)(step < 16 ? step : 16))
        for (uint32_t which = 0; which < 2; which++, blocks++) {
            golden g = golden_begin(0);

            for (uint32_t i = 0; i < 65536 * 32; i++) {
                const float p = (float)(int32_t)(b * 65536 + i / 32);
                int slow;

                unproved += !lane_sincos(p * lane_float(freq[which][i % 32]), &sine[i],
                                         &cosine[i], &slow);
                slow_count += (uint64_t)slow;
            }
            for (uint32_t i = 0; i < 65536 * 32; i++)
                golden_put_f32(&g, cosine[i]);
            for (uint32_t i = 0; i < 65536 * 32; i++)
                golden_put_f32(&g, sine[i]);
            bad += g.hash != block_hash[b][which];
        }
    printf("rope: the double-double series decided %" PRIu64 " values\n", slow_count);
    report("rope: rounding could not be proved", blocks * 65536 * 64, unproved);
    report("rope: hashes of the blocks of both tables", blocks, bad);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } test[] = {
        {"exp", test_exp}, {"log1p", test_log1p}, {"softplus", test_softplus},
        {"sigmoid", test_sigmoid}, {"erf", test_erf}, {"gelu", test_gelu}, {"sqrt", test_sqrt},
        {"div", test_div}, {"reciprocal", test_reciprocal}, {"formats", test_formats},
        {"i32", test_i32}, {"keys", test_keys}, {"scales", test_scales}, {"codes", test_codes},
        {"flush", test_flush}, {"rope", test_rope},
    };
    bool is_found = false;

    if (argc > 2)
        step = strtoull(argv[2], NULL, 10);
    if (step == 0)
        step = 1;
    for (size_t i = 0; i < ISO_COUNT_OF(test); i++)
        if (argc > 1 && (strcmp(argv[1], test[i].name) == 0 || strcmp(argv[1], "all") == 0)) {
            is_found = true;
            test[i].run();
            fflush(stdout);
        }
    for (size_t i = 0; !is_found && i < ISO_COUNT_OF(test); i++)
        printf("%s\n", test[i].name);
    return !is_found ? 2 : failures != 0;
}
