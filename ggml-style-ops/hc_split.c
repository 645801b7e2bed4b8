/* hc_split: mixing values of a hyper-connection site -> pre, post, and comb by Sinkhorn.
 *   mix'[o] = clean(mix[t,o] * r[t]);   z(o, s) = mix'[o] * scale[s] + base[o]
 *   pre[t,j] = sigmoid(z(j, 0)) + eps;  post[t,j] = 2 sigmoid(z(4 + j, 1));  j, k = 0..3
 *   comb[t,j,k] = z(8 + 4 j + k, 2), then a row softmax (+ eps), then `iterations` column steps
 *   with a row step between two of them; a step divides by (sum + eps).
 * Shapes:   mix f32 [T,24]; r f32 [T]; scale f32 [3]; base f32 [24]; pre, post f32 [T,4];
 *           comb f32 [T,4,4], comb[j][k] from source stream j to destination stream k.
 * Units:    one token.
 * Order:    numerics 13.1, 13.2; sums of four are (a + b) + (c + d); true divisions.
 * Ranges:   inputs in the domain: z < 2^101; every S >= eps or >= 1, so no division is by zero;
 *           pre, post and comb are cleaned.
 * Params:   iterations 1..1000, 20 in V4.1; eps in (0, 1), 1e-6.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/kernel.py, hc_split_sinkhorn. Differs from it in: order of sums. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/clean.h"
#include "ggml-style-ops/lane/log1p.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { MIX, R, SCALE, BASE, PRE, POST, COMB };
enum { STREAMS = 4, MIXES = 24 };

iso_status iso_hc_split_infer(iso_op_call *call, iso_error *error)
{
    const iso_hc_params *params = (const void *)call->params;
    const int64_t tokens = call->in[MIX].extent[0];

    ISO_TRY(iso_rule_input(call, MIX, "mix", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_extent(call, MIX, "mix", 1, MIXES, error));
    ISO_TRY(iso_rule_input(call, R, "r", ISO_DTYPE_F32, 1, error));
    ISO_TRY(iso_rule_extent(call, R, "r", 0, tokens, error));
    ISO_TRY(iso_rule_input(call, SCALE, "scale", ISO_DTYPE_F32, 1, error));
    ISO_TRY(iso_rule_extent(call, SCALE, "scale", 0, 3, error));
    ISO_TRY(iso_rule_input(call, BASE, "base", ISO_DTYPE_F32, 1, error));
    ISO_TRY(iso_rule_extent(call, BASE, "base", 0, MIXES, error));
    ISO_TRY(iso_rule_param(call, params->iterations >= 1 && params->iterations <= 1000,
                           "iterations not in 1..1000", error));
    ISO_TRY(iso_rule_param(call, params->eps > 0.0f && params->eps < 1.0f, "eps not in (0, 1)",
                           error));
    call->out[0] = iso_desc2(ISO_DTYPE_F32, tokens, STREAMS);
    call->out[1] = iso_desc2(ISO_DTYPE_F32, tokens, STREAMS);
    call->out[2] = iso_desc3(ISO_DTYPE_F32, tokens, STREAMS, STREAMS);
    for (uint32_t i = 0; i < 3; i++)
        iso_live_copy(&call->out[i], &call->in[MIX], 1);
    return ISO_OK;
}

void iso_hc_split_fill(const iso_op_call *call, void *args)
{
    const iso_hc_params *params = (const void *)call->params;

    *(iso_hc_split_args *)args = (iso_hc_split_args){
        .rows = iso_live_of(&call->in[MIX]),
        .iterations = params->iterations,
        .eps = params->eps,
    };
}

uint64_t iso_hc_split_units(const void *args)
{
    const iso_hc_split_args *a = args;

    return a->rows.count;
}

static float sum4(float a, float b, float c, float d) { return (a + b) + (c + d); }

static void row_softmax(float row[STREAMS], float eps)
{
    float max = row[0], e[STREAMS], sum;

    for (uint32_t k = 1; k < STREAMS; k++)
        max = row[k] > max ? row[k] : max;
    for (uint32_t k = 0; k < STREAMS; k++)
        e[k] = lane_exp(row[k] - max);
    sum = sum4(e[0], e[1], e[2], e[3]);
    for (uint32_t k = 0; k < STREAMS; k++)
        row[k] = lane_div(e[k], sum) + eps;
}

/* Divides four elements, `stride` apart, by their sum + eps. */
static void normalise(float *c, uint32_t stride, float eps)
{
    const float sum = sum4(c[0], c[stride], c[2 * stride], c[3 * stride]) + eps;

    for (uint32_t i = 0; i < STREAMS; i++)
        c[i * stride] = lane_div(c[i * stride], sum);
}

