/* dequant: codes and scales to the bf16 values they stand for.
 *   y[i] = value(code[i]) * value(scale[i / group])
 * Shapes:   code e4m3 or e2m1 [T, .., K], rank 2 .. 4; scale ue8m0 [T, .., K / group] with group a
 *           multiple of 16, or, for e2m1 codes, e4m3 [T, .., K / 16]; y bf16 as code. T >= 0.
 * Units:    one row of K.
 * Order:    one product per element, exact before it is cleaned (numerics 2.8, 11, 16).
 * Ranges:   ue8m0 bytes in [64, 168]; other bytes only over codes that are all zero, where y = +0.
 *           Products are exact bf16 numbers; below 2^-50 they are cleaned to +0.
 * Params:   none.
 * Aliasing: none.
 * Errors:   an e4m3 code or scale that is NaN, or a nonzero code under a ue8m0 byte outside
 *           [64, 168], raises ISO_FLAG_RANGE; ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/kernel.py (fake quantisation) and Engram row decoding. Differs from
 *           it in: magnitudes below 2^-50 are +0. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/quant.h"
#include "ggml-style-ops/shape_rules.h"

enum { CODE, SCALE, Y };
enum { BYTE_MIN = 64, BYTE_MAX = 168 };

iso_status iso_dequant_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *code = &call->in[CODE], *scale = &call->in[SCALE];
    const bool is_e2m1 = code->dtype == ISO_DTYPE_E2M1;
    const bool is_e4m3_scale = is_e2m1 && scale->dtype == ISO_DTYPE_E4M3;
    const uint32_t rank = code->rank > 2 ? code->rank : 2, last = rank - 1;

    ISO_TRY(iso_rule_input(call, CODE, "code", is_e2m1 ? ISO_DTYPE_E2M1 : ISO_DTYPE_E4M3, rank,
                           error));
    ISO_TRY(iso_rule_multiple(call, CODE, "code", last, 16, error));
    ISO_TRY(iso_rule_input(call, SCALE, "scale",
                           is_e4m3_scale ? ISO_DTYPE_E4M3 : ISO_DTYPE_UE8M0, rank, error));
    for (uint32_t axis = 0; axis < last; axis++)
        ISO_TRY(iso_rule_extent(call, SCALE, "scale", axis, code->extent[axis], error));
    if (is_e4m3_scale)
        ISO_TRY(iso_rule_extent(call, SCALE, "scale", last, code->extent[last] / 16, error));
    ISO_TRY(iso_rule_within(call, SCALE, "scale", last, 1, code->extent[last] / 16, error));
    ISO_TRY(iso_rule_multiple(call, CODE, "code", last, 16 * scale->extent[last], error));
    call->out[0] = *code;
    call->out[0].dtype = ISO_DTYPE_BF16;
    return ISO_OK;
}

void iso_dequant_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc *code = &call->in[CODE], *scale = &call->in[SCALE];

    *(iso_dequant_args *)args = (iso_dequant_args){
        .rows = iso_live_of(code),
        .per_row = (uint32_t)(iso_desc_rows(code)
                              / (code->extent[0] != 0 ? code->extent[0] : 1)),
        .dim = (uint32_t)iso_desc_last(code),
        .group = (uint32_t)(iso_desc_last(code) / iso_desc_last(scale)),
        .is_e2m1 = code->dtype == ISO_DTYPE_E2M1,
        .is_e4m3_scale = scale->dtype == ISO_DTYPE_E4M3,
    };
}

uint64_t iso_dequant_units(const void *args)
{
    const iso_dequant_args *a = args;

    return (uint64_t)a->rows.count * a->per_row;
}

/* The value of a scale byte, and whether a nonzero code may stand under it. */
static float scale_value(uint32_t byte, bool is_e4m3, bool *is_legal)
{
    if (is_e4m3) {
        *is_legal = (byte & 0x7fu) != 0x7fu;
        return *is_legal ? lane_e4m3_f32(byte) : 0.0f;
    }
    *is_legal = byte >= BYTE_MIN && byte <= BYTE_MAX;
    return *is_legal ? lane_ue8m0_f32(byte) : 0.0f;
}

