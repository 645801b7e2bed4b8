/* rope: rotate adjacent pairs of the last lanes of every head.
 *   (a, b) -> (a cos - b sin, a sin + b cos) for pair i = lanes n - 2P + 2i, n - 2P + 2i + 1
 *   lanes before n - 2P are copied; inverse: -sin for sin
 * Shapes:   x bf16 [T, h, n] or [T, n] (h = 1); angles f32 [T, P, 2] {cos, sin}; y as x.
 *           T, h >= 0, P >= 1, 2P <= n.
 * Units:    one head of one row.
 * Order:    numerics 10.3: four products rounded separately, never fused; one rounding to bf16.
 * Ranges:   x and the angles are in the domain (2.2): products are 0 or >= 2^-100 (L1).
 * Params:   inverse 0 or 1.
 * Aliasing: none.
 * Errors:   a result of 2^50 or more, or NaN, raises ISO_FLAG_RANGE; ISO_BAD_SHAPE;
 *           ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/model.py, apply_rotary_emb. Differs from it in: nothing. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/sincos.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, ANGLES, Y };

iso_status iso_rope_infer(iso_op_call *call, iso_error *error)
{
    const iso_rope_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X];

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_BF16, x->rank == 2 ? 2 : 3, error));
    ISO_TRY(iso_rule_within(call, X, "x", x->rank - 1, 2, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, ANGLES, "angles", ISO_DTYPE_F32, 3, error));
    ISO_TRY(iso_rule_extent(call, ANGLES, "angles", 0, x->extent[0], error));
    ISO_TRY(iso_rule_within(call, ANGLES, "angles", 1, 1, iso_desc_last(x) / 2, error));
    ISO_TRY(iso_rule_extent(call, ANGLES, "angles", 2, 2, error));
    ISO_TRY(iso_rule_param(call, params->inverse <= 1, "inverse is not 0 or 1", error));
    call->out[0] = *x;
    return ISO_OK;
}

void iso_rope_fill(const iso_op_call *call, void *args)
{
    const iso_rope_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X];

    *(iso_rope_args *)args = (iso_rope_args){
        .rows = iso_live_of(x),
        .heads = x->rank == 3 ? (uint32_t)x->extent[1] : 1,
        .dim = (uint32_t)iso_desc_last(x),
        .pairs = (uint32_t)call->in[ANGLES].extent[1],
        .inverse = params->inverse,
    };
}

uint64_t iso_rope_units(const void *args)
{
    const iso_rope_args *a = args;

    return (uint64_t)a->rows.count * a->heads;
}

static void rotate(uint16_t y[2], const uint16_t x[2], float cosine, float sine, uint32_t *flags)
{
    const float a = lane_bf16_f32(x[0]), b = lane_bf16_f32(x[1]);
    const float ac = a * cosine, bs = b * sine, as = a * sine, bc = b * cosine;

    y[0] = (uint16_t)lane_bf16(ac - bs, flags);
    y[1] = (uint16_t)lane_bf16(as + bc, flags);
}

void iso_rope_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_rope_args *a = args;
    const uint16_t *x = tensors->at[X];
    const float *angles = tensors->at[ANGLES];
    uint16_t *y = tensors->at[Y];
    const uint32_t first = a->dim - 2 * a->pairs;
    uint32_t flags = 0;

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint16_t *xu = x + unit * a->dim;
        const float *angle = angles + unit / a->heads * a->pairs * 2;
        uint16_t *yu = y + unit * a->dim;

        memcpy(yu, xu, first * sizeof *yu);
        for (uint32_t i = 0; i < a->pairs; i++)
            rotate(yu + first + 2 * i, xu + first + 2 * i, angle[2 * i],
                   a->inverse != 0 ? -angle[2 * i + 1] : angle[2 * i + 1], &flags);
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start(iso_tensor_desc x, int64_t pairs, uint32_t inverse, iso_fill fill,
                      const char *name)
{
    const iso_rope_params params = {.inverse = inverse};
    iso_case test = iso_case_start(ISO_OP_ID_rope, "%s_%lldx%lldx%lld_p%lld%s", name,
                                   (long long)x.extent[0], (long long)x.extent[1],
                                   (long long)x.extent[2], (long long)pairs,
                                   inverse != 0 ? "_inv" : "");

    iso_case_in(&test, X, x, fill, 0, 0);
    iso_case_in(&test, ANGLES, iso_desc3(ISO_DTYPE_F32, x.extent[0], pairs, 2), ISO_FILL_MILD, 0,
                0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

/* Cosines and sines of angles all over the circle. */
static void make_angles(const iso_case *test, void *const *inputs)
{
    float *angles = inputs[ANGLES];
    const int64_t count = iso_desc_elems(&test->call.in[ANGLES]) / 2;

    for (int64_t i = 0; i < count; i++) {
        const float a = (float)(int32_t)(iso_case_random(test, ANGLES, (uint32_t)i) >> 12);
        int slow;

        ISO_ASSERT(lane_sincos(a, &angles[2 * i + 1], &angles[2 * i], &slow));
    }
}

