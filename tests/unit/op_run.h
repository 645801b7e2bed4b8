/* op_run: one operator, run through infer, fill and its reference, for unit tests. */
#ifndef ISO_TESTS_OP_RUN_H
#define ISO_TESTS_OP_RUN_H

#include "tests/unit/unit.h"

#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/ops.h"
#include "ggml-style-ops/params.h"

typedef struct operand {
    iso_tensor_desc desc;
    void *data;
} operand;

/* Infers, fills and runs the reference on all units. at: inputs, outputs, scratch. */
static inline uint32_t run_op(iso_op_id id, const void *params, const operand *in, void *const *out)
{
    iso_op_call call = {.op = iso_op_get(id)};
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX] = {0};
    void *at[ISO_OP_INPUTS_MAX + ISO_OP_OUTPUTS_MAX + 1] = {0};
    uint32_t flags = 0;
    const iso_tensors tensors = {at, NULL, &flags};
    const uint32_t inputs = call.op->input_count;
    iso_error error = {0};

    for (uint32_t i = 0; i < inputs; i++) {
        call.in[i] = in[i].desc;
        at[i] = in[i].data;
    }
    for (uint32_t i = 0; i < call.op->output_count + (call.op->scratch != NULL); i++)
        at[inputs + i] = out[i];
    if (params != NULL)
        memcpy(call.params, params, call.op->params_bytes);
    assert_ok(call.op->infer(&call, &error), error);
    call.op->fill(&call, args);
    call.op->reference(args, &tensors, (iso_range){0, call.op->units(args)});
    return flags;
}

#define RUN(id, params, in, ...) run_op(ISO_OP_ID_##id, params, in, (void *const[]){__VA_ARGS__})
#define VEC(dtype, n, data) {iso_desc1(ISO_DTYPE_##dtype, n), data}
#define MAT(dtype, r, c, data) {iso_desc2(ISO_DTYPE_##dtype, r, c), data}
#define CUBE(dtype, a, b, c, data) {iso_desc3(ISO_DTYPE_##dtype, a, b, c), data}
#define NONE {iso_desc_none(), NULL}

static inline uint16_t bf16_of(double value)
{
    uint32_t flags = 0;

    return (uint16_t)lane_bf16((float)value, &flags);
}

/* ---- calls that several tests make ---- */

/* 20 iterations, r = 1: one token's mix[24] -> pre[4], post[4], comb[16]. */
static inline uint32_t hc_split(float *mix, float *scale, float *base, float *pre, float *post,
                                float *comb)
{
    const iso_hc_params params = {20, 0x1.0c6f7ap-20f};
    float one = 1.0f;
    const operand in[] = {MAT(F32, 1, 24, mix), VEC(F32, 1, &one), VEC(F32, 3, scale),
                          VEC(F32, 24, base)};

    return RUN(hc_split, &params, in, pre, post, comb);
}

/* The six best, tiny 1e-20, scale 1.5. */
static inline uint32_t route(uint32_t experts, float *logits, float *bias, int32_t *ids, float *w)
{
    const iso_route_params params = {6, 0x1.79ca1p-67f, 1.5f, 1.0f};
    const operand in[] = {MAT(F32, 1, experts, logits), VEC(F32, experts, bias), NONE, NONE};

    return RUN(route, &params, in, ids, w);
}

/* One element, limit 10; w may be NULL. */
static inline uint16_t swiglu(uint16_t gate, uint16_t up, float *w)
{
    const iso_swiglu_params limit = {10.0f};
    const operand in[] = {CUBE(BF16, 1, 1, 1, &gate), CUBE(BF16, 1, 1, 1, &up),
                          {w != NULL ? iso_desc2(ISO_DTYPE_F32, 1, 1) : iso_desc_none(), w}};
    uint16_t y;

    RUN(swiglu, &limit, in, &y);
    return y;
}

#endif
