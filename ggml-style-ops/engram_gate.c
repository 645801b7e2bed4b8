/* engram_gate: add the Engram value to every stream, each with its own gate.
 *   dot[s] = (sum_i (X[s,i] * (qw[s,i] * kw[s,i])) * key[s,i]) * r[s] * D^-1/2,
 *   r[s] = 1/rms(X[s]) * 1/rms(key[s])
 *   gate[s] = sigmoid(sqrt(max(|dot|, 1e-6)) with the sign of dot);  X'[s] = X[s] + gate[s] * value
 * Shapes:   X bf16 [T,S,D]; kv bf16 [T,(S+1)*D]: S keys stream-major, then the value; q_weight,
 *           k_weight bf16 [S,D]; image i32 [T] or absent (nonzero: X is copied); X' as X.
 *           S >= 1, 1 <= D <= 2^20.
 * Units:    one stream of one token.
 * Order:    numerics 16; the sums by 7; 1/sqrt(D) correctly rounded (5120: 0x3c64f92e).
 * Ranges:   inputs in the domain; the terms and dot are cleaned before use (L2); gate in (0, 1).
 * Params:   eps in (0, 1): 1e-20 in V4.1.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM.
 * Source:   released inference/model.py, Engram.forward. Differs from it in: order of sums; dot
 *           = -0 counts as +0. */
#include "ggml-style-ops/gate.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/inv_sqrt.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, KV, Q_WEIGHT, K_WEIGHT, IMAGE, Y };