void iso_dequant_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_dequant_args *a = args;
    const uint8_t *code = tensors->at[CODE], *scale = tensors->at[SCALE];
    const uint32_t zero_mask = a->is_e2m1 ? 7u : 0x7fu;
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    /* Rows are dense and K is a multiple of the group: element i lies in group i / group. */
    for (uint64_t i = units.begin * a->dim; i < units.end * a->dim; i++) {
        const uint32_t byte = scale[i / a->group];
        const uint32_t c = a->is_e2m1 ? iso_e2m1_at(code, i) : code[i];
        bool is_legal;
        float s = scale_value(byte, a->is_e4m3_scale, &is_legal), v;

        if (a->is_e4m3_scale && !is_legal)
            flags |= LANE_RANGE;
        if ((c & zero_mask) != 0 && (!is_legal || (!a->is_e2m1 && (c & 0x7fu) == 0x7fu))) {
            flags |= LANE_RANGE;
            s = 0.0f;
        }
        v = a->is_e2m1 ? lane_e2m1_f32(c) : lane_e4m3_f32(c);
        y[i] = (uint16_t)lane_bf16(v * s, &flags);
    }
    iso_flags_raise(tensors->flags, flags);
}

/* group 0: an e4m3 scale per 16, or, for e4m3 codes, illegal. */
static iso_case start(iso_dtype dtype, int64_t rows, int64_t dim, int64_t group,
                      const char *name)
{
    const int64_t scales = group != 0 ? dim / group : dim / 16;
    iso_case test = iso_case_start(ISO_OP_ID_dequant, "%s_%s_%lldx%lld_g%lld", name,
                                   iso_dtype_name(dtype), (long long)rows, (long long)dim,
                                   (long long)group);

    iso_case_in(&test, CODE, iso_desc2(dtype, rows, dim), ISO_FILL_CODES, 0, 0);
    if (group != 0)
        iso_case_in(&test, SCALE, iso_desc2(ISO_DTYPE_UE8M0, rows, scales), ISO_FILL_RANGE, 100,
                    140);
    else
        iso_case_in(&test, SCALE, iso_desc2(ISO_DTYPE_E4M3, rows, scales), ISO_FILL_RANGE, 0,
                    0x7e);
    return test;
}

/* Every code that is not NaN under every legal scale. 256 e4m3 or 16 e2m1 codes a group. */
static void make_all(const iso_case *test, void *const *inputs)
{
    const iso_tensor_desc *code = &test->call.in[CODE], *scale = &test->call.in[SCALE];
    const bool is_e2m1 = code->dtype == ISO_DTYPE_E2M1;
    const bool is_e4m3_scale = scale->dtype == ISO_DTYPE_E4M3;
    uint8_t *codes = inputs[CODE], *scales = inputs[SCALE];
    const int64_t count = iso_desc_elems(code);

    for (int64_t i = 0; i < count; i++)
        if (is_e2m1)
            iso_e2m1_put(codes, (uint64_t)i, (uint32_t)i & 15u);
        else
            codes[i] = (uint8_t)((i & 0x7f) == 0x7f ? 0x80 : i);
    for (int64_t g = 0; g < iso_desc_elems(scale); g++)
        scales[g] = (uint8_t)(is_e4m3_scale ? (g % 127) | (g / 127 % 2) << 7
                                            : 64 + g % 105);
}

/* Bytes outside [64, 168] over zero codes of both signs: accepted. */
static void make_zero_groups(const iso_case *test, void *const *inputs)
{
    const bool is_e2m1 = test->call.in[CODE].dtype == ISO_DTYPE_E2M1;
    uint8_t *scales = inputs[SCALE];
    static const uint8_t bytes[8] = {0, 1, 63, 169, 254, 255, 64, 168};

    memset(inputs[CODE], is_e2m1 ? 0x80 : 0x00, iso_desc_bytes(&test->call.in[CODE]));
    if (!is_e2m1)
        *(uint8_t *)inputs[CODE] = 0x80;
    for (int64_t g = 0; g < iso_desc_elems(&test->call.in[SCALE]); g++)
        scales[g] = bytes[g % 8];
}

