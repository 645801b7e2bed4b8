/* quant_nvfp4: e2m1 codes with one e4m3 scale per 16 (Q4kv: compressed keys).
 *   m = max(max |x| of the group, 6 * 2^-9);  s = e4m3(m / 6);  scale = code of s, 0x01 .. 0x7e
 *   code[i] = e2m1(x[i] / s), both divisions correctly rounded;  value = e2m1 value * s
 * Shapes:   x bf16 [T, .., K], rank 2 .. 4; code e2m1 as x; scale e4m3 [T, .., K / 16].
 *           T >= 0, K a positive multiple of 16.
 * Units:    one row of K.
 * Order:    numerics 11, Q4kv; the maximum is an integer, so its order is free.
 * Ranges:   2^-9 <= s <= 448; |x / s| is 0 or in [2^-59, 2^42): no underflow.
 * Params:   none.
 * Aliasing: none.
 * Errors:   x outside the domain (2^50 and above, Inf, NaN) raises ISO_FLAG_RANGE;
 *           ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/kernel.py, fp4 act_quant with e4m3 scales. Differs from it in:
 *           nothing. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/div.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/quant.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, CODE, SCALE };
enum { GROUP = 16, MAGNITUDE_MIN = 0x3c40 };      /* 6 * 2^-9 as bf16 */

iso_status iso_quant_nvfp4_infer(iso_op_call *call, iso_error *error)
{
    const uint32_t rank = call->in[X].rank > 2 ? call->in[X].rank : 2;

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, rank, error));
    ISO_TRY(iso_rule_multiple(call, X, "x", rank - 1, GROUP, error));
    call->out[0] = call->in[X];
    call->out[0].dtype = ISO_DTYPE_E2M1;
    call->out[1] = call->in[X];
    call->out[1].dtype = ISO_DTYPE_E4M3;
    call->out[1].extent[rank - 1] = iso_desc_last(&call->in[X]) / GROUP;
    return ISO_OK;
}

void iso_quant_nvfp4_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc *x = &call->in[X];

    *(iso_quant_nvfp4_args *)args = (iso_quant_nvfp4_args){
        .rows = iso_live_of(x),
        .per_row = (uint32_t)(iso_desc_rows(x) / (x->extent[0] != 0 ? x->extent[0] : 1)),
        .dim = (uint32_t)iso_desc_last(x),
    };
}

uint64_t iso_quant_nvfp4_units(const void *args)
{
    const iso_quant_nvfp4_args *a = args;

    return (uint64_t)a->rows.count * a->per_row;
}

static uint8_t quantise_group(uint8_t *code, const uint16_t *x, uint32_t *flags)
{
    uint32_t m = iso_max_magnitude(x, GROUP, flags), scale;
    float s;

    if (m < MAGNITUDE_MIN)
        m = MAGNITUDE_MIN;
    scale = lane_e4m3(lane_div(lane_bf16_f32(m), 6.0f), flags);
    s = lane_e4m3_f32(scale);
    for (uint32_t i = 0; i < GROUP; i++)
        iso_e2m1_put(code, i, lane_e2m1(lane_div(lane_bf16_f32(x[i]), s)));
    return (uint8_t)scale;
}

void iso_quant_nvfp4_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_quant_nvfp4_args *a = args;
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
    iso_case test = iso_case_start(ISO_OP_ID_quant_nvfp4, "%s_%lldx%lld", name,
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

/* Group g: its largest value is bf16 g of the domain, the rest are thresholds of the code times
 * the scale that follows, and their neighbours. */
static void make_thresholds(const iso_case *test, void *const *inputs)
{
    static const uint32_t threshold[7] = {0x3e800000u, 0x3f400000u, 0x3fa00000u, 0x3fe00000u,
                                          0x40200000u, 0x40600000u, 0x40a00000u};
    uint16_t *x = inputs[X];
    const uint32_t groups = (uint32_t)(iso_desc_elems(&test->call.in[X]) / GROUP);
    uint32_t flags = 0;

    for (uint32_t g = 0; g < groups; g++) {
        const uint32_t m = 0x3b00u + g;           /* 2^-9 and up */
        const float s = lane_e4m3_f32(lane_e4m3(lane_div(
            lane_bf16_f32(m < MAGNITUDE_MIN ? MAGNITUDE_MIN : m), 6.0f), &flags));

        for (uint32_t i = 0; i < GROUP; i++) {
            const uint32_t t = lane_bits(lane_float(threshold[i % 7]) * s) >> 16;
            const uint32_t v = t + (i < 7 ? 0u : i - 8 + g % 2);

            x[g * GROUP + i] = (uint16_t)((v > m ? m : v) | (g + i) << 15);
        }
        x[g * GROUP + g % GROUP] = (uint16_t)m;
    }
}

void iso_quant_nvfp4_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {16, 32, 48, 64, 80, 112, 128, 512, 1040};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++)
        add_case(sink, 3, dims[i], ISO_FILL_MILD, "mild");
    add_case(sink, 0, 128, ISO_FILL_MILD, "empty");
    add_case(sink, 7, 512, ISO_FILL_TINY, "tiny");
    add_case(sink, 7, 512, ISO_FILL_WIDE, "wide");
    add_case(sink, 7, 128, ISO_FILL_HUGE, "huge");
    add_case(sink, 3, 128, ISO_FILL_ZERO, "zero");
    add_case(sink, 7, 128, ISO_FILL_TIES, "few_values");
    add_case(sink, 7, 128, ISO_FILL_ONEHOT, "onehot");
    test = start(iso_desc2(ISO_DTYPE_BF16, 90, 512), ISO_FILL_ZERO, "thresholds");
    test.make = make_thresholds;
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 3, 5, 48), ISO_FILL_MILD, "rank3");
    iso_case_add(sink, &test);
    test = start(iso_desc4(ISO_DTYPE_BF16, 2, 3, 5, 16), ISO_FILL_MILD, "rank4");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 7, 2, 64), ISO_FILL_MILD, "live3");
    iso_case_live(&test, X, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start(iso_desc2(ISO_DTYPE_BF16, 5, 512), ISO_FILL_RAW, "raw");
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
