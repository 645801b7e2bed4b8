/* index_score: the index score of every visible compressed entry of a token.
 *   score[t,j] = sum_h max(q[t,h] k_j, 0) * (wt[t,h] * scale), to bf16 after each step; +0 for
 *   entries that are not visible at the token's position.
 * Shapes:   q e2m1 [T,Hi,dk], qs ue8m0 [T,Hi,dk/32]; key e2m1 [R,dk], ks ue8m0 [R,dk/32]: the pool;
 *           wt bf16 [T,Hi]; rows i32 [T,2]; pages i32 [B,P]; score bf16 [T,entries]. 32 | dk.
 * Units:    one token.
 * Order:    numerics 6.5 for the dot, 15.2 for the rest: heads ascending, starting at +0.
 * Ranges:   scale bytes in [86, 175] (the quantiser's): |B| < 2^107 and B a multiple of 2^-84, so
 *           no sum is subnormal or infinite; wt in the domain.
 * Params:   ratio >= 1; page_rows a power of two; entries a positive multiple of 32; scale > 0.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX and a row of zeros for: seq
 *           outside [0, B); position < 0; more visible entries than `entries`; and a zero for an
 *           entry without a page.
 * Source:   released inference/model.py, Indexer.forward. Differs from it in: order of sums; what
 *           is not visible is +0, never -inf: visibility is a count. */
#include "ggml-style-ops/index_dot.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/inv_sqrt.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/table_rules.h"

enum { Q, QS, KEY, KS, WT, ROWS, PAGES, SCORE };

