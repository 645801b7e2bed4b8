/* state_keep: store the rows of a step as pending state.
 *   pending[t] = src[t]   for the rows of the step; the others keep their bytes.
 * Shapes:   pending [C, N] any dtype; src [T, N] the same dtype, T <= C; output: pending.
 * Units:    one row.
 * Order:    move.
 * Ranges:   bytes are copied as they are.
 * Params:   none.
 * Aliasing: the output is input 0, changed in place; src is other memory.
 * Errors:   ISO_BAD_SHAPE, ISO_BAD_DTYPE.
 * Source:   design/architecture.md section 7 (a step appends to pending). */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/shape_rules.h"

enum { PENDING, SRC };

iso_status iso_state_keep_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *pending = &call->in[PENDING];

    ISO_TRY(iso_rule_input(call, PENDING, "pending", pending->dtype, 2, error));
    ISO_TRY(iso_rule_input(call, SRC, "src", pending->dtype, 2, error));
    ISO_TRY(iso_rule_extent(call, SRC, "src", 1, pending->extent[1], error));
    ISO_TRY(iso_rule_within(call, SRC, "src", 0, 0, pending->extent[0], error));
    call->out[0] = *pending;
    return ISO_OK;
}

void iso_state_keep_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc row = iso_desc1(call->in[SRC].dtype, call->in[SRC].extent[1]);

    *(iso_state_keep_args *)args = (iso_state_keep_args){
        .rows = iso_live_of(&call->in[SRC]),
        .row_bytes = (uint32_t)iso_desc_bytes(&row),
    };
}

uint64_t iso_state_keep_units(const void *args)
{
    return ((const iso_state_keep_args *)args)->rows.count;
}

void iso_state_keep_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_state_keep_args *a = args;
    unsigned char *pending = tensors->at[PENDING];
    const unsigned char *src = tensors->at[SRC];

    memcpy(pending + units.begin * a->row_bytes, src + units.begin * a->row_bytes,
           (size_t)((units.end - units.begin) * a->row_bytes));
}

static void add_case(iso_case_sink *sink, iso_dtype dtype, int64_t capacity, int64_t rows,
                     int64_t dim, uint32_t live)
{
    iso_case test = iso_case_start(ISO_OP_ID_state_keep, "%s_%lldx%lld_of_%lld_live%u",
                                   iso_dtype_name(dtype), (long long)rows, (long long)dim,
                                   (long long)capacity, live);
    const iso_fill fill = dtype == ISO_DTYPE_F32 ? ISO_FILL_MILD : ISO_FILL_RANGE;

    iso_case_in(&test, PENDING, iso_desc2(dtype, capacity, dim), fill, 0, 200);
    iso_case_in(&test, SRC, iso_desc2(dtype, rows, dim), fill, 0, 200);
    iso_case_live(&test, SRC, 1);
    test.live = live;
    iso_case_add(sink, &test);
}

void iso_state_keep_cases(iso_case_sink *sink)
{
    add_case(sink, ISO_DTYPE_UE8M0, 5, 5, 16, 5);
    add_case(sink, ISO_DTYPE_UE8M0, 5, 3, 4, 2);
    add_case(sink, ISO_DTYPE_F32, 7, 7, 33, 0);
    add_case(sink, ISO_DTYPE_F32, 7, 4, 512, 3);
    add_case(sink, ISO_DTYPE_UE8M0, 128, 65, 512, 64);
}
