/* route: choose the experts of a token and their weights.
 *   score[e] = sqrt(softplus(logit[t,e] / temperature));  chosen: the k best of score[e] + bias[e]
 *   w_i = score_i / (sum of the chosen scores + tiny) * scale;  the bias never enters the weights
 * Shapes:   logits f32 [T,E]; bias f32 [E]; bias_vl f32 [E] or absent; image i32 [T] or absent
 *           (nonzero: bias_vl instead of bias; needs bias_vl); ids i32 [T,k] ascending; w f32
 *           [T,k]. 1 <= k <= E <= 1024.
 * Units:    one token.
 * Order:    numerics 9.5, 14, 17; ties to the lower expert; sums in ascending expert id.
 * Ranges:   logits and bias in the domain. tiny > 0 keeps the divisor from zero (L3).
 * Params:   count = k; tiny 1e-20 in V4.1; scale 1.5; temperature 1 (no division), else > 0.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/model.py, Gate.forward. Differs from it in: order of the sum; ties
 *           are decided. */
#include "ggml-style-ops/router.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/select.h"
#include "ggml-style-ops/shape_rules.h"

enum { LOGITS, BIAS, BIAS_VL, IMAGE, IDS, W };
enum { EXPERTS_MAX = 1024 };

iso_status iso_route_infer(iso_op_call *call, iso_error *error)
{
    const iso_route_params *params = (const void *)call->params;
    const iso_tensor_desc *logits = &call->in[LOGITS];

    ISO_TRY(iso_rule_input(call, LOGITS, "logits", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_within(call, LOGITS, "logits", 1, 1, EXPERTS_MAX, error));
    ISO_TRY(iso_rule_input(call, BIAS, "bias", ISO_DTYPE_F32, 1, error));
    ISO_TRY(iso_rule_extent(call, BIAS, "bias", 0, logits->extent[1], error));
    if (iso_call_has(call, BIAS_VL) || iso_call_has(call, IMAGE)) {
        ISO_TRY(iso_rule_input(call, BIAS_VL, "bias_vl", ISO_DTYPE_F32, 1, error));
        ISO_TRY(iso_rule_extent(call, BIAS_VL, "bias_vl", 0, logits->extent[1], error));
    }
    if (iso_call_has(call, IMAGE)) {
        ISO_TRY(iso_rule_input(call, IMAGE, "image", ISO_DTYPE_I32, 1, error));
        ISO_TRY(iso_rule_extent(call, IMAGE, "image", 0, logits->extent[0], error));
    }
    ISO_TRY(iso_rule_param(call, params->count >= 1 && params->count <= logits->extent[1],
                           "count not in 1..experts", error));
    ISO_TRY(iso_rule_param(call, params->tiny > 0.0f && params->tiny < 1.0f,
                           "tiny not in (0, 1)", error));
    ISO_TRY(iso_rule_param(call, params->scale > 0.0f && params->scale < 0x1p50f,
                           "scale not in (0, 2^50)", error));
    ISO_TRY(iso_rule_param(call, params->temperature > 0.0f && params->temperature < 0x1p50f,
                           "temperature not in (0, 2^50)", error));
    call->out[0] = iso_desc2(ISO_DTYPE_I32, logits->extent[0], params->count);
    call->out[1] = iso_desc2(ISO_DTYPE_F32, logits->extent[0], params->count);
    iso_live_copy(&call->out[0], logits, 1);
    iso_live_copy(&call->out[1], logits, 1);
    return ISO_OK;
}

void iso_route_fill(const iso_op_call *call, void *args)
{
    const iso_route_params *params = (const void *)call->params;

    *(iso_route_args *)args = (iso_route_args){
        .rows = iso_live_of(&call->in[LOGITS]),
        .experts = (uint32_t)call->in[LOGITS].extent[1],
        .count = params->count,
        .tiny = params->tiny,
        .scale = params->scale,
        .temperature = params->temperature,
    };
}

uint64_t iso_route_units(const void *args)
{
    const iso_route_args *a = args;

    return a->rows.count;
}

typedef struct expert_list {
    uint32_t high[EXPERTS_MAX];
    uint32_t count;
} expert_list;

static uint64_t count_experts(const void *context, uint32_t high)
{
    const expert_list *list = context;
    uint64_t count = 0;

    for (uint32_t e = 0; e < list->count; e++)
        count += list->high[e] >= high;
    return count;
}

static void route_token(const iso_route_args *a, const float *logits, const float *bias,
                        int32_t *ids, float *w, uint32_t *flags)
{
    expert_list list = {.count = a->experts};
    uint32_t found = 0;
    iso_cut cut;

    for (uint32_t e = 0; e < a->experts; e++) {
        const float score = iso_router_score(logits[e], a->temperature, flags);

        list.high[e] = lane_key_high(score + bias[e], flags);
    }
    cut = iso_cut_find(count_experts, &list, a->count);
    for (uint32_t e = 0; e < a->experts; e++)
        if (iso_cut_take(&cut, list.high[e], 1)) {
            ids[found] = (int32_t)e;
            w[found++] = iso_router_score(logits[e], a->temperature, flags);
        }
    iso_router_weights(w, a->count, a->tiny, a->scale, flags);
}

void iso_route_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_route_args *a = args;
    const float *logits = tensors->at[LOGITS];
    const int32_t *image = tensors->at[IMAGE];
    int32_t *ids = tensors->at[IDS];
    float *w = tensors->at[W];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++)
        route_token(a, logits + t * a->experts,
                    tensors->at[image != NULL && image[t] != 0 ? BIAS_VL : BIAS],
                    ids + t * a->count, w + t * a->count, &flags);
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