iso_status iso_index_score_infer(iso_op_call *call, iso_error *error)
{
    const iso_index_params *params = (const void *)call->params;
    const iso_tensor_desc *q = &call->in[Q], *key = &call->in[KEY];
    const int64_t tokens = q->extent[0], heads = q->extent[1], dim = q->extent[2];

    ISO_TRY(iso_rule_param(call, params->ratio >= 1, "ratio is 0", error));
    ISO_TRY(iso_rule_page_rows(call, params->page_rows, error));
    ISO_TRY(iso_rule_param(call, params->entries >= 32 && params->entries % 32 == 0
                           && params->entries <= 1u << 30,
                           "entries is no positive multiple of 32", error));
    ISO_TRY(iso_rule_param(call, params->scale > 0.0f && params->scale < 0x1p50f,
                           "scale not in (0, 2^50)", error));
    ISO_TRY(iso_rule_input(call, Q, "q", ISO_DTYPE_E2M1, 3, error));
    ISO_TRY(iso_rule_within(call, Q, "q", 1, 1, 1 << 16, error));
    ISO_TRY(iso_rule_multiple(call, Q, "q", 2, ISO_INDEX_GROUP, error));
    ISO_TRY(iso_rule_input(call, QS, "qs", ISO_DTYPE_UE8M0, 3, error));
    ISO_TRY(iso_rule_extent(call, QS, "qs", 0, tokens, error));
    ISO_TRY(iso_rule_extent(call, QS, "qs", 1, heads, error));
    ISO_TRY(iso_rule_extent(call, QS, "qs", 2, dim / ISO_INDEX_GROUP, error));
    ISO_TRY(iso_rule_input(call, KEY, "key", ISO_DTYPE_E2M1, 2, error));
    ISO_TRY(iso_rule_extent(call, KEY, "key", 1, dim, error));
    ISO_TRY(iso_rule_input(call, KS, "ks", ISO_DTYPE_UE8M0, 2, error));
    ISO_TRY(iso_rule_extent(call, KS, "ks", 0, key->extent[0], error));
    ISO_TRY(iso_rule_extent(call, KS, "ks", 1, dim / ISO_INDEX_GROUP, error));
    ISO_TRY(iso_rule_input(call, WT, "wt", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_extent(call, WT, "wt", 0, tokens, error));
    ISO_TRY(iso_rule_extent(call, WT, "wt", 1, heads, error));
    ISO_TRY(iso_rule_table(call, ROWS, "rows", tokens, ISO_ROW_WORDS, error));
    ISO_TRY(iso_rule_table(call, PAGES, "pages", -1, -1, error));
    call->out[0] = iso_desc2(ISO_DTYPE_BF16, tokens, params->entries);
    iso_live_copy(&call->out[0], q, 1);
    return ISO_OK;
}

void iso_index_score_fill(const iso_op_call *call, void *args)
{
    const iso_index_params *params = (const void *)call->params;

    *(iso_index_score_args *)args = (iso_index_score_args){
        .rows = iso_live_of(&call->in[Q]),
        .heads = (uint32_t)call->in[Q].extent[1],
        .dim = (uint32_t)call->in[Q].extent[2],
        .entries = params->entries,
        .pool_rows = (uint32_t)call->in[KEY].extent[0],
        .seqs = (uint32_t)call->in[PAGES].extent[0],
        .pages = (uint32_t)call->in[PAGES].extent[1],
        .page_rows = params->page_rows,
        .ratio = params->ratio,
        .scale = params->scale,
    };
}

uint64_t iso_index_score_units(const void *args)
{
    const iso_index_score_args *a = args;

    return a->rows.count;
}

/* Score of pool row `row` for token t. */
static uint16_t score_entry(const iso_index_score_args *a, const iso_tensors *tensors, uint64_t t,
                            uint32_t row, uint32_t *flags)
{
    const uint32_t bytes = a->dim / 2, scales = a->dim / ISO_INDEX_GROUP;
    const uint8_t *q = (const uint8_t *)tensors->at[Q] + t * a->heads * bytes;
    const uint8_t *qs = (const uint8_t *)tensors->at[QS] + t * a->heads * scales;
    const uint8_t *key = (const uint8_t *)tensors->at[KEY] + (uint64_t)row * bytes;
    const uint8_t *ks = (const uint8_t *)tensors->at[KS] + (uint64_t)row * scales;
    const uint16_t *wt = (const uint16_t *)tensors->at[WT] + t * a->heads;
    float sum = 0.0f;

    for (uint32_t h = 0; h < a->heads; h++) {
        const float dot = iso_index_dot(q + h * bytes, qs + h * scales, key, ks, a->dim);
        const uint32_t weight = lane_bf16(lane_bf16_f32(wt[h]) * a->scale, flags);

        sum = iso_index_add(sum, dot, lane_bf16_f32(weight), flags);
    }
    return (uint16_t)lane_bf16(sum, flags);
}

void iso_index_score_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_index_score_args *a = args;
    const int32_t *rows = tensors->at[ROWS];
    const iso_page_table table = {tensors->at[PAGES], a->seqs, a->pages, a->page_rows,
                                  a->pool_rows};
    uint16_t *score = tensors->at[SCORE];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const int32_t seq = rows[t * ISO_ROW_WORDS + ISO_ROW_SEQ];
        const int32_t position = rows[t * ISO_ROW_WORDS + ISO_ROW_POSITION];
        int64_t visible = iso_visible_entries(position, a->ratio);

        if (seq < 0 || (uint32_t)seq >= a->seqs || position < 0 || visible > a->entries) {
            flags |= ISO_FLAG_INDEX;
            visible = 0;
        }
        for (int64_t j = 0; j < a->entries; j++) {
            uint16_t value = 0;
            uint32_t row;

            if (j < visible) {
                if (iso_page_row(&table, seq, j, &row))
                    value = score_entry(a, tensors, t, row, &flags);
                else
                    flags |= ISO_FLAG_INDEX;
            }
            score[t * a->entries + (uint64_t)j] = value;
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

enum { PAGE_ROWS = 16 };

static void make_tables(const iso_case *test, void *const *inputs)
{
    iso_case_rows_only(test, ROWS, (uint32_t)test->call.in[PAGES].extent[0], inputs);
    iso_case_pages(test, PAGES, (uint32_t)test->call.in[KEY].extent[0], PAGE_ROWS, inputs);
    iso_case_spoil_tables(test, inputs);
}

typedef struct index_case {
    const char *name;
    uint32_t ratio, entries;
    int64_t tokens, heads, dim, seqs, base;
    int64_t scale_low, scale_high;
    iso_fill wt;
} index_case;

static iso_case start_case(const index_case *c)
{
    const int64_t pages = c->entries / PAGE_ROWS, pool = (c->seqs * pages * 7 + 1) * PAGE_ROWS;
    const int64_t scales = c->dim / ISO_INDEX_GROUP;
    const iso_index_params params = {c->ratio, PAGE_ROWS, c->entries,
                                     iso_inv_sqrt_u32((uint32_t)(c->heads * c->dim))};
    iso_case test = iso_case_start(ISO_OP_ID_index_score, "%s_%lldx%lldx%lld_m%u_b%lld_e%u",
                                   c->name, (long long)c->tokens, (long long)c->heads,
                                   (long long)c->dim, c->ratio, (long long)c->base, c->entries);

    iso_case_in(&test, Q, iso_desc3(ISO_DTYPE_E2M1, c->tokens, c->heads, c->dim), ISO_FILL_CODES,
                0, 0);
    iso_case_in(&test, QS, iso_desc3(ISO_DTYPE_UE8M0, c->tokens, c->heads, scales),
                ISO_FILL_RANGE, c->scale_low, c->scale_high);
    iso_case_in(&test, KEY, iso_desc2(ISO_DTYPE_E2M1, pool, c->dim), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, KS, iso_desc2(ISO_DTYPE_UE8M0, pool, scales), ISO_FILL_RANGE,
                c->scale_low, c->scale_high);
    iso_case_in(&test, WT, iso_desc2(ISO_DTYPE_BF16, c->tokens, c->heads), c->wt, 0, 0);
    iso_case_in(&test, ROWS, iso_desc2(ISO_DTYPE_I32, c->tokens, ISO_ROW_WORDS), ISO_FILL_ZERO,
                c->base, 0);
    iso_case_in(&test, PAGES, iso_desc2(ISO_DTYPE_I32, c->seqs, pages), ISO_FILL_ZERO, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    test.make = make_tables;
    return test;
}

static void add_bad_case(iso_case_sink *sink, const char *name, uint32_t table, uint32_t word,
                         int32_t value)
{
    const index_case shape = {name, 2, 32, 3, 2, 32, 2, 40, 120, 130, ISO_FILL_MILD};
    iso_case test = start_case(&shape);

    test.input[table].hi = iso_case_spoil(word, value);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

void iso_index_score_cases(iso_case_sink *sink)
{
    static const index_case rows[] = {
        {"empty", 1, 32, 0, 2, 32, 1, 0, 120, 130, ISO_FILL_MILD},
        {"none", 2, 32, 1, 2, 32, 1, 0, 120, 130, ISO_FILL_MILD},
        {"mild", 2, 32, 3, 2, 32, 2, 0, 120, 130, ISO_FILL_MILD},
        {"mild", 1, 64, 1, 1, 96, 1, 30, 120, 130, ISO_FILL_MILD},
        {"mild", 1, 64, 2, 3, 160, 1, 62, 120, 130, ISO_FILL_MILD},
        {"mild", 4, 64, 5, 7, 128, 3, 126, 120, 130, ISO_FILL_MILD},
        {"mild", 2, 96, 5, 3, 64, 2, 127, 120, 130, ISO_FILL_MILD},
        {"mild", 1, 32, 1, 2, 1152, 1, 12, 120, 130, ISO_FILL_MILD},
        {"real", 2, 160, 2, 32, 128, 1, 315, 118, 128, ISO_FILL_MILD},
        {"low_scale", 1, 64, 2, 3, 128, 1, 40, 86, 90, ISO_FILL_MILD},
        {"mid_scale", 1, 64, 2, 3, 128, 1, 40, 100, 104, ISO_FILL_TINY},
        {"wide_scale", 1, 64, 2, 3, 128, 1, 40, 86, 140, ISO_FILL_MILD},
        {"tiny", 1, 64, 2, 3, 128, 1, 40, 120, 130, ISO_FILL_TINY},
        {"zero", 1, 64, 2, 3, 128, 1, 40, 120, 130, ISO_FILL_ZERO},
        {"ties", 1, 64, 2, 3, 128, 1, 40, 127, 127, ISO_FILL_TIES},
        {"cancel", 1, 64, 2, 8, 32, 1, 40, 127, 127, ISO_FILL_CANCEL},
    };
    const index_case live = {"live", 1, 64, 7, 3, 64, 2, 11, 120, 130, ISO_FILL_MILD};
    const index_case high = {"high_scale", 1, 64, 2, 3, 64, 1, 40, 170, 175, ISO_FILL_MILD};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(&rows[i]);
        iso_case_add(sink, &test);
    }
    test = start_case(&live);
    iso_case_live(&test, Q, 1);
    iso_case_live(&test, QS, 1);
    iso_case_live(&test, WT, 1);
    iso_case_live(&test, ROWS, 1);
    test.live = 3;
    iso_case_add(sink, &test);
    test = start_case(&high);
    test.flags_expected = ISO_FLAG_RANGE;
    iso_case_add(sink, &test);
    add_bad_case(sink, "bad_seq_minus", ROWS, ISO_ROW_SEQ, -1);
    add_bad_case(sink, "bad_seq_max", ROWS, ISO_ROW_SEQ, 2);
    add_bad_case(sink, "bad_seq_int", ROWS, ISO_ROW_SEQ, INT32_MAX);
    add_bad_case(sink, "bad_position_minus", ROWS, ISO_ROW_POSITION, -1);
    add_bad_case(sink, "bad_position_max", ROWS, ISO_ROW_POSITION, 65);
    add_bad_case(sink, "bad_position_int", ROWS, ISO_ROW_POSITION, INT32_MAX);
    add_bad_case(sink, "bad_page_minus", PAGES, 1, -1);
    add_bad_case(sink, "bad_page_max", PAGES, 1, 29);
    add_bad_case(sink, "bad_page_int", PAGES, 1, INT32_MAX);
}
