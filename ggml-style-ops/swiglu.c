/* swiglu: the clamped gated activation of an expert, times its routing weight.
 *   g' = min(g, limit);  u' = max(min(u, limit), -limit);  a = w * (silu(g') * u')
 * Shapes:   g bf16 [T,F] or [T,k,F]; u as g; w f32 [T] or [T,k] or absent (no product); a as g.
 *           T >= 0, k >= 1, 1 <= F <= 2^20.
 * Units:    one row of F.
 * Order:    numerics 14, 9.3; one rounding to bf16, at the end.
 * Ranges:   |silu(g')| <= limit or |g|; the products end in to_bf16 (L2).
 * Params:   limit finite and > 0: 10 in V4.1.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM if limit is not finite and > 0.
 * Source:   released inference/model.py, Expert.forward. Same arithmetic, own silu. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/log1p.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { G, U, W, Y };

iso_status iso_swiglu_infer(iso_op_call *call, iso_error *error)
{
    const iso_swiglu_params *params = (const void *)call->params;
    const iso_tensor_desc *g = &call->in[G];
    const uint32_t rank = g->rank == 3 ? 3 : 2;

    ISO_TRY(iso_rule_input(call, G, "g", ISO_DTYPE_BF16, rank, error));
    ISO_TRY(iso_rule_within(call, G, "g", rank - 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, U, "u", ISO_DTYPE_BF16, rank, error));
    for (uint32_t i = 0; i < rank; i++)
        ISO_TRY(iso_rule_extent(call, U, "u", i, g->extent[i], error));
    if (iso_call_has(call, W)) {
        ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_F32, rank - 1, error));
        for (uint32_t i = 0; i + 1 < rank; i++)
            ISO_TRY(iso_rule_extent(call, W, "w", i, g->extent[i], error));
    }
    ISO_TRY(iso_rule_param(call, params->limit > 0.0f && params->limit < 0x1p50f,
                           "limit not in (0, 2^50)", error));
    call->out[0] = *g;
    return ISO_OK;
}

void iso_swiglu_fill(const iso_op_call *call, void *args)
{
    const iso_swiglu_params *params = (const void *)call->params;
    const iso_tensor_desc *g = &call->in[G];

    *(iso_swiglu_args *)args = (iso_swiglu_args){
        .rows = iso_live_of(g),
        .per_row = g->rank == 3 ? (uint32_t)g->extent[1] : 1,
        .dim = (uint32_t)iso_desc_last(g),
        .limit = params->limit,
    };
}

uint64_t iso_swiglu_units(const void *args)
{
    const iso_swiglu_args *a = args;

    return (uint64_t)a->rows.count * a->per_row;
}

static float activation(uint16_t gate, uint16_t up, float limit)
{
    const float g = lane_bf16_f32(gate), u = lane_bf16_f32(up);
    const float gc = g > limit ? limit : g;
    const float uc = u > limit ? limit : u < -limit ? -limit : u;

    return lane_silu(gc) * uc;
}

void iso_swiglu_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_swiglu_args *a = args;
    const uint16_t *g = tensors->at[G], *u = tensors->at[U];
    const float *w = tensors->at[W];
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t row = units.begin; row < units.end; row++)
        for (uint64_t i = row * a->dim; i < (row + 1) * a->dim; i++) {
            float value = activation(g[i], u[i], a->limit);

            if (w != NULL)
                value = w[row] * value;
            y[i] = (uint16_t)lane_bf16(value, &flags);
        }
    iso_flags_raise(tensors->flags, flags);
}

/* picks 0: rank 2. */
static iso_case start_case(const char *name, int64_t tokens, int64_t picks, int64_t dim,
                           iso_fill x, bool weighted)
{
    const iso_swiglu_params params = {10.0f};
    const iso_tensor_desc desc = picks != 0 ? iso_desc3(ISO_DTYPE_BF16, tokens, picks, dim)
                                            : iso_desc2(ISO_DTYPE_BF16, tokens, dim);
    const iso_tensor_desc w = picks != 0 ? iso_desc2(ISO_DTYPE_F32, tokens, picks)
                                         : iso_desc1(ISO_DTYPE_F32, tokens);
    iso_case test = iso_case_start(ISO_OP_ID_swiglu, "%s_%lldx%lldx%lld%s", name,
                                   (long long)tokens, (long long)picks, (long long)dim,
                                   weighted ? "_w" : "");

    iso_case_in(&test, G, desc, x, -40, 40);
    iso_case_in(&test, U, desc, x, -40, 40);
    if (weighted)
        iso_case_in(&test, W, w, ISO_FILL_MILD, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

void iso_swiglu_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 7, 8, 9, 16, 17, 31, 33, 127, 2304};
    static const struct {
        const char *name;
        iso_fill x;
    } rows[] = {
        {"tiny", ISO_FILL_TINY}, {"wide", ISO_FILL_WIDE}, {"huge", ISO_FILL_HUGE},
        {"zero", ISO_FILL_ZERO}, {"ties", ISO_FILL_TIES}, {"clamp", ISO_FILL_RANGE},
        {"sorted", ISO_FILL_SORTED},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        test = start_case("mild", 2, 6, dims[i], ISO_FILL_MILD, true);
        iso_case_add(sink, &test);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++)
        for (int weighted = 0; weighted < 2; weighted++) {
            test = start_case(rows[i].name, 3, weighted ? 2 : 0, 331, rows[i].x, weighted != 0);
            iso_case_add(sink, &test);
        }
    test = start_case("rank2", 3, 0, 65, ISO_FILL_MILD, true);
    iso_case_add(sink, &test);
    test = start_case("empty", 0, 6, 64, ISO_FILL_MILD, true);
    iso_case_add(sink, &test);
    test = start_case("live", 7, 6, 33, ISO_FILL_MILD, true);
    for (uint32_t i = G; i <= W; i++)
        iso_case_live(&test, i, 1);
    test.live = 4;
    iso_case_add(sink, &test);
}
