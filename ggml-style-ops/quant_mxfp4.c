/* quant_mxfp4: e2m1 codes with one power-of-two scale per 32 (Q4i: index queries and keys).
 *   m = max |x| of the group;  k = max(smallest k with 6 * 2^k >= m, -41)
 *   scale = k + 127;  code[i] = e2m1(x[i] * 2^-k);  value = e2m1 value * 2^k
 * Shapes:   x bf16 [T, .., K], rank 2 .. 4; code e2m1 as x; scale ue8m0 [T, .., K / 32].
 *           T >= 0, K a positive multiple of 32.
 * Units:    one row of K.
 * Order:    numerics 11, Q4i; the maximum is an integer, so its order is free.
 * Ranges:   scale bytes lie in [86, 175] for x in the domain; |x * 2^-k| is 0 or in
 *           [2^-98, 6], exact.
 * Params:   none.
 * Aliasing: none.
 * Errors:   x outside the domain (2^50 and above, Inf, NaN) raises ISO_FLAG_RANGE;
 *           ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/kernel.py, fp4 act_quant. Differs from it in: the floor of the
 *           scale, 2^-41 for 2^-126 (numerics 11). */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/quant.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, CODE, SCALE };
enum { GROUP = 32 };

iso_status iso_quant_mxfp4_infer(iso_op_call *call, iso_error *error)
{
    const uint32_t rank = call->in[X].rank > 2 ? call->in[X].rank : 2;

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, rank, error));
    ISO_TRY(iso_rule_multiple(call, X, "x", rank - 1, GROUP, error));
    call->out[0] = call->in[X];
    call->out[0].dtype = ISO_DTYPE_E2M1;
    call->out[1] = call->in[X];
    call->out[1].dtype = ISO_DTYPE_UE8M0;
    call->out[1].extent[rank - 1] = iso_desc_last(&call->in[X]) / GROUP;
    return ISO_OK;
}

void iso_quant_mxfp4_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc *x = &call->in[X];

    *(iso_quant_mxfp4_args *)args = (iso_quant_mxfp4_args){
        .rows = iso_live_of(x),
        .per_row = (uint32_t)(iso_desc_rows(x) / (x->extent[0] != 0 ? x->extent[0] : 1)),
        .dim = (uint32_t)iso_desc_last(x),
    };
}

uint64_t iso_quant_mxfp4_units(const void *args)
{
    const iso_quant_mxfp4_args *a = args;

    return (uint64_t)a->rows.count * a->per_row;
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, uint32_t *flags)
{
    const int32_t k = iso_scale_exponent(iso_max_magnitude(x, GROUP, flags), 129, 64, -41);

    for (uint32_t i = 0; i < GROUP; i++)
        iso_e2m1_put(code, i, lane_e2m1(lane_bf16_f32(x[i]) * lane_pow2(-k)));
    return (uint8_t)(k + 127);
}

void iso_quant_mxfp4_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_mxfp4_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint32_t groups = a->dim / GROUP;
    uint32_t flags = 0;

    for (uint64_t g = units.begin * groups; g < units.end * groups; g++)
        scale[g] = quantise_group(code + g * (GROUP / 2), x + g * GROUP, &flags);
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(iso_tensor_desc x, iso_fill fill, const char *name)
{
    iso_case test = iso_case_start(ISO_OP_ID_quant_mxfp4, "%s_%lldx%lld", name,
                                   (long long)iso_desc_rows(&x), (long long)iso_desc_last(&x));

    iso_case_in(&test, X, x, fill, 0, 0);
    return test;
}

static void add_case(iso_case_sink *sink, int64_t rows, int64_t dim, iso_fill fill,
                     const char *name)
{
    const iso_case test = start(iso_desc2(ISO_DTYPE_BF16, rows, dim), fill, name);

    iso_case_add(sink, &test);
}

/* Every bf16 of the domain once, in ascending magnitude. */
static void make_domain(const iso_case *test, void *const *inputs)
{
    uint16_t *x = inputs[X];
    const int64_t count = iso_desc_elems(&test->call.in[X]);

    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = 0x2680u + (uint32_t)(i / 2);

        x[i] = (uint16_t)(magnitude < ISO_BF16_OUTSIDE ? magnitude | (uint32_t)(i % 2) << 15 : 0);
    }
}

/* Groups whose largest is 6 * 2^k or a neighbour, with the seven ties of the code below it. */
static void make_ties(const iso_case *test, void *const *inputs)
{
    static const uint16_t tie[8] = {0x3e80, 0x3f40, 0x3fa0, 0x3fe0, 0x4020, 0x4060, 0x40a0, 0};
    uint16_t *x = inputs[X];
    const uint32_t groups = (uint32_t)(iso_desc_elems(&test->call.in[X]) / GROUP);

    for (uint32_t g = 0; g < groups; g++) {
        const uint32_t octave = g / 3 * 0x80u;

        for (uint32_t i = 0; i < GROUP; i++)
            x[g * GROUP + i] = (uint16_t)((tie[i % 8] + (i % 8 == 7 ? 0 : octave)) | i / 8 << 15);
        x[g * GROUP + 31] = (uint16_t)(0x40bfu + g % 3 + octave);
    }
}

void iso_quant_mxfp4_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {32, 64, 96, 128, 160, 512, 1056};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++)
        add_case(sink, 3, dims[i], ISO_FILL_MILD, "mild");
    add_case(sink, 0, 128, ISO_FILL_MILD, "empty");
    add_case(sink, 7, 128, ISO_FILL_TINY, "tiny");
    add_case(sink, 7, 512, ISO_FILL_WIDE, "wide");
    add_case(sink, 7, 128, ISO_FILL_HUGE, "huge");
    add_case(sink, 3, 128, ISO_FILL_ZERO, "zero");
    add_case(sink, 7, 128, ISO_FILL_TIES, "few_values");
    add_case(sink, 7, 128, ISO_FILL_ONEHOT, "onehot");
    test = start(iso_desc2(ISO_DTYPE_BF16, 200, 128), ISO_FILL_ZERO, "domain");
    test.make = make_domain;
    iso_case_add(sink, &test);
    test = start(iso_desc2(ISO_DTYPE_BF16, 30, 128), ISO_FILL_ZERO, "ties");
    test.make = make_ties;
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 2, 32, 128), ISO_FILL_MILD, "heads");
    iso_case_add(sink, &test);
    test = start(iso_desc4(ISO_DTYPE_BF16, 2, 3, 5, 32), ISO_FILL_MILD, "rank4");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 7, 2, 64), ISO_FILL_MILD, "live3");
    iso_case_live(&test, X, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start(iso_desc2(ISO_DTYPE_BF16, 5, 512), ISO_FILL_RAW, "raw");
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
