/* quant_fp8: e4m3 codes with one power-of-two scale per group (Q8).
 *   m = max |x| of the group;  k = max(smallest k with 448 * 2^k >= m, -22)
 *   scale = k + 127;  code[i] = e4m3(x[i] * 2^-k);  value = e4m3 value * 2^k
 * Shapes:   x bf16 [T, .., K], rank 2 .. 4; code e4m3 as x; scale ue8m0 [T, .., ceil(K / group)].
 *           T >= 0, K a positive multiple of 32; the last group may be short.
 * Units:    one row of K.
 * Order:    numerics 11, Q8; the maximum is an integer, so its order is free.
 * Ranges:   scale bytes lie in [105, 169] for x in the domain; |x * 2^-k| is 0 or in
 *           [2^-92, 448], exact.
 * Params:   group 32 (V4.1), 64 or 128 (V4).
 * Aliasing: none.
 * Errors:   x outside the domain (2^50 and above, Inf, NaN) raises ISO_FLAG_RANGE;
 *           ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/kernel.py, act_quant. Differs from it in: nothing. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/quant.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, CODE, SCALE };

iso_status iso_quant_fp8_infer(iso_op_call *call, iso_error *error)
{
    const iso_quant_params *params = (const void *)call->params;
    const uint32_t rank = call->in[X].rank > 2 ? call->in[X].rank : 2;
    const uint32_t group = params->group;

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, rank, error));
    ISO_TRY(iso_rule_multiple(call, X, "x", rank - 1, 32, error));
    ISO_TRY(iso_rule_param(call, group == 32 || group == 64 || group == 128,
                           "group is not 32, 64 or 128", error));
    call->out[0] = call->in[X];
    call->out[0].dtype = ISO_DTYPE_E4M3;
    call->out[1] = call->in[X];
    call->out[1].dtype = ISO_DTYPE_UE8M0;
    call->out[1].extent[rank - 1] = (iso_desc_last(&call->in[X]) + group - 1) / group;
    return ISO_OK;
}

void iso_quant_fp8_fill(const iso_op_call *call, void *args)
{
    const iso_quant_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X];

    *(iso_quant_fp8_args *)args = (iso_quant_fp8_args){
        .rows = iso_live_of(x),
        .per_row = (uint32_t)(iso_desc_rows(x) / (x->extent[0] != 0 ? x->extent[0] : 1)),
        .dim = (uint32_t)iso_desc_last(x),
        .group = params->group,
    };
}

uint64_t iso_quant_fp8_units(const void *args)
{
    const iso_quant_fp8_args *a = args;

    return (uint64_t)a->rows.count * a->per_row;
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, uint32_t n, uint32_t *flags)
{
    const int32_t k = iso_scale_exponent(iso_max_magnitude(x, n, flags), 135, 96, -22);

    for (uint32_t i = 0; i < n; i++)
        code[i] = (uint8_t)lane_e4m3(lane_bf16_f32(x[i]) * lane_pow2(-k), flags);
    return (uint8_t)(k + 127);
}

void iso_quant_fp8_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_fp8_args *a = args;
    const uint16_t *x = tensors->at[X];
    uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint32_t groups = (a->dim + a->group - 1) / a->group;
    uint32_t flags = 0;

    for (uint64_t row = units.begin; row < units.end; row++)
        for (uint32_t g = 0; g < groups; g++) {
            const uint32_t first = g * a->group;
            const uint32_t n = a->dim - first < a->group ? a->dim - first : a->group;

            scale[row * groups + g] = quantise_group(code + row * a->dim + first,
                                                     x + row * a->dim + first, n, &flags);
        }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(iso_tensor_desc x, uint32_t group, iso_fill fill, const char *name)
{
    const iso_quant_params params = {.group = group};
    iso_case test = iso_case_start(ISO_OP_ID_quant_fp8, "%s_%lldx%lld_g%u", name,
                                   (long long)iso_desc_rows(&x), (long long)iso_desc_last(&x),
                                   group);

    iso_case_in(&test, X, x, fill, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

static void add_case(iso_case_sink *sink, int64_t rows, int64_t dim, uint32_t group,
                     iso_fill fill, const char *name)
{
    const iso_case test = start(iso_desc2(ISO_DTYPE_BF16, rows, dim), group, fill, name);

    iso_case_add(sink, &test);
}

/* Every bf16 of the domain once: row r holds magnitudes that differ by up to one octave. */
static void make_domain(const iso_case *test, void *const *inputs)
{
    uint16_t *x = inputs[X];
    const int64_t count = iso_desc_elems(&test->call.in[X]);

    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = 0x2680u + (uint32_t)(i / 2);

        x[i] = (uint16_t)(magnitude < ISO_BF16_OUTSIDE ? magnitude | (uint32_t)(i % 2) << 15 : 0);
    }
}

/* The bounds of the scale rule: 448 * 2^k and its neighbours, as the largest of a group. */
static void make_bounds(const iso_case *test, void *const *inputs)
{
    uint16_t *x = inputs[X];
    const uint32_t groups = (uint32_t)(iso_desc_elems(&test->call.in[X]) / 32);

    for (uint32_t g = 0; g < groups; g++)
        x[g * 32 + g % 32] = (uint16_t)((0x26dfu + g / 3 * 0x80u + g % 3) | g << 15);
}

void iso_quant_fp8_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {32, 64, 96, 128, 160, 256, 288, 448, 512, 1280, 2304, 5120};
    static const uint32_t groups[] = {32, 64, 128};
    iso_case test;

    for (size_t g = 0; g < ISO_COUNT_OF(groups); g++) {
        for (size_t i = 0; i < ISO_COUNT_OF(dims); i++)
            add_case(sink, 3, dims[i], groups[g], ISO_FILL_MILD, "mild");
        add_case(sink, 0, 128, groups[g], ISO_FILL_MILD, "empty");
        add_case(sink, 7, 512, groups[g], ISO_FILL_TINY, "tiny");
        add_case(sink, 7, 512, groups[g], ISO_FILL_WIDE, "wide");
        add_case(sink, 7, 512, groups[g], ISO_FILL_HUGE, "huge");
        add_case(sink, 3, 160, groups[g], ISO_FILL_ZERO, "zero");
        add_case(sink, 7, 512, groups[g], ISO_FILL_TIES, "ties");
        add_case(sink, 7, 512, groups[g], ISO_FILL_ONEHOT, "onehot");
        test = start(iso_desc2(ISO_DTYPE_BF16, 200, 128), groups[g], ISO_FILL_ZERO, "domain");
        test.make = make_domain;
        iso_case_add(sink, &test);
    }
    test = start(iso_desc2(ISO_DTYPE_BF16, 10, 960), 32, ISO_FILL_ZERO, "bounds");
    test.make = make_bounds;
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 3, 5, 64), 32, ISO_FILL_MILD, "rank3");
    iso_case_add(sink, &test);
    test = start(iso_desc4(ISO_DTYPE_BF16, 2, 3, 5, 32), 32, ISO_FILL_MILD, "rank4");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 7, 2, 64), 32, ISO_FILL_MILD, "live3");
    iso_case_live(&test, X, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start(iso_desc2(ISO_DTYPE_BF16, 5, 512), 32, ISO_FILL_RAW, "raw");
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
