/* embed_rows: look up one row of a table per token.
 *   y[t] = table[ids[t]]
 * Shapes:   ids i32 [T]; table bf16 [V, D]; y bf16 [T, D]. T >= 0, V, D >= 1.
 * Units:    one row.
 * Order:    none; nothing is computed.
 * Ranges:   the table is in the domain (2.2, checked when it was loaded), so copies are.
 * Params:   none.
 * Aliasing: none.
 * Errors:   an id outside 0 .. V-1 raises ISO_FLAG_INDEX, reads nothing and gives a row of +0;
 *           ISO_BAD_SHAPE, ISO_BAD_DTYPE.
 * Source:   released inference/model.py, Transformer.forward. Differs from it in: nothing. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { IDS, TABLE, Y };

iso_status iso_embed_rows_infer(iso_op_call *call, iso_error *error)
{
    ISO_TRY(iso_rule_input(call, IDS, "ids", ISO_DTYPE_I32, 1, error));
    ISO_TRY(iso_rule_input(call, TABLE, "table", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_within(call, TABLE, "table", 0, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_within(call, TABLE, "table", 1, 1, INT32_MAX, error));
    call->out[0] = iso_desc2(ISO_DTYPE_BF16, call->in[IDS].extent[0], call->in[TABLE].extent[1]);
    iso_live_copy(&call->out[0], &call->in[IDS], 1);
    return ISO_OK;
}

void iso_embed_rows_fill(const iso_op_call *call, void *args)
{
    *(iso_embed_rows_args *)args = (iso_embed_rows_args){
        .rows = iso_live_of(&call->in[IDS]),
        .dim = (uint32_t)call->in[TABLE].extent[1],
        .table_rows = (uint32_t)call->in[TABLE].extent[0],
    };
}

uint64_t iso_embed_rows_units(const void *args)
{
    const iso_embed_rows_args *a = args;

    return a->rows.count;
}

void iso_embed_rows_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_embed_rows_args *a = args;
    const int32_t *ids = tensors->at[IDS];
    const uint16_t *table = tensors->at[TABLE];
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const bool is_legal = ids[t] >= 0 && (uint32_t)ids[t] < a->table_rows;

        if (!is_legal)
            flags |= ISO_FLAG_INDEX;
        for (uint32_t i = 0; i < a->dim; i++)
            y[t * a->dim + i] = is_legal ? table[(uint64_t)(uint32_t)ids[t] * a->dim + i] : 0;
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(int64_t tokens, int64_t rows, int64_t dim, iso_fill fill, const char *name)
{
    iso_case test = iso_case_start(ISO_OP_ID_embed_rows, "%s_%lldx%lldx%lld", name,
                                   (long long)tokens, (long long)rows, (long long)dim);

    iso_case_in(&test, IDS, iso_desc1(ISO_DTYPE_I32, tokens), ISO_FILL_RANGE, 0, rows - 1);
    iso_case_in(&test, TABLE, iso_desc2(ISO_DTYPE_BF16, rows, dim), fill, 0, 0);
    return test;
}

static void make_low_id(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((int32_t *)inputs[IDS])[1] = -1;
}

static void make_high_id(const iso_case *test, void *const *inputs)
{
    ((int32_t *)inputs[IDS])[6] = (int32_t)test->call.in[TABLE].extent[0];
}

void iso_embed_rows_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 7, 8, 31, 32, 33, 127, 5120};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        test = start(5, 13, dims[i], ISO_FILL_WIDE, "wide");
        iso_case_add(sink, &test);
    }
    test = start(0, 3, 64, ISO_FILL_MILD, "empty");
    iso_case_add(sink, &test);
    test = start(9, 1, 64, ISO_FILL_TINY, "one_row");
    iso_case_add(sink, &test);
    test = start(8, 11, 64, ISO_FILL_HUGE, "live3");
    iso_case_live(&test, IDS, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start(7, 11, 64, ISO_FILL_MILD, "low_id");
    test.make = make_low_id;
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
    test = start(7, 11, 64, ISO_FILL_MILD, "high_id");
    test.make = make_high_id;
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}
