/* moe_sum: add the outputs of the routed experts of a token and of the shared expert.
 *   Y = +0;  Y = Y + y[t,i,d] for i ascending (experts are in ascending id);  Y + shared[t,d]
 * Shapes:   y bf16 [T,k,D]; shared bf16 [T,D]; out bf16 [T,D]. T >= 0, 1 <= k <= 1024,
 *           1 <= D <= 2^20.
 * Units:    one token.
 * Order:    numerics 14: sequential in f32; one rounding to bf16, at the end.
 * Ranges:   inputs in the domain: sums of bf16 are multiples of 2^-57 (L1); starts at +0 (L4).
 * Params:   none.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE if shared is not [T,D]; ISO_BAD_DTYPE.
 * Source:   released inference/model.py, MoE.forward. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { ROUTED, SHARED, OUT };

iso_status iso_moe_sum_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *y = &call->in[ROUTED];

    ISO_TRY(iso_rule_input(call, ROUTED, "y", ISO_DTYPE_BF16, 3, error));
    ISO_TRY(iso_rule_within(call, ROUTED, "y", 1, 1, 1024, error));
    ISO_TRY(iso_rule_within(call, ROUTED, "y", 2, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, SHARED, "shared", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_extent(call, SHARED, "shared", 0, y->extent[0], error));
    ISO_TRY(iso_rule_extent(call, SHARED, "shared", 1, y->extent[2], error));
    call->out[0] = call->in[SHARED];
    iso_live_copy(&call->out[0], y, 1);
    return ISO_OK;
}

void iso_moe_sum_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc *y = &call->in[ROUTED];

    *(iso_moe_sum_args *)args = (iso_moe_sum_args){
        .rows = iso_live_of(y),
        .picks = (uint32_t)y->extent[1],
        .dim = (uint32_t)y->extent[2],
    };
}

uint64_t iso_moe_sum_units(const void *args)
{
    const iso_moe_sum_args *a = args;

    return a->rows.count;
}

void iso_moe_sum_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_moe_sum_args *a = args;
    const uint16_t *y = tensors->at[ROUTED], *shared = tensors->at[SHARED];
    uint16_t *out = tensors->at[OUT];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const uint16_t *yt = y + t * a->picks * a->dim;

        for (uint32_t d = 0; d < a->dim; d++) {
            float sum = 0.0f;

            for (uint32_t i = 0; i < a->picks; i++)
                sum = sum + lane_bf16_f32(yt[(uint64_t)i * a->dim + d]);
            sum = sum + lane_bf16_f32(shared[t * a->dim + d]);
            out[t * a->dim + d] = (uint16_t)lane_bf16(sum, &flags);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start_case(const char *name, int64_t tokens, int64_t picks, int64_t dim,
                           iso_fill fill)
{
    iso_case test = iso_case_start(ISO_OP_ID_moe_sum, "%s_%lldx%lldx%lld", name,
                                   (long long)tokens, (long long)picks, (long long)dim);

    iso_case_in(&test, ROUTED, iso_desc3(ISO_DTYPE_BF16, tokens, picks, dim), fill, 0, 0);
    iso_case_in(&test, SHARED, iso_desc2(ISO_DTYPE_BF16, tokens, dim), fill, 0, 0);
    return test;
}

/* Picks that cancel in pairs: the shared expert alone is left, with all its bits, because it is
 * added last. */
static void make_pairs(const iso_case *test, void *const *inputs)
{
    const int64_t *extent = test->call.in[ROUTED].extent;
    uint16_t *y = inputs[ROUTED];

    for (int64_t row = 0; row < extent[0] * extent[1]; row++)
        for (int64_t d = 0; d < extent[2] && row % extent[1] % 2 == 1; d++) {
            const uint16_t before = y[(row - 1) * extent[2] + d];

            y[row * extent[2] + d] = (uint16_t)(before == 0 ? 0 : before ^ 0x8000);
        }
}

void iso_moe_sum_cases(iso_case_sink *sink)
{
    static const struct {
        const char *name;
        int64_t tokens, picks, dim;
        iso_fill fill;
    } rows[] = {
        {"empty", 0, 6, 64, ISO_FILL_MILD},   {"mild", 3, 1, 1, ISO_FILL_MILD},
        {"mild", 3, 2, 7, ISO_FILL_MILD},     {"mild", 2, 3, 33, ISO_FILL_MILD},
        {"mild", 5, 6, 127, ISO_FILL_MILD},   {"mild", 2, 6, 5120, ISO_FILL_MILD},
        {"tiny", 3, 6, 129, ISO_FILL_TINY},   {"wide", 3, 6, 257, ISO_FILL_WIDE},
        {"zero", 3, 6, 65, ISO_FILL_ZERO},
        {"cancel", 3, 6, 64, ISO_FILL_CANCEL}, {"ties", 3, 6, 64, ISO_FILL_TIES},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, rows[i].tokens, rows[i].picks, rows[i].dim, rows[i].fill);
        iso_case_add(sink, &test);
    }
    test = start_case("pairs", 3, 6, 129, ISO_FILL_WIDE);
    test.make = make_pairs;
    iso_case_add(sink, &test);
    test = start_case("live", 7, 6, 33, ISO_FILL_MILD);
    iso_case_live(&test, ROUTED, 1);
    iso_case_live(&test, SHARED, 1);
    test.live = 2;
    iso_case_add(sink, &test);
    test = start_case("overflow", 3, 6, 65, ISO_FILL_HUGE);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
