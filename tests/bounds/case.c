#include "tests/bounds/bounds.h"

#include "core/alloc.h"

/* ---- formats ---- */

double bounds_e4m3(uint32_t code)
{
    const int exponent = (int)(code >> 3 & 15u), mantissa = (int)(code & 7u);
    const double magnitude = exponent == 0 ? ldexp(mantissa, -9)
                                           : ldexp(8 + mantissa, exponent - 10);

    return (code & 0x80u) != 0 ? -magnitude : magnitude;
}

double bounds_e2m1(uint32_t code)
{
    static const double magnitude[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

    return (code & 8u) != 0 ? -magnitude[code & 7u] : magnitude[code & 7u];
}

uint32_t bounds_nearest(double (*value)(uint32_t), uint32_t codes, double magnitude)
{
    uint32_t best = 0;

    for (uint32_t code = 1; code < codes; code++) {
        const double d = fabs(value(code) - magnitude), least = fabs(value(best) - magnitude);

        if (d < least || (d == least && code % 2 == 0))
            best = code;
    }
    return best;
}

static double f32_value(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

double bounds_value(iso_dtype dtype, const void *data, uint64_t i)
{
    const uint8_t *bytes = data;

    switch (dtype) {
    case ISO_DTYPE_F32:
        return f32_value(((const uint32_t *)data)[i]);
    case ISO_DTYPE_BF16:
        return f32_value((uint32_t)((const uint16_t *)data)[i] << 16);
    case ISO_DTYPE_E4M3:
        return bounds_e4m3(bytes[i]);
    case ISO_DTYPE_E2M1:
        return bounds_e2m1((uint32_t)bytes[i / 2] >> 4 * (i % 2));
    case ISO_DTYPE_UE8M0:
        return ldexp(1.0, bytes[i] - 127);
    case ISO_DTYPE_U8:
        return bytes[i];
    case ISO_DTYPE_I8:
        return ((const int8_t *)data)[i];
    case ISO_DTYPE_I32:
        return ((const int32_t *)data)[i];
    case ISO_DTYPE_U32:
        return ((const uint32_t *)data)[i];
    default:
        ISO_ASSERT(false && "no number");
        return 0.0;
    }
}

double bounds_in(const bounds_case *c, uint32_t input, uint64_t index)
{
    return bounds_value(c->call.in[input].dtype, c->in[input], index);
}

double bounds_out(const bounds_case *c, uint32_t output, uint64_t index)
{
    return bounds_value(c->call.out[output].dtype, c->out[output], index);
}

int64_t bounds_int(const bounds_case *c, uint32_t input, uint64_t index)
{
    return (int64_t)bounds_in(c, input, index);              /* 32 bits: exact in double */
}

int64_t bounds_extent(const bounds_case *c, uint32_t input, uint32_t axis)
{
    return c->call.in[input].extent[axis];
}

bool bounds_has(const bounds_case *c, uint32_t input)
{
    return iso_desc_present(&c->call.in[input]);
}

double *bounds_temp(bounds_case *c, uint64_t count)
{
    double *data = iso_alloc_zero((size_t)count + 1, sizeof *data, "bounds");

    ISO_ASSERT(data != NULL && c->temp_count < BOUNDS_TEMPS);
    c->temp[c->temp_count] = data;
    c->temp_bytes[c->temp_count++] = (count + 1) * sizeof *data;
    return data;
}

double *bounds_decode(bounds_case *c, uint32_t input)
{
    const uint64_t count = (uint64_t)iso_desc_elems(&c->call.in[input]);
    double *data = bounds_temp(c, count);

    for (uint64_t i = 0; i < count; i++)
        data[i] = bounds_in(c, input, i);
    return data;
}

/* ---- comparing ---- */

static void fail(bounds_case *c, uint32_t output, uint64_t index, const char *text)
{
    enum { SHOWN = 5 };

    if (c->score->failures++ < SHOWN)
        printf("FAIL %s/%s: output %u [%llu]: %s\n", c->call.op->name, c->test->name, output,
               (unsigned long long)index, text);
}

static void compare(bounds_case *c, uint32_t output, uint64_t index, const real value[3])
{
    const real got = value[0], exact = value[1], bound = value[2], error = fabsl(got - exact);
    const real ratio = error == 0.0L ? 0.0L : bound > 0.0L ? error / bound : 0x1p100L;
    char text[160];

    c->score->near_values++;
    if (!(ratio <= c->score->worst)) {
        c->score->worst = ratio;
        snprintf(c->score->worst_case, sizeof c->score->worst_case, "%s", c->test->name);
    }
    if (ratio <= 1.0L)
        return;
    snprintf(text, sizeof text, "%.9Lg, exact %.12Lg, error %.3Lg, bound %.3Lg", got, exact, error,
             bound);
    fail(c, output, index, text);
}

void bounds_near(bounds_case *c, uint32_t output, uint64_t index, real exact, real bound)
{
    compare(c, output, index, (real[]){(real)bounds_out(c, output, index), exact, bound});
}

void bounds_close(bounds_case *c, uint64_t index, real got, real exact, real bound)
{
    compare(c, 0, index, (real[]){got, exact, bound});
}

void bounds_stored(bounds_case *c, uint32_t output, uint64_t index, real exact, real error)
{
    const bool is_bf16 = c->call.out[output].dtype == ISO_DTYPE_BF16;
    const real size = fabsl(exact) + error;
    const real flushed = fabsl(exact) - error < BOUNDS_TAU ? BOUNDS_TAU : 0.0L;

    bounds_near(c, output, index, exact, error + (is_bf16 ? BOUNDS_V * size : 0.0L) + flushed);
}

void bounds_same(bounds_case *c, uint32_t output, uint64_t index, int64_t expected)
{
    const int64_t got = (int64_t)bounds_out(c, output, index);
    char text[96];

    c->score->same_values++;
    if (got == expected)
        return;
    snprintf(text, sizeof text, "%lld, expected %lld", (long long)got, (long long)expected);
    fail(c, output, index, text);
}

static uint32_t bits_at(iso_dtype dtype, const void *data, uint64_t i)
{
    const uint32_t bytes = iso_dtype_block_bytes(dtype);
    uint32_t bits = 0;

    if (dtype == ISO_DTYPE_E2M1)
        return (uint32_t)((const uint8_t *)data)[i / 2] >> 4 * (i % 2) & 15u;
    memcpy(&bits, (const uint8_t *)data + i * bytes, bytes); /* little-endian, at most 4 */
    return bits;
}

void bounds_same_bits(bounds_case *c, uint32_t output, uint64_t index, uint32_t expected)
{
    const uint32_t got = bits_at(c->call.out[output].dtype, c->out[output], index);
    char text[96];

    c->score->same_values++;
    if (got == expected)
        return;
    snprintf(text, sizeof text, "%x, expected %x", got, expected);
    fail(c, output, index, text);
}

void bounds_same_bytes(bounds_case *c, const void *expected, uint64_t bytes)
{
    const unsigned char *got = c->out[0], *wanted = expected;

    for (uint64_t i = 0; i < bytes; i++) {
        c->score->same_values++;
        if (got[i] != wanted[i]) {
            fail(c, 0, i, "a byte of the state differs");
            return;
        }
    }
}

/* ---- roundings ---- */

real bounds_gamma(real n) { return n * BOUNDS_U / (1.0L - n * BOUNDS_U); }

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* A chunk of 128 starts at its first term: 127 adds; 8 chunks: 7 adds; segments: one less. */
real bounds_dot_depth(int64_t k)
{
    const int64_t chunks = ceil_div(k, 128);

    return (real)(least(k, 128) - 1 + least(chunks, 8) - 1 + ceil_div(chunks, 8) - 1);
}

/* 32 lanes, a tree of 5, segments of 4096. */
real bounds_row_depth(int64_t n)
{
    return (real)(ceil_div(least(n, 4096), 32) - 1 + 5 + ceil_div(n, 4096) - 1);
}

real bounds_sigmoid(real x) { return 1.0L / (1.0L + expl(-x)); }
real bounds_softplus(real x) { return (x > 0.0L ? x : 0.0L) + log1pl(expl(-fabsl(x))); }

static int compare_best(const void *a, const void *b)
{
    const bounds_ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void bounds_sort_best(bounds_ranked *list, size_t count)
{
    qsort(list, count, sizeof *list, compare_best);
}