static void make_low_byte(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((uint8_t *)inputs[CODE])[0] = 0x11;          /* nonzero in every format */
    ((uint8_t *)inputs[SCALE])[0] = 63;
}

static void make_high_byte(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((uint8_t *)inputs[CODE])[0] = 0x11;
    ((uint8_t *)inputs[SCALE])[0] = 169;
}

static void make_nan_code(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((uint8_t *)inputs[CODE])[5] = 0xff;
}

static void make_nan_scale(const iso_case *test, void *const *inputs)
{
    (void)test;
    memset(inputs[CODE], 0, 8);                   /* even over zero codes */
    ((uint8_t *)inputs[SCALE])[0] = 0x7f;
}

static void add_made(iso_case_sink *sink, iso_case test, iso_case_make_fn *make, uint32_t flags)
{
    test.make = make;
    test.flags_expected = flags;
    iso_case_add(sink, &test);
}

void iso_dequant_cases(iso_case_sink *sink)
{
    static const struct {
        iso_dtype dtype;
        int64_t dim, group;
    } shape[] = {
        {ISO_DTYPE_E4M3, 32, 32}, {ISO_DTYPE_E4M3, 96, 32}, {ISO_DTYPE_E4M3, 512, 32},
        {ISO_DTYPE_E4M3, 448, 64}, {ISO_DTYPE_E4M3, 256, 128}, {ISO_DTYPE_E4M3, 16, 16},
        {ISO_DTYPE_E4M3, 6144, 32}, {ISO_DTYPE_E2M1, 32, 32}, {ISO_DTYPE_E2M1, 160, 32},
        {ISO_DTYPE_E2M1, 128, 32}, {ISO_DTYPE_E2M1, 16, 0}, {ISO_DTYPE_E2M1, 48, 0},
        {ISO_DTYPE_E2M1, 512, 0},
    };
    const iso_dtype e4m3 = ISO_DTYPE_E4M3, e2m1 = ISO_DTYPE_E2M1;
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(shape); i++) {
        test = start(shape[i].dtype, 3, shape[i].dim, shape[i].group, "mild");
        iso_case_add(sink, &test);
    }
    test = start(e4m3, 0, 64, 32, "empty");
    iso_case_add(sink, &test);
    add_made(sink, start(e4m3, 105, 256, 256, "all"), make_all, 0);
    add_made(sink, start(e2m1, 105, 16, 16, "all"), make_all, 0);
    add_made(sink, start(e2m1, 254, 16, 0, "all"), make_all, 0);
    add_made(sink, start(e4m3, 4, 128, 32, "zero_groups"), make_zero_groups, 0);
    add_made(sink, start(e2m1, 4, 128, 32, "zero_groups"), make_zero_groups, 0);
    add_made(sink, start(e4m3, 3, 64, 32, "low_byte"), make_low_byte, ISO_FLAG_RANGE);
    add_made(sink, start(e2m1, 3, 64, 32, "low_byte"), make_low_byte, ISO_FLAG_RANGE);
    add_made(sink, start(e4m3, 3, 64, 32, "high_byte"), make_high_byte, ISO_FLAG_RANGE);
    add_made(sink, start(e2m1, 3, 64, 32, "high_byte"), make_high_byte, ISO_FLAG_RANGE);
    add_made(sink, start(e4m3, 3, 64, 32, "nan_code"), make_nan_code, ISO_FLAG_RANGE);
    add_made(sink, start(e2m1, 3, 64, 0, "nan_scale"), make_nan_scale, ISO_FLAG_RANGE);
    test = start(e4m3, 7, 64, 32, "live4");
    iso_case_live(&test, CODE, 1);
    iso_case_live(&test, SCALE, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    test = iso_case_start(ISO_OP_ID_dequant, "rank4_2x3x5x32");
    iso_case_in(&test, CODE, iso_desc4(e4m3, 2, 3, 5, 32), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, SCALE, iso_desc4(ISO_DTYPE_UE8M0, 2, 3, 5, 1), ISO_FILL_RANGE, 64, 168);
    iso_case_add(sink, &test);
}
