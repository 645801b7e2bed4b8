/* argmax: the token with the largest logit.
 * Shapes:   logits f32 [L,V]; id i32 [L]. L >= 0, V >= 1.
 * Units:    one row.
 * Order:    numerics 17: the largest key: higher logit first, then the lower id.
 * Ranges:   logits in the domain.
 * Params:   none.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/generate.py, temperature 0. Differs from it in: ties are decided. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/key64.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { LOGITS, ID };

iso_status iso_argmax_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *logits = &call->in[LOGITS];

    ISO_TRY(iso_rule_input(call, LOGITS, "logits", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_within(call, LOGITS, "logits", 1, 1, INT32_MAX, error));
    call->out[0] = iso_desc1(ISO_DTYPE_I32, logits->extent[0]);
    iso_live_copy(&call->out[0], logits, 1);
    return ISO_OK;
}

void iso_argmax_fill(const iso_op_call *call, void *args)
{
    *(iso_argmax_args *)args = (iso_argmax_args){
        .rows = iso_live_of(&call->in[LOGITS]),
        .dim = (uint32_t)call->in[LOGITS].extent[1],
    };
}

uint64_t iso_argmax_units(const void *args)
{
    const iso_argmax_args *a = args;

    return a->rows.count;
}

void iso_argmax_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_argmax_args *a = args;
    const float *logits = tensors->at[LOGITS];
    int32_t *ids = tensors->at[ID];
    uint32_t flags = 0;

    for (uint64_t row = units.begin; row < units.end; row++) {
        uint32_t best = lane_key_high(logits[row * a->dim], &flags);

        ids[row] = 0;
        for (uint32_t i = 1; i < a->dim; i++) {
            const uint32_t high = lane_key_high(logits[row * a->dim + i], &flags);

            if (high > best) {
                best = high;
                ids[row] = (int32_t)i;
            }
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start_case(const char *name, int64_t rows, int64_t dim, iso_fill fill)
{
    iso_case test = iso_case_start(ISO_OP_ID_argmax, "%s_%lldx%lld", name, (long long)rows,
                                   (long long)dim);

    iso_case_in(&test, LOGITS, iso_desc2(ISO_DTYPE_F32, rows, dim), fill, -3, 3);
    return test;
}

void iso_argmax_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 7, 8, 9, 31, 33, 127, 257, 1009, 129280};
    static const struct {
        const char *name;
        iso_fill fill;
    } rows[] = {
        {"tiny", ISO_FILL_TINY}, {"wide", ISO_FILL_WIDE}, {"huge", ISO_FILL_HUGE},
        {"zero", ISO_FILL_ZERO}, {"ties", ISO_FILL_TIES}, {"integers", ISO_FILL_RANGE},
        {"constant", ISO_FILL_CONSTANT}, {"onehot", ISO_FILL_ONEHOT}, {"sorted", ISO_FILL_SORTED},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        test = start_case("mild", 2, dims[i], ISO_FILL_MILD);
        iso_case_add(sink, &test);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, 7, 61, rows[i].fill);
        iso_case_add(sink, &test);
    }
    test = start_case("empty", 0, 64, ISO_FILL_MILD);
    iso_case_add(sink, &test);
    test = start_case("live", 6, 65, ISO_FILL_MILD);
    iso_case_live(&test, LOGITS, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    test = start_case("raw", 3, 65, ISO_FILL_RAW);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
