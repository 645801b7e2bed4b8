/* engram_hash: compressed ids of a token and of those before it -> rows of the n-gram table.
 *   t_s = history[t,s] until the first -1, from there on pad;  x = t_0 m_0
 *   for n-gram order i = 1..orders: x ^= t_i m_i;  row[t,i,h] = x mod prime[i,h] + offset[i,h]
 * Shapes:   history i32 [T,orders+1], newest first, negative: dead or before the start; mult u32
 *           [orders+1,2]: low and high words; prime, offset u32 [orders*heads]; out u32
 *           [T,orders*heads]. orders >= 1.
 * Units:    one token.
 * Order:    numerics 16: unsigned 64-bit integers, wrap-around, exact remainder.
 * Ranges:   no floats; x mod prime + offset wraps at 2^32.
 * Params:   heads >= 1, 8 in V4.1; pad >= 0: the compressed pad id, 2.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX and a 0 for a prime of 0.
 * Source:   released inference/model.py, Engram hashing; the released arithmetic. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/shape_rules.h"

enum { HISTORY, MULT, PRIME, OFFSET, OUT };

iso_status iso_engram_hash_infer(iso_op_call *call, iso_error *error)
{
    const iso_engram_params *params = (const void *)call->params;
    const iso_tensor_desc *history = &call->in[HISTORY], *prime = &call->in[PRIME];
    const int64_t orders = history->extent[1] - 1;

    ISO_TRY(iso_rule_input(call, HISTORY, "history", ISO_DTYPE_I32, 2, error));
    ISO_TRY(iso_rule_within(call, HISTORY, "history", 1, 2, 64, error));
    ISO_TRY(iso_rule_param(call, params->heads >= 1 && params->heads <= 1024,
                           "heads not in 1..1024", error));
    ISO_TRY(iso_rule_param(call, params->pad >= 0, "pad is negative", error));
    ISO_TRY(iso_rule_input(call, MULT, "mult", ISO_DTYPE_U32, 2, error));
    ISO_TRY(iso_rule_extent(call, MULT, "mult", 0, orders + 1, error));
    ISO_TRY(iso_rule_extent(call, MULT, "mult", 1, 2, error));
    ISO_TRY(iso_rule_input(call, PRIME, "prime", ISO_DTYPE_U32, 1, error));
    ISO_TRY(iso_rule_extent(call, PRIME, "prime", 0, orders * params->heads, error));
    ISO_TRY(iso_rule_input(call, OFFSET, "offset", ISO_DTYPE_U32, 1, error));
    ISO_TRY(iso_rule_extent(call, OFFSET, "offset", 0, prime->extent[0], error));
    call->out[0] = iso_desc2(ISO_DTYPE_U32, history->extent[0], prime->extent[0]);
    iso_live_copy(&call->out[0], history, 1);
    return ISO_OK;
}

void iso_engram_hash_fill(const iso_op_call *call, void *args)
{
    const iso_engram_params *params = (const void *)call->params;

    *(iso_engram_hash_args *)args = (iso_engram_hash_args){
        .rows = iso_live_of(&call->in[HISTORY]),
        .orders = (uint32_t)call->in[HISTORY].extent[1] - 1,
        .heads = params->heads,
        .pad = params->pad,
    };
}

uint64_t iso_engram_hash_units(const void *args)
{
    const iso_engram_hash_args *a = args;

    return a->rows.count;
}

static uint64_t multiplier(const uint32_t *mult, uint32_t i)
{
    return (uint64_t)mult[2 * i + 1] << 32 | mult[2 * i];
}

void iso_engram_hash_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_engram_hash_args *a = args;
    const int32_t *history = tensors->at[HISTORY];
    const uint32_t *mult = tensors->at[MULT], *prime = tensors->at[PRIME];
    const uint32_t *offset = tensors->at[OFFSET];
    uint32_t *out = tensors->at[OUT], flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const int32_t *ids = history + t * (a->orders + 1);
        uint32_t *row = out + t * a->orders * a->heads;
        bool blocked = false;
        uint64_t x = 0;

        for (uint32_t i = 0; i <= a->orders; i++) {
            blocked = blocked || ids[i] < 0;
            x ^= (uint64_t)(uint32_t)(blocked ? a->pad : ids[i]) * multiplier(mult, i);
            for (uint32_t h = 0; h < a->heads && i != 0; h++) {
                const uint32_t column = (i - 1) * a->heads + h;

                if (prime[column] == 0)
                    flags |= ISO_FLAG_INDEX;
                row[column] = prime[column] == 0
                                  ? 0
                                  : (uint32_t)(x % prime[column]) + offset[column];
            }
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

static iso_case start_case(const char *name, int64_t tokens, int64_t orders, uint32_t heads,
                           int64_t low, int64_t high)
{
    const iso_engram_params params = {heads, 2};
    const int64_t columns = orders * heads;
    iso_case test = iso_case_start(ISO_OP_ID_engram_hash, "%s_%lld_o%lld_h%u", name,
                                   (long long)tokens, (long long)orders, heads);

    iso_case_in(&test, HISTORY, iso_desc2(ISO_DTYPE_I32, tokens, orders + 1), ISO_FILL_RANGE, low,
                high);
    iso_case_in(&test, MULT, iso_desc2(ISO_DTYPE_U32, orders + 1, 2), ISO_FILL_RAW, 0, 0);
    iso_case_in(&test, PRIME, iso_desc1(ISO_DTYPE_U32, columns), ISO_FILL_RANGE, 16000057,
                16000463);
    iso_case_in(&test, OFFSET, iso_desc1(ISO_DTYPE_U32, columns), ISO_FILL_RANGE, 0, 368000000);
    iso_case_params(&test, &params, sizeof params);
    return test;
}

void iso_engram_hash_cases(iso_case_sink *sink)
{
    iso_case test = start_case("empty", 0, 3, 8, 0, 99091);

    iso_case_add(sink, &test);
    test = start_case("real", 37, 3, 8, 0, 99091);
    iso_case_add(sink, &test);
    test = start_case("dead", 61, 3, 8, -1, 3);
    iso_case_add(sink, &test);
    test = start_case("all_dead", 3, 3, 8, -1, -1);
    iso_case_add(sink, &test);
    test = start_case("wide_ids", 13, 3, 8, INT32_MIN, INT32_MAX);
    iso_case_add(sink, &test);
    test = start_case("one", 7, 1, 1, -1, 511);
    iso_case_add(sink, &test);
    test = start_case("odd", 7, 5, 3, -1, 511);
    iso_case_add(sink, &test);
    test = start_case("any_modulus", 7, 3, 8, 0, 99091);
    test.input[PRIME] = (iso_case_input){ISO_FILL_RANGE, 1, UINT32_MAX};
    iso_case_add(sink, &test);
    test = start_case("live", 9, 3, 8, -1, 99091);
    iso_case_live(&test, HISTORY, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    test = start_case("prime_zero", 3, 3, 8, 0, 99091);
    test.input[PRIME] = (iso_case_input){ISO_FILL_ZERO, 0, 0};
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}