static iso_case start_case(const char *name, int64_t tokens, int64_t experts, uint32_t count,
                           iso_fill logits, iso_fill bias)
{
    const iso_route_params params = {count, lane_float(LANE_EPS_1E20), 1.5f, 1.0f};
    iso_case test = iso_case_start(ISO_OP_ID_route, "%s_%lldx%lld_k%u", name, (long long)tokens,
                                   (long long)experts, count);

    iso_case_in(&test, LOGITS, iso_desc2(ISO_DTYPE_F32, tokens, experts), logits, -60, 60);
    iso_case_in(&test, BIAS, iso_desc1(ISO_DTYPE_F32, experts), bias, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

static void add_image(iso_case *test)
{
    const iso_tensor_desc *logits = &test->call.in[LOGITS];

    iso_case_in(test, BIAS_VL, iso_desc1(ISO_DTYPE_F32, logits->extent[1]), ISO_FILL_MILD, 0, 0);
    iso_case_in(test, IMAGE, iso_desc1(ISO_DTYPE_I32, logits->extent[0]), ISO_FILL_RANGE, -1, 1);
}

void iso_route_cases(iso_case_sink *sink)
{
    static const struct {
        const char *name;
        int64_t tokens, experts;
        uint32_t count;
        iso_fill logits, bias;
    } rows[] = {
        {"empty", 0, 16, 3, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 3, 1, 1, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 5, 7, 1, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 5, 7, 7, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 5, 37, 6, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 2, 1024, 6, ISO_FILL_MILD, ISO_FILL_MILD},
        {"real", 7, 384, 6, ISO_FILL_MILD, ISO_FILL_MILD},
        {"draft", 3, 128, 3, ISO_FILL_MILD, ISO_FILL_MILD},
        {"tiny", 3, 64, 6, ISO_FILL_TINY, ISO_FILL_TINY},
        {"wide", 3, 64, 6, ISO_FILL_WIDE, ISO_FILL_MILD},
        {"huge", 3, 64, 6, ISO_FILL_HUGE, ISO_FILL_ZERO},
        {"steep", 5, 64, 6, ISO_FILL_RANGE, ISO_FILL_ZERO},
        {"ties", 5, 64, 6, ISO_FILL_TIES, ISO_FILL_ZERO},
        {"ties_bias", 5, 64, 6, ISO_FILL_TIES, ISO_FILL_TIES},
        {"all_equal", 3, 64, 6, ISO_FILL_CONSTANT, ISO_FILL_ZERO},
        {"bias_only", 3, 64, 6, ISO_FILL_ZERO, ISO_FILL_MILD},
        {"sorted", 3, 384, 6, ISO_FILL_SORTED, ISO_FILL_ZERO},
        {"onehot", 3, 64, 6, ISO_FILL_ONEHOT, ISO_FILL_ZERO},
    };
    const iso_route_params warm = {6, lane_float(LANE_EPS_1E20), 2.5f, 0.75f};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, rows[i].tokens, rows[i].experts, rows[i].count,
                          rows[i].logits, rows[i].bias);
        iso_case_add(sink, &test);
    }
    test = start_case("image", 9, 64, 6, ISO_FILL_MILD, ISO_FILL_MILD);
    add_image(&test);
    iso_case_add(sink, &test);
    test = start_case("temperature", 5, 64, 6, ISO_FILL_MILD, ISO_FILL_MILD);
    iso_case_params(&test, &warm, sizeof warm);
    iso_case_add(sink, &test);
    test = start_case("live", 8, 64, 6, ISO_FILL_MILD, ISO_FILL_MILD);
    add_image(&test);
    iso_case_live(&test, LOGITS, 1);
    iso_case_live(&test, IMAGE, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start_case("raw", 2, 64, 6, ISO_FILL_RAW, ISO_FILL_MILD);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
}
