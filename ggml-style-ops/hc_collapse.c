/* hc_collapse: the four residual streams of a token -> the input of a sublayer.
 *   y[t,d] = ((pre[t,0] x0 + pre[t,1] x1) + pre[t,2] x2) + pre[t,3] x3;   xi = X[t,i,d]
 * Shapes:   X bf16 [T,4,D]; pre f32 [T,4]; y bf16 [T,D]. T >= 0, 1 <= D <= 2^20.
 * Units:    one token.
 * Order:    numerics 13.3: products rounded, sums in the order of the brackets; one rounding to
 *           bf16, at the end. The products are f32 x bf16: never fused.
 * Ranges:   X and pre in the domain: products are 0 or >= 2^-100 (L1).
 * Params:   none.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE if X has not 4 streams or pre is not [T,4]; ISO_BAD_DTYPE.
 * Source:   released inference/model.py, Block.hc_pre. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, PRE, Y };
enum { STREAMS = 4 };

iso_status iso_hc_collapse_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *x = &call->in[X];

    ISO_TRY(iso_rule_input(call, X, "X", ISO_DTYPE_BF16, 3, error));
    ISO_TRY(iso_rule_extent(call, X, "X", 1, STREAMS, error));
    ISO_TRY(iso_rule_within(call, X, "X", 2, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, PRE, "pre", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_extent(call, PRE, "pre", 0, x->extent[0], error));
    ISO_TRY(iso_rule_extent(call, PRE, "pre", 1, STREAMS, error));
    call->out[0] = iso_desc2(ISO_DTYPE_BF16, x->extent[0], x->extent[2]);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_hc_collapse_fill(const iso_op_call *call, void *args)
{
    *(iso_hc_collapse_args *)args = (iso_hc_collapse_args){
        .rows = iso_live_of(&call->in[X]),
        .dim = (uint32_t)iso_desc_last(&call->in[X]),
    };
}

uint64_t iso_hc_collapse_units(const void *args)
{
    const iso_hc_collapse_args *a = args;

    return a->rows.count;
}

void iso_hc_collapse_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_collapse_args *a = args;
    const uint16_t *x = tensors->at[X];
    const float *pre = tensors->at[PRE];
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const uint16_t *xt = x + t * STREAMS * a->dim;
        const float *p = pre + t * STREAMS;

        for (uint32_t d = 0; d < a->dim; d++) {
            float sum = p[0] * lane_bf16_f32(xt[d]);

            for (uint32_t i = 1; i < STREAMS; i++) {
                const float term = p[i] * lane_bf16_f32(xt[i * a->dim + d]);

                sum = sum + term;
            }
            y[t * a->dim + d] = (uint16_t)lane_bf16(sum, &flags);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start_case(const char *name, int64_t tokens, int64_t dim, iso_fill x,
                           iso_fill pre)
{
    iso_case test = iso_case_start(ISO_OP_ID_hc_collapse, "%s_%lldx%lld", name, (long long)tokens,
                                   (long long)dim);

    iso_case_in(&test, X, iso_desc3(ISO_DTYPE_BF16, tokens, STREAMS, dim), x, 0, 0);
    iso_case_in(&test, PRE, iso_desc2(ISO_DTYPE_F32, tokens, STREAMS), pre, 0, 0);
    return test;
}

void iso_hc_collapse_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 320, 5120};
    static const struct {
        const char *name;
        iso_fill x, pre;
    } rows[] = {
        {"tiny", ISO_FILL_TINY, ISO_FILL_MILD},       {"tiny_tiny", ISO_FILL_TINY, ISO_FILL_TINY},
        {"wide", ISO_FILL_WIDE, ISO_FILL_MILD},       {"huge", ISO_FILL_HUGE, ISO_FILL_ONEHOT},
        {"zero", ISO_FILL_ZERO, ISO_FILL_MILD},       {"cancel", ISO_FILL_CANCEL, ISO_FILL_CANCEL},
        {"one_stream", ISO_FILL_MILD, ISO_FILL_ONEHOT},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        test = start_case("mild", 3, dims[i], ISO_FILL_MILD, ISO_FILL_MILD);
        iso_case_add(sink, &test);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, 5, 131, rows[i].x, rows[i].pre);
        iso_case_add(sink, &test);
    }
    test = start_case("empty", 0, 64, ISO_FILL_MILD, ISO_FILL_MILD);
    iso_case_add(sink, &test);
    test = start_case("live", 8, 64, ISO_FILL_MILD, ISO_FILL_MILD);
    iso_case_live(&test, X, 1);
    iso_case_live(&test, PRE, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start_case("overflow", 2, 64, ISO_FILL_HUGE, ISO_FILL_HUGE);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
