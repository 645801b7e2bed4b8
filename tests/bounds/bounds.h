/* bounds: every operator against a long double evaluation of its formula (the model and Engram
 * specifications, not the references), over the operator's own cases.
 *
 * Float outputs must lie within a bound that is derived, not chosen: each evaluation carries the
 * error of the binary32 steps that numerics prescribes. Integer, move and selection operators must
 * be equal to a naive implementation. Notation of the derivations, after Higham:
 *   u = 2^-24 (binary32), v = 2^-8 (bf16): one rounding is a factor 1 + d with |d| <= u or v;
 *   g(n) = n u / (1 - n u): n roundings in a row;   t = 2^-50: what clean replaces by zero.
 * long double errors (2^-64 per step) are far below a thousandth of any bound and are left out. */
#ifndef ISO_TESTS_BOUNDS_H
#define ISO_TESTS_BOUNDS_H

#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/rows.h"

#include <math.h>

typedef long double real;

#define BOUNDS_U 0x1p-24L
#define BOUNDS_V 0x1p-8L
#define BOUNDS_TAU 0x1p-50L
/* Largest error of a function of numerics 9 of `ulps` ulp, as a factor: one ulp is at most 2 u. */
#define BOUNDS_ULPS(ulps) ((ulps) * 2.0L * BOUNDS_U)

enum { BOUNDS_TEMPS = 12 };

typedef struct bounds_score {
    uint64_t cases, skipped;         /* skipped: flags expected, outputs undefined */
    uint64_t near_values, same_values, failures;
    real worst;                      /* error / bound */
    char worst_case[48];
} bounds_score;

typedef struct bounds_case {
    const iso_case *test;
    iso_op_call call;
    void *in[ISO_OP_INPUTS_MAX], *out[ISO_OP_OUTPUTS_MAX];
    unsigned char *before;           /* UPDATE: input 0 before the run; out[0] is it afterwards */
    uint32_t rows;                   /* live leading rows of the call (iso_live of its args) */
    double *temp[BOUNDS_TEMPS];      /* released after the case */
    uint64_t temp_bytes[BOUNDS_TEMPS];
    uint32_t temp_count;
    bounds_score *score;
} bounds_case;

typedef void bounds_fn(bounds_case *c);

/* ---- operands, as numbers ---- */

/* Element `index` of a tensor with this dtype: floats, codes and scales as real values, integers as
 * they are. Written from numerics 2.1, not from the lane headers. */
double bounds_value(iso_dtype dtype, const void *data, uint64_t index);
double bounds_in(const bounds_case *c, uint32_t input, uint64_t index);
double bounds_out(const bounds_case *c, uint32_t output, uint64_t index);
int64_t bounds_int(const bounds_case *c, uint32_t input, uint64_t index);
/* All elements of an input. */
double *bounds_decode(bounds_case *c, uint32_t input);
double *bounds_temp(bounds_case *c, uint64_t count);
int64_t bounds_extent(const bounds_case *c, uint32_t input, uint32_t axis);
bool bounds_has(const bounds_case *c, uint32_t input);
/* The four float formats by their definition: value of a code, and the nearest code, ties even. */
double bounds_e4m3(uint32_t code);
double bounds_e2m1(uint32_t code);
uint32_t bounds_nearest(double (*value)(uint32_t), uint32_t codes, double magnitude);

/* ---- comparing ---- */

/* The output element is `exact` up to `bound`. */
void bounds_near(bounds_case *c, uint32_t output, uint64_t index, real exact, real bound);
/* The same for a number that is no output element but follows from one. */
void bounds_close(bounds_case *c, uint64_t index, real got, real exact, real bound);
/* The value before it is stored is `exact` up to `error`; storing cleans, and rounds to bf16. */
void bounds_stored(bounds_case *c, uint32_t output, uint64_t index, real exact, real error);
void bounds_same(bounds_case *c, uint32_t output, uint64_t index, int64_t expected);
/* The bits of an element: a code, a moved value. */
void bounds_same_bits(bounds_case *c, uint32_t output, uint64_t index, uint32_t expected);
/* Bytes of an UPDATE operator's state. */
void bounds_same_bytes(bounds_case *c, const void *expected, uint64_t bytes);

/* ---- roundings ---- */

real bounds_gamma(real n);
/* Roundings that a term meets at most in numerics 6.1 (K terms) and in row_sum (n terms). */
real bounds_dot_depth(int64_t k);
real bounds_row_depth(int64_t n);
/* 1 / sqrt(mean of x^2 + eps), and a bound of the relative error of mean_rsqrt (norm.c). */
real bounds_mean_rsqrt(const double *x, int64_t n, real eps);
real bounds_mean_rsqrt_error(int64_t n);
/* sigmoid, softplus by formula. */
real bounds_sigmoid(real x);
real bounds_softplus(real x);

/* Best first: higher score, then lower index. */
typedef struct bounds_ranked {
    double score;
    int64_t index;
} bounds_ranked;
void bounds_sort_best(bounds_ranked *list, size_t count);

/* ---- one function per operator ---- */

#define OP(name, inputs, outputs, params, flags) bounds_fn bounds_##name;
#include "ggml-style-ops/ops.def"
#undef OP

#endif
