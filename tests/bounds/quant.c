/* Quantisers and their inverse: equal to a search. Scales are found by trying powers of two, codes
 * by comparing with every value of the format, ties to the even code; all quotients by powers of
 * two are exact in double. The e4m3 scale of quant_nvfp4 is the code nearest to m / 6, decided by
 * comparing m with 6 * value (exact); its codes by comparing |x| with 4-bit values times s (exact).
 */
#include "tests/bounds/bounds.h"

static double largest(const double *x, int64_t n)
{
    double max = 0.0;

    for (int64_t i = 0; i < n; i++)
        max = fabs(x[i]) > max ? fabs(x[i]) : max;
    return max;
}

static uint32_t code_bits(double x) { return signbit(x) ? 1u : 0u; }

/* Smallest k >= floor with limit * 2^k >= m. */
static int scale_exponent(double m, double limit, int floor)
{
    int k = floor;

    while (ldexp(limit, k) < m)
        k++;
    return k;
}

void bounds_quant_fp8(bounds_case *c)
{
    const iso_quant_params *params = (const void *)c->call.params;
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t dim = iso_desc_last(desc), group = params->group;
    const int64_t groups = (dim + group - 1) / group;
    const int64_t per_row = desc->extent[0] != 0 ? iso_desc_rows(desc) / desc->extent[0] : 0;
    const double *x = bounds_decode(c, 0);

    for (int64_t g = 0; g < c->rows * per_row * groups; g++) {
        const int64_t begin = g / groups * dim + g % groups * group;
        const int64_t left = dim - g % groups * group, count = left < group ? left : group;
        const int k = scale_exponent(largest(x + begin, count), 448.0, -22);

        bounds_same_bits(c, 1, (uint64_t)g, (uint32_t)(k + 127));
        for (int64_t i = begin; i < begin + count; i++) {
            const uint32_t code = bounds_nearest(bounds_e4m3, 127, fabs(ldexp(x[i], -k)));

            bounds_same_bits(c, 0, (uint64_t)i, code | code_bits(x[i]) << 7);
        }
    }
}

void bounds_quant_mxfp4(bounds_case *c)
{
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t per_row = desc->extent[0] != 0 ? iso_desc_elems(desc) / desc->extent[0] : 0;
    const double *x = bounds_decode(c, 0);

    for (int64_t g = 0; g < c->rows * per_row / 32; g++) {
        const int k = scale_exponent(largest(x + g * 32, 32), 6.0, -41);

        bounds_same_bits(c, 1, (uint64_t)g, (uint32_t)(k + 127));
        for (int64_t i = g * 32; i < g * 32 + 32; i++) {
            const uint32_t code = bounds_nearest(bounds_e2m1, 8, fabs(ldexp(x[i], -k)));

            bounds_same_bits(c, 0, (uint64_t)i, code | code_bits(x[i]) << 3);
        }
    }
}

static double six_times_e4m3(uint32_t code) { return 6.0 * bounds_e4m3(code); }

/* The code whose value times s is nearest. */
static uint32_t nearest_scaled(double magnitude, double s)
{
    uint32_t best = 0;

    for (uint32_t code = 1; code < 8; code++) {
        const double d = fabs(bounds_e2m1(code) * s - magnitude);
        const double least = fabs(bounds_e2m1(best) * s - magnitude);

        if (d < least || (d == least && code % 2 == 0))
            best = code;
    }
    return best;
}

void bounds_quant_nvfp4(bounds_case *c)
{
    const iso_tensor_desc *desc = &c->call.in[0];
    const int64_t per_row = desc->extent[0] != 0 ? iso_desc_elems(desc) / desc->extent[0] : 0;
    const double *x = bounds_decode(c, 0);

    for (int64_t g = 0; g < c->rows * per_row / 16; g++) {
        const double m = largest(x + g * 16, 16), least = 6.0 * 0x1p-9;
        const uint32_t scale = bounds_nearest(six_times_e4m3, 127, m > least ? m : least);

        bounds_same_bits(c, 1, (uint64_t)g, scale);
        for (int64_t i = g * 16; i < g * 16 + 16; i++)
            bounds_same_bits(c, 0, (uint64_t)i, nearest_scaled(fabs(x[i]), bounds_e4m3(scale))
                                                    | code_bits(x[i]) << 3);
    }
}

/* Products are exact; what is below 2^-50, and a zero of either sign, is +0. */
void bounds_dequant(bounds_case *c)
{
    const iso_tensor_desc *code = &c->call.in[0];
    const int64_t group = iso_desc_last(code) / iso_desc_last(&c->call.in[1]);
    const int64_t per_row = code->extent[0] != 0 ? iso_desc_elems(code) / code->extent[0] : 0;

    for (int64_t i = 0; i < c->rows * per_row; i++) {
        const double value = bounds_in(c, 0, (uint64_t)i) * bounds_in(c, 1, (uint64_t)(i / group));
        const float stored = fabs(value) < (double)BOUNDS_TAU ? 0.0f : (float)value;
        uint32_t bits;

        memcpy(&bits, &stored, sizeof bits);
        bounds_same_bits(c, 0, (uint64_t)i, bits >> 16);
    }
}