/* cos = sin and b = +-a: one result of each pair is the difference of two equal products, which is
 * not 0 when a product is fused. */
static void make_cancel(const iso_case *test, void *const *inputs)
{
    uint16_t *x = inputs[X];
    uint32_t *angles = inputs[ANGLES];

    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[ANGLES]); i += 2)
        angles[i] = angles[i + 1]
                  = 0x3f000000u | iso_case_random(test, ANGLES, (uint32_t)i) >> 9;
    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i += 2)
        x[i + 1] = (uint16_t)(x[i] ^ (i / 2 % 2) << 15);
}

void iso_rope_cases(iso_case_sink *sink)
{
    static const struct {
        int64_t heads, dim, pairs;
    } shape[] = {{1, 2, 1}, {3, 7, 1}, {3, 7, 3}, {5, 64, 32}, {4, 128, 32}, {2, 33, 16},
                 {2, 35, 15}, {64, 512, 32}, {3, 512, 256}};
    static const iso_fill fills[] = {ISO_FILL_TINY, ISO_FILL_WIDE, ISO_FILL_HUGE, ISO_FILL_ZERO,
                                     ISO_FILL_TIES, ISO_FILL_ONEHOT};
    static const char *const names[] = {"tiny", "wide", "huge", "zero", "ties", "onehot"};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(shape); i++)
        for (uint32_t inverse = 0; inverse < 2; inverse++) {
            test = start(iso_desc3(ISO_DTYPE_BF16, 3, shape[i].heads, shape[i].dim),
                         shape[i].pairs, inverse, ISO_FILL_MILD, "mild");
            iso_case_add(sink, &test);
        }
    for (size_t i = 0; i < ISO_COUNT_OF(fills); i++) {
        test = start(iso_desc3(ISO_DTYPE_BF16, 7, 3, 128), 32, (uint32_t)i % 2, fills[i],
                     names[i]);
        test.make = make_angles;
        iso_case_add(sink, &test);
    }
    test = start(iso_desc2(ISO_DTYPE_BF16, 5, 512), 32, 0, ISO_FILL_MILD, "rank2");
    test.make = make_angles;
    iso_case_add(sink, &test);
    for (uint32_t inverse = 0; inverse < 2; inverse++) {
        test = start(iso_desc3(ISO_DTYPE_BF16, 5, 4, 64), 32, inverse, ISO_FILL_MILD, "cancel");
        test.make = make_cancel;
        iso_case_add(sink, &test);
    }
    test = start(iso_desc3(ISO_DTYPE_BF16, 0, 4, 64), 32, 0, ISO_FILL_MILD, "empty");
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 7, 2, 64), 32, 0, ISO_FILL_MILD, "live5");
    iso_case_live(&test, X, 1);
    iso_case_live(&test, ANGLES, 1);
    test.live = 5;
    iso_case_add(sink, &test);
    test = start(iso_desc3(ISO_DTYPE_BF16, 5, 4, 64), 32, 0, ISO_FILL_RAW, "raw");
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
