/* stream_fill: start the residual streams of the hyper-connections as copies of one row.
 *   y[t,s] = x[t]
 * Shapes:   x bf16 [T, D]; y bf16 [T, S, D]. T >= 0, D >= 1.
 * Units:    one row t.
 * Order:    none; nothing is computed.
 * Ranges:   x is in the domain (2.2), so copies are.
 * Params:   streams S, 1 .. 64: 4 in V4 and V4.1.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM if streams is not 1 .. 64.
 * Source:   released inference/model.py, Transformer.forward. Differs from it in: nothing. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, Y };

iso_status iso_stream_fill_infer(iso_op_call *call, iso_error *error)
{
    const iso_stream_params *params = (const void *)call->params;

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_within(call, X, "x", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_param(call, params->streams >= 1 && params->streams <= 64,
                           "streams not in 1 .. 64", error));
    call->out[0] = iso_desc3(ISO_DTYPE_BF16, call->in[X].extent[0], params->streams,
                             call->in[X].extent[1]);
    iso_live_copy(&call->out[0], &call->in[X], 1);
    return ISO_OK;
}

void iso_stream_fill_fill(const iso_op_call *call, void *args)
{
    const iso_stream_params *params = (const void *)call->params;

    *(iso_stream_fill_args *)args = (iso_stream_fill_args){
        .rows = iso_live_of(&call->in[X]),
        .dim = (uint32_t)call->in[X].extent[1],
        .streams = params->streams,
    };
}

uint64_t iso_stream_fill_units(const void *args)
{
    const iso_stream_fill_args *a = args;

    return a->rows.count;
}

void iso_stream_fill_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_stream_fill_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint16_t *y = tensors->at[Y];

    for (uint64_t t = units.begin; t < units.end; t++)
        for (uint32_t s = 0; s < a->streams; s++)
            for (uint32_t i = 0; i < a->dim; i++)
                y[(t * a->streams + s) * a->dim + i] = x[t * a->dim + i];
}

static iso_case start(int64_t rows, uint32_t streams, int64_t dim, const char *name)
{
    const iso_stream_params params = {.streams = streams};
    iso_case test = iso_case_start(ISO_OP_ID_stream_fill, "%s_%lldx%ux%lld", name,
                                   (long long)rows, streams, (long long)dim);

    iso_case_in(&test, X, iso_desc2(ISO_DTYPE_BF16, rows, dim), ISO_FILL_WIDE, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

void iso_stream_fill_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 7, 8, 31, 32, 33, 128, 5120};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        test = start(3, 4, dims[i], "wide");
        iso_case_add(sink, &test);
    }
    test = start(0, 4, 32, "empty");
    iso_case_add(sink, &test);
    test = start(5, 1, 32, "one_stream");
    iso_case_add(sink, &test);
    test = start(5, 7, 33, "seven_streams");
    iso_case_add(sink, &test);
    test = start(7, 4, 32, "live2");
    iso_case_live(&test, X, 1);
    test.live = 2;
    iso_case_add(sink, &test);
}
