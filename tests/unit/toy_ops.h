/* toy_ops: small operators for tests of graph, plan and backends; they need no table of operators.
 *   toy_affine      y[t,i] = k x[t,i] + w[i]          w may be absent
 *   toy_total       y[t] = sum_i x[t,i]               through a scratch copy of x
 *   toy_accumulate  state[t,i] += x[t,i]              UPDATE
 *   toy_gather      y[t] = table[ids[t]]              raises the index flag
 *   toy_positive    y = x                             raises the range flag for x < 0 */
#ifndef ISO_TESTS_TOY_OPS_H
#define ISO_TESTS_TOY_OPS_H

#include "core/op.h"

#include <string.h>

typedef struct toy_params {
    float k;
} toy_params;

typedef struct toy_args {
    iso_live rows;
    uint32_t dim, has_w, table_rows;
    float k;
} toy_args;

static inline iso_status toy_rows_infer(iso_op_call *call, iso_error *error)
{
    if (call->in[0].dtype != ISO_DTYPE_F32 || call->in[0].rank != 2)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: x is not f32 of rank 2", call->op->name);
    call->out[0] = call->in[0];
    return ISO_OK;
}

static inline void toy_fill(const iso_op_call *call, void *args)
{
    const toy_params *params = (const void *)call->params;

    *(toy_args *)args = (toy_args){.rows = iso_live_of(&call->in[0]),
                                   .dim = (uint32_t)iso_desc_last(&call->in[0]),
                                   .has_w = iso_desc_present(&call->in[1]),
                                   .k = params->k};
}

static inline uint64_t toy_units(const void *args)
{
    const toy_args *a = args;

    return a->rows.count;
}

static inline void toy_affine_run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const toy_args *a = args;
    const float *x = tensors->at[0], *w = tensors->at[1];
    float *y = tensors->at[2];

    for (uint64_t t = units.begin; t < units.end; t++)
        for (uint32_t i = 0; i < a->dim; i++) {
            const float product = a->k * x[t * a->dim + i];

            y[t * a->dim + i] = product + (a->has_w ? w[i] : 0.0f);
        }
}

static const iso_op toy_affine = {
    .name = "toy_affine", .id = 1000, .input_count = 2, .output_count = 1,
    .params_bytes = sizeof(toy_params), .args_bytes = sizeof(toy_args), .infer = toy_rows_infer,
    .fill = toy_fill, .units = toy_units, .reference = toy_affine_run,
};

static inline iso_status toy_total_infer(iso_op_call *call, iso_error *error)
{
    ISO_TRY(toy_rows_infer(call, error));
    call->out[0].extent[1] = 1;
    return ISO_OK;
}

static inline iso_tensor_desc toy_total_scratch(const iso_op_call *call) { return call->in[0]; }

static inline void toy_total_run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const toy_args *a = args;
    const float *x = tensors->at[0];
    float *y = tensors->at[1], *scratch = tensors->at[2];

    for (uint64_t t = units.begin; t < units.end; t++) {
        memcpy(scratch + t * a->dim, x + t * a->dim, a->dim * sizeof *x);
        y[t] = 0.0f;
        for (uint32_t i = 0; i < a->dim; i++)
            y[t] = y[t] + scratch[t * a->dim + i];
    }
}

static const iso_op toy_total = {
    .name = "toy_total", .id = 1001, .input_count = 1, .output_count = 1,
    .flags = ISO_OP_SCRATCH, .args_bytes = sizeof(toy_args), .infer = toy_total_infer,
    .fill = toy_fill, .units = toy_units, .reference = toy_total_run,
    .scratch = toy_total_scratch,
};

static inline void toy_accumulate_fill(const iso_op_call *call, void *args)
{
    *(toy_args *)args = (toy_args){.rows = iso_live_of(&call->in[1]),
                                   .dim = (uint32_t)iso_desc_last(&call->in[1])};
}

static inline void toy_accumulate_run(const void *args, const iso_tensors *tensors,
                                      iso_range units)
{
    const toy_args *a = args;
    const float *x = tensors->at[1];
    float *state = tensors->at[2];

    for (uint64_t i = units.begin * a->dim; i < units.end * a->dim; i++)
        state[i] = state[i] + x[i];
}

static const iso_op toy_accumulate = {
    .name = "toy_accumulate", .id = 1002, .input_count = 2, .output_count = 1,
    .flags = ISO_OP_UPDATE, .args_bytes = sizeof(toy_args), .infer = toy_rows_infer,
    .fill = toy_accumulate_fill, .units = toy_units, .reference = toy_accumulate_run,
};

static inline iso_status toy_gather_infer(iso_op_call *call, iso_error *error)
{
    if (call->in[0].dtype != ISO_DTYPE_I32 || call->in[1].dtype != ISO_DTYPE_F32)
        return iso_fail(error, ISO_BAD_DTYPE, "toy_gather: ids i32, table f32 expected");
    call->out[0] = iso_desc2(ISO_DTYPE_F32, call->in[0].extent[0], call->in[1].extent[1]);
    iso_live_copy(&call->out[0], &call->in[0], 1);
    return ISO_OK;
}

static inline void toy_gather_fill(const iso_op_call *call, void *args)
{
    *(toy_args *)args = (toy_args){.rows = iso_live_of(&call->in[0]),
                                   .dim = (uint32_t)iso_desc_last(&call->in[1]),
                                   .table_rows = (uint32_t)call->in[1].extent[0]};
}

static inline void toy_gather_run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const toy_args *a = args;
    const int32_t *ids = tensors->at[0];
    const float *table = tensors->at[1];
    float *y = tensors->at[2];

    for (uint64_t t = units.begin; t < units.end; t++) {
        if (ids[t] < 0 || (uint32_t)ids[t] >= a->table_rows) {
            iso_flags_raise(tensors->flags, ISO_FLAG_INDEX);
            continue;
        }
        memcpy(y + t * a->dim, table + (uint32_t)ids[t] * a->dim, a->dim * sizeof *y);
    }
}

static const iso_op toy_gather = {
    .name = "toy_gather", .id = 1003, .input_count = 2, .output_count = 1,
    .args_bytes = sizeof(toy_args), .infer = toy_gather_infer, .fill = toy_gather_fill,
    .units = toy_units, .reference = toy_gather_run,
};

static inline void toy_positive_run(const void *args, const iso_tensors *tensors, iso_range units)
{
    const toy_args *a = args;
    const float *x = tensors->at[0];
    float *y = tensors->at[1];

    for (uint64_t i = units.begin * a->dim; i < units.end * a->dim; i++) {
        if (x[i] < 0.0f)
            iso_flags_raise(tensors->flags, ISO_FLAG_RANGE);
        y[i] = x[i];
    }
}

static const iso_op toy_positive = {
    .name = "toy_positive", .id = 1004, .input_count = 1, .output_count = 1,
    .args_bytes = sizeof(toy_args), .infer = toy_rows_infer, .fill = toy_fill,
    .units = toy_units, .reference = toy_positive_run,
};

#endif
