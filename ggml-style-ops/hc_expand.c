/* hc_expand: the output of a sublayer and the four old streams -> the four new streams.
 *   X'[t,j,d] = post[t,j] u[t,d] + (((c0j x0 + c1j x1) + c2j x2) + c3j x3)
 *   xi = X[t,i,d];  cij = comb[t,i,j]: from source stream i to destination stream j.
 * Shapes:   u bf16 [T,D]; X bf16 [T,4,D]; post f32 [T,4]; comb f32 [T,4,4]; X' as X. T >= 0,
 *           1 <= D <= 2^20.
 * Units:    one token.
 * Order:    numerics 13.3: products rounded, sums in the order of the brackets; one rounding to
 *           bf16, at the end. The products are f32 x bf16: never fused.
 * Ranges:   all inputs in the domain: products are 0 or >= 2^-100 (L1).
 * Params:   none.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/model.py, Block.hc_post. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { U, X, POST, COMB, Y };
enum { STREAMS = 4 };

iso_status iso_hc_expand_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *u = &call->in[U];

    ISO_TRY(iso_rule_input(call, U, "u", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_within(call, U, "u", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, X, "X", ISO_DTYPE_BF16, 3, error));
    ISO_TRY(iso_rule_extent(call, X, "X", 0, u->extent[0], error));
    ISO_TRY(iso_rule_extent(call, X, "X", 1, STREAMS, error));
    ISO_TRY(iso_rule_extent(call, X, "X", 2, u->extent[1], error));
    ISO_TRY(iso_rule_input(call, POST, "post", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_extent(call, POST, "post", 0, u->extent[0], error));
    ISO_TRY(iso_rule_extent(call, POST, "post", 1, STREAMS, error));
    ISO_TRY(iso_rule_input(call, COMB, "comb", ISO_DTYPE_F32, 3, error));
    ISO_TRY(iso_rule_extent(call, COMB, "comb", 0, u->extent[0], error));
    ISO_TRY(iso_rule_extent(call, COMB, "comb", 1, STREAMS, error));
    ISO_TRY(iso_rule_extent(call, COMB, "comb", 2, STREAMS, error));
    call->out[0] = call->in[X];
    iso_live_copy(&call->out[0], u, 1);
    return ISO_OK;
}

void iso_hc_expand_fill(const iso_op_call *call, void *args)
{
    *(iso_hc_expand_args *)args = (iso_hc_expand_args){
        .rows = iso_live_of(&call->in[U]),
        .dim = (uint32_t)iso_desc_last(&call->in[U]),
    };
}

uint64_t iso_hc_expand_units(const void *args)
{
    const iso_hc_expand_args *a = args;

    return a->rows.count;
}

/* Element of a destination stream; comb points at its column, x at the element of stream 0. */
static float expand(float u, const uint16_t *x, uint32_t dim, float post, const float *comb)
{
    float sum = comb[0] * lane_bf16_f32(x[0]), term;

    for (uint32_t i = 1; i < STREAMS; i++) {
        term = comb[STREAMS * i] * lane_bf16_f32(x[i * dim]);
        sum = sum + term;
    }
    term = post * u;
    return term + sum;
}

void iso_hc_expand_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_expand_args *a = args;
    const uint16_t *u = tensors->at[U], *x = tensors->at[X];
    const float *post = tensors->at[POST], *comb = tensors->at[COMB];
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t row = units.begin * STREAMS; row < units.end * STREAMS; row++) {
        const uint64_t t = row / STREAMS, j = row % STREAMS;

        for (uint32_t d = 0; d < a->dim; d++) {
            const float value = expand(lane_bf16_f32(u[t * a->dim + d]),
                                       x + t * STREAMS * a->dim + d, a->dim, post[row],
                                       comb + t * STREAMS * STREAMS + j);

            y[row * a->dim + d] = (uint16_t)lane_bf16(value, &flags);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start_case(const char *name, int64_t tokens, int64_t dim, iso_fill x,
                           iso_fill weights)
{
    iso_case test = iso_case_start(ISO_OP_ID_hc_expand, "%s_%lldx%lld", name, (long long)tokens,
                                   (long long)dim);

    iso_case_in(&test, U, iso_desc2(ISO_DTYPE_BF16, tokens, dim), x, 0, 0);
    iso_case_in(&test, X, iso_desc3(ISO_DTYPE_BF16, tokens, STREAMS, dim), x, 0, 0);
    iso_case_in(&test, POST, iso_desc2(ISO_DTYPE_F32, tokens, STREAMS), weights, 0, 0);
    iso_case_in(&test, COMB, iso_desc3(ISO_DTYPE_F32, tokens, STREAMS, STREAMS), weights, 0, 0);
    return test;
}

void iso_hc_expand_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 320, 5120};
    static const struct {
        const char *name;
        iso_fill x, weights;
    } rows[] = {
        {"tiny", ISO_FILL_TINY, ISO_FILL_MILD},       {"tiny_tiny", ISO_FILL_TINY, ISO_FILL_TINY},
        {"wide", ISO_FILL_WIDE, ISO_FILL_MILD},       {"zero", ISO_FILL_ZERO, ISO_FILL_MILD},
        {"cancel", ISO_FILL_CANCEL, ISO_FILL_CANCEL}, {"onehot", ISO_FILL_MILD, ISO_FILL_ONEHOT},
        {"ties", ISO_FILL_TIES, ISO_FILL_TIES},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        test = start_case("mild", 3, dims[i], ISO_FILL_MILD, ISO_FILL_MILD);
        iso_case_add(sink, &test);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, 5, 131, rows[i].x, rows[i].weights);
        iso_case_add(sink, &test);
    }
    test = start_case("empty", 0, 64, ISO_FILL_MILD, ISO_FILL_MILD);
    iso_case_add(sink, &test);
    test = start_case("live", 8, 64, ISO_FILL_MILD, ISO_FILL_MILD);
    for (uint32_t i = U; i <= COMB; i++)
        iso_case_live(&test, i, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start_case("overflow", 2, 64, ISO_FILL_HUGE, ISO_FILL_HUGE);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