iso_status iso_engram_gate_infer(iso_op_call *call, iso_error *error)
{
    const iso_norm_params *params = (const void *)call->params;
    const iso_tensor_desc *x = &call->in[X];

    ISO_TRY(iso_rule_input(call, X, "X", ISO_DTYPE_BF16, 3, error));
    ISO_TRY(iso_rule_within(call, X, "X", 1, 1, 1024, error));
    ISO_TRY(iso_rule_within(call, X, "X", 2, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, KV, "kv", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_extent(call, KV, "kv", 0, x->extent[0], error));
    ISO_TRY(iso_rule_extent(call, KV, "kv", 1, (x->extent[1] + 1) * x->extent[2], error));
    ISO_TRY(iso_rule_input(call, Q_WEIGHT, "q_weight", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_extent(call, Q_WEIGHT, "q_weight", 0, x->extent[1], error));
    ISO_TRY(iso_rule_extent(call, Q_WEIGHT, "q_weight", 1, x->extent[2], error));
    ISO_TRY(iso_rule_input(call, K_WEIGHT, "k_weight", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_extent(call, K_WEIGHT, "k_weight", 0, x->extent[1], error));
    ISO_TRY(iso_rule_extent(call, K_WEIGHT, "k_weight", 1, x->extent[2], error));
    if (iso_call_has(call, IMAGE)) {
        ISO_TRY(iso_rule_input(call, IMAGE, "image", ISO_DTYPE_I32, 1, error));
        ISO_TRY(iso_rule_extent(call, IMAGE, "image", 0, x->extent[0], error));
    }
    ISO_TRY(iso_rule_param(call, params->eps > 0.0f && params->eps < 1.0f, "eps not in (0, 1)",
                           error));
    call->out[0] = *x;
    return ISO_OK;
}

void iso_engram_gate_fill(const iso_op_call *call, void *args)
{
    const iso_norm_params *params = (const void *)call->params;

    *(iso_engram_gate_args *)args = (iso_engram_gate_args){
        .rows = iso_live_of(&call->in[X]),
        .streams = (uint32_t)call->in[X].extent[1],
        .dim = (uint32_t)call->in[X].extent[2],
        .eps = params->eps,
    };
}

uint64_t iso_engram_gate_units(const void *args)
{
    const iso_engram_gate_args *a = args;

    return (uint64_t)a->rows.count * a->streams;
}

void iso_engram_gate_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_engram_gate_args *a = args;
    const float inv_sqrt = iso_inv_sqrt_u32(a->dim);
    const int32_t *image = tensors->at[IMAGE];
    uint32_t flags = 0;

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint64_t token = unit / a->streams, stream = unit % a->streams;
        const uint16_t *x = (const uint16_t *)tensors->at[X] + unit * a->dim;
        const uint16_t *kv = (const uint16_t *)tensors->at[KV] + token * (a->streams + 1) * a->dim;
        const uint16_t *value = kv + (uint64_t)a->streams * a->dim;
        uint16_t *y = (uint16_t *)tensors->at[Y] + unit * a->dim;
        const iso_gate_rows rows = {
            .h = x,
            .key = kv + stream * a->dim,
            .q_weight = (const uint16_t *)tensors->at[Q_WEIGHT] + stream * a->dim,
            .k_weight = (const uint16_t *)tensors->at[K_WEIGHT] + stream * a->dim,
            .n = a->dim,
            .eps = a->eps,
            .inv_sqrt = inv_sqrt,
        };
        float gate;

        if (image != NULL && image[token] != 0) {
            memcpy(y, x, a->dim * sizeof *y);
            continue;
        }
        gate = iso_gate_of_dot(iso_gate_dot(&rows, &flags), &flags);
        for (uint32_t i = 0; i < a->dim; i++) {
            const float add = gate * lane_bf16_f32(value[i]);

            y[i] = (uint16_t)lane_bf16(lane_bf16_f32(x[i]) + add, &flags);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

typedef struct gate_case {
    const char *name;
    int64_t tokens, streams, dim;
    iso_fill x, kv, weight;
} gate_case;

static iso_case start_case(const gate_case *c)
{
    const iso_norm_params params = {lane_float(LANE_EPS_1E20)};
    const iso_tensor_desc weight = iso_desc2(ISO_DTYPE_BF16, c->streams, c->dim);
    iso_case test = iso_case_start(ISO_OP_ID_engram_gate, "%s_%lldx%lldx%lld", c->name,
                                   (long long)c->tokens, (long long)c->streams,
                                   (long long)c->dim);

    iso_case_in(&test, X, iso_desc3(ISO_DTYPE_BF16, c->tokens, c->streams, c->dim), c->x, 0, 0);
    iso_case_in(&test, KV, iso_desc2(ISO_DTYPE_BF16, c->tokens, (c->streams + 1) * c->dim), c->kv,
                0, 0);
    iso_case_in(&test, Q_WEIGHT, weight, c->weight, 0, 0);
    iso_case_in(&test, K_WEIGHT, weight, c->weight, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

static void add_image(iso_case *test)
{
    iso_case_in(test, IMAGE, iso_desc1(ISO_DTYPE_I32, test->call.in[X].extent[0]), ISO_FILL_RANGE,
                -1, 1);
}

void iso_engram_gate_cases(iso_case_sink *sink)
{
    static const int64_t dims[] = {1, 2, 31, 32, 33, 127, 320, 4095, 4096, 4097, 5120};
    static const gate_case rows[] = {
        {"empty", 0, 4, 64, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD},
        {"tiny", 3, 3, 163, ISO_FILL_TINY, ISO_FILL_TINY, ISO_FILL_MILD},
        {"tiny_all", 3, 3, 163, ISO_FILL_TINY, ISO_FILL_TINY, ISO_FILL_TINY},
        {"wide", 3, 3, 163, ISO_FILL_WIDE, ISO_FILL_WIDE, ISO_FILL_MILD},
        {"zero_x", 3, 3, 163, ISO_FILL_ZERO, ISO_FILL_MILD, ISO_FILL_MILD},
        {"zero_kv", 3, 3, 163, ISO_FILL_MILD, ISO_FILL_ZERO, ISO_FILL_MILD},
        {"zero_weight", 3, 3, 163, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_ZERO},
        {"onehot", 3, 3, 163, ISO_FILL_ONEHOT, ISO_FILL_ONEHOT, ISO_FILL_CONSTANT},
        {"cancel", 3, 3, 163, ISO_FILL_CANCEL, ISO_FILL_CONSTANT, ISO_FILL_CONSTANT},
        {"equal", 3, 3, 163, ISO_FILL_CONSTANT, ISO_FILL_CONSTANT, ISO_FILL_CONSTANT},
        {"ties", 3, 3, 163, ISO_FILL_TIES, ISO_FILL_TIES, ISO_FILL_TIES},
        /* Many rows: one unit in the last place of a sum shows in some of their bf16 results. */
        {"many", 2048, 4, 128, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD},
    };
    const gate_case image = {"image", 11, 4, 64, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD};
    const gate_case live = {"live", 8, 4, 65, ISO_FILL_MILD, ISO_FILL_MILD, ISO_FILL_MILD};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(dims); i++) {
        const gate_case mild = {"mild", 2, 4, dims[i], ISO_FILL_MILD, ISO_FILL_MILD,
                                ISO_FILL_MILD};

        test = start_case(&mild);
        iso_case_add(sink, &test);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(&rows[i]);
        iso_case_add(sink, &test);
    }
    test = start_case(&image);
    add_image(&test);
    iso_case_add(sink, &test);
    test = start_case(&live);
    add_image(&test);
    iso_case_live(&test, X, 1);
    iso_case_live(&test, KV, 1);
    iso_case_live(&test, IMAGE, 1);
    test.live = 3;
    iso_case_add(sink, &test);
}