static void sinkhorn(float comb[STREAMS * STREAMS], uint32_t iterations, float eps)
{
    for (uint32_t j = 0; j < STREAMS; j++)
        row_softmax(comb + STREAMS * j, eps);
    for (uint32_t i = 0; i < iterations; i++) {
        for (uint32_t j = 0; j < STREAMS && i != 0; j++)
            normalise(comb + STREAMS * j, 1, eps);
        for (uint32_t k = 0; k < STREAMS; k++)
            normalise(comb + k, STREAMS, eps);
    }
}

void iso_hc_split_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_hc_split_args *a = args;
    const float *mix = tensors->at[MIX], *r = tensors->at[R];
    const float *scale = tensors->at[SCALE], *base = tensors->at[BASE];
    float *pre = tensors->at[PRE], *post = tensors->at[POST], *comb = tensors->at[COMB];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        float z[MIXES];

        for (uint32_t o = 0; o < MIXES; o++) {
            const float mixed = lane_clean(mix[t * MIXES + o] * r[t], &flags);
            const float scaled = mixed * scale[o < 4 ? 0 : o < 8 ? 1 : 2];

            z[o] = scaled + base[o];
        }
        for (uint32_t j = 0; j < STREAMS; j++) {
            pre[t * STREAMS + j] = lane_clean(lane_sigmoid(z[j]) + a->eps, &flags);
            post[t * STREAMS + j] = lane_clean(2.0f * lane_sigmoid(z[STREAMS + j]), &flags);
        }
        sinkhorn(z + 8, a->iterations, a->eps);
        for (uint32_t i = 0; i < STREAMS * STREAMS; i++)
            comb[t * STREAMS * STREAMS + i] = lane_clean(z[8 + i], &flags);
    }
    iso_flags_raise(tensors->flags, flags);
}

static iso_case start_case(const char *name, int64_t tokens, iso_fill mix, iso_fill scale,
                           iso_fill base, uint32_t iterations)
{
    const iso_hc_params params = {iterations, lane_float(LANE_EPS_1E6)};
    iso_case test = iso_case_start(ISO_OP_ID_hc_split, "%s_%lld_i%u", name, (long long)tokens,
                                   iterations);

    iso_case_in(&test, MIX, iso_desc2(ISO_DTYPE_F32, tokens, MIXES), mix, 0, 0);
    iso_case_in(&test, R, iso_desc1(ISO_DTYPE_F32, tokens), ISO_FILL_MILD, 0, 0);
    iso_case_in(&test, SCALE, iso_desc1(ISO_DTYPE_F32, 3), scale, 0, 0);
    iso_case_in(&test, BASE, iso_desc1(ISO_DTYPE_F32, MIXES), base, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

/* r of 2^33, the largest that eps = 1e-20 allows, on sums near 2^-50. */
static void make_large_r(const iso_case *test, void *const *inputs)
{
    float *r = inputs[R];

    for (int64_t t = 0; t < test->call.in[R].extent[0]; t++)
        r[t] = 0x1p33f;
}

void iso_hc_split_cases(iso_case_sink *sink)
{
    static const struct {
        const char *name;
        int64_t tokens;
        iso_fill mix, scale, base;
        uint32_t iterations;
    } rows[] = {
        {"empty", 0, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD, 20},
        {"mild", 1, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD, 20},
        {"mild", 97, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD, 20},
        {"mild", 7, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD, 1},
        {"mild", 7, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD, 2},
        {"tiny", 17, ISO_FILL_TINY, ISO_FILL_MILD, ISO_FILL_TINY, 20},
        {"wide", 37, ISO_FILL_WIDE, ISO_FILL_WIDE, ISO_FILL_WIDE, 20},
        {"huge_base", 13, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_HUGE, 20},
        {"zero", 5, ISO_FILL_ZERO, ISO_FILL_ZERO, ISO_FILL_ZERO, 20},
        {"ties", 11, ISO_FILL_TIES, ISO_FILL_CONSTANT, ISO_FILL_TIES, 20},
        {"cancel", 11, ISO_FILL_CANCEL, ISO_FILL_CONSTANT, ISO_FILL_CANCEL, 20},
        {"onehot", 11, ISO_FILL_ONEHOT, ISO_FILL_CONSTANT, ISO_FILL_ZERO, 20},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, rows[i].tokens, rows[i].mix, rows[i].scale, rows[i].base,
                          rows[i].iterations);
        iso_case_add(sink, &test);
    }
    test = start_case("live", 9, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD, 20);
    iso_case_live(&test, MIX, 1);
    iso_case_live(&test, R, 1);
    test.live = 5;
    iso_case_add(sink, &test);
    test = start_case("large_r", 6, ISO_FILL_TINY, ISO_FILL_MILD, ISO_FILL_MILD, 20);
    test.make = make_large_r;
    iso_case_add(sink, &test);
    test = start_case("raw", 3, ISO_FILL_RAW, ISO_FILL_MILD, ISO_FILL_MILD, 20);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
