/* topk_rows: the k best visible entries of a token, in ascending order.
 * Shapes:   score bf16 [T,R]; rows i32 [T,2]; bits u32 [T,R/32] or absent (all entries are
 *           candidates; with bits 32 | R); ids i32 [T,k]: ascending, then -1. R >= 1.
 * Units:    one token.
 * Order:    numerics 17: higher score first, then the lower index; integers only.
 * Ranges:   scores in the domain.
 * Params:   ratio >= 1; count = k, 1..2^20: 512 in V4.1.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX and a row of -1 if the
 *           position is negative or more than R entries are visible.
 * Source:   released inference/model.py, Indexer.forward. Differs from it in: ties are decided. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/select.h"
#include "ggml-style-ops/table_rules.h"

enum { SCORE, ROWS, BITS, IDS };

iso_status iso_topk_rows_infer(iso_op_call *call, iso_error *error)
{
    const iso_topk_params *params = (const void *)call->params;
    const iso_tensor_desc *score = &call->in[SCORE];

    ISO_TRY(iso_rule_param(call, params->ratio >= 1, "ratio is 0", error));
    ISO_TRY(iso_rule_param(call, params->count >= 1 && params->count <= 1u << 20,
                           "count not in 1..2^20", error));
    ISO_TRY(iso_rule_input(call, SCORE, "score", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_within(call, SCORE, "score", 1, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_table(call, ROWS, "rows", score->extent[0], ISO_ROW_WORDS, error));
    if (iso_call_has(call, BITS)) {
        ISO_TRY(iso_rule_multiple(call, SCORE, "score", 1, 32, error));
        ISO_TRY(iso_rule_input(call, BITS, "bits", ISO_DTYPE_U32, 2, error));
        ISO_TRY(iso_rule_extent(call, BITS, "bits", 0, score->extent[0], error));
        ISO_TRY(iso_rule_extent(call, BITS, "bits", 1, score->extent[1] / 32, error));
    }
    call->out[0] = iso_desc2(ISO_DTYPE_I32, score->extent[0], params->count);
    iso_live_copy(&call->out[0], score, 1);
    return ISO_OK;
}

void iso_topk_rows_fill(const iso_op_call *call, void *args)
{
    const iso_topk_params *params = (const void *)call->params;

    *(iso_topk_rows_args *)args = (iso_topk_rows_args){
        .rows = iso_live_of(&call->in[SCORE]),
        .entries = (uint32_t)call->in[SCORE].extent[1],
        .ratio = params->ratio,
        .count = params->count,
    };
}

uint64_t iso_topk_rows_units(const void *args)
{
    const iso_topk_rows_args *a = args;

    return a->rows.count;
}

typedef struct entry_list {
    const uint16_t *score;
    const uint32_t *bits;        /* or NULL */
    uint32_t visible;
    uint32_t *flags;
} entry_list;

static bool is_candidate(const entry_list *list, uint32_t j)
{
    return list->bits == NULL || (list->bits[j / 32] >> j % 32 & 1u) != 0;
}

static uint32_t entry_high(const entry_list *list, uint32_t j)
{
    return lane_key_high(lane_bf16_f32(list->score[j]), list->flags);
}

static uint64_t count_entries(const void *context, uint32_t high)
{
    const entry_list *list = context;
    uint64_t count = 0;

    for (uint32_t j = 0; j < list->visible; j++)
        count += is_candidate(list, j) && entry_high(list, j) >= high;
    return count;
}

void iso_topk_rows_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_topk_rows_args *a = args;
    const uint16_t *score = tensors->at[SCORE];
    const int32_t *rows = tensors->at[ROWS];
    const uint32_t *bits = tensors->at[BITS];
    int32_t *ids = tensors->at[IDS];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const int32_t position = rows[t * ISO_ROW_WORDS + ISO_ROW_POSITION];
        const int64_t visible = iso_visible_entries(position, a->ratio);
        entry_list list = {score + t * a->entries,
                           bits != NULL ? bits + t * (a->entries / 32) : NULL,
                           (uint32_t)visible, &flags};
        int32_t *row = ids + t * a->count;
        uint32_t found = 0;
        iso_cut cut;

        if (position < 0 || visible > a->entries) {
            flags |= ISO_FLAG_INDEX;
            list.visible = 0;
        }
        cut = iso_cut_find(count_entries, &list, a->count);
        for (uint32_t j = 0; j < list.visible; j++)
            if (is_candidate(&list, j) && iso_cut_take(&cut, entry_high(&list, j), 1))
                row[found++] = (int32_t)j;
        while (found < a->count)
            row[found++] = -1;
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

static void make_tables(const iso_case *test, void *const *inputs)
{
    iso_case_rows_only(test, ROWS, 2, inputs);
    iso_case_spoil_tables(test, inputs);
}

static iso_case start_case(const char *name, int64_t tokens, int64_t entries, int64_t base,
                           iso_topk_params params, iso_fill score)
{
    iso_case test = iso_case_start(ISO_OP_ID_topk_rows, "%s_%lldx%lld_m%u_b%lld_k%u", name,
                                   (long long)tokens, (long long)entries, params.ratio,
                                   (long long)base, params.count);

    iso_case_in(&test, SCORE, iso_desc2(ISO_DTYPE_BF16, tokens, entries), score, 0, 0);
    iso_case_in(&test, ROWS, iso_desc2(ISO_DTYPE_I32, tokens, ISO_ROW_WORDS), ISO_FILL_ZERO, base,
                0);
    iso_case_params(&test, &params, sizeof params);
    test.make = make_tables;
    return test;
}

static void add_bits(iso_case *test, iso_fill fill)
{
    const iso_tensor_desc *score = &test->call.in[SCORE];

    iso_case_in(test, BITS, iso_desc2(ISO_DTYPE_U32, score->extent[0], score->extent[1] / 32),
                fill, 0, 0);
}

static void add_bad_case(iso_case_sink *sink, const char *name, int32_t position)
{
    iso_case test = start_case(name, 3, 40, 20, (iso_topk_params){1, 4}, ISO_FILL_MILD);

    test.input[ROWS].hi = iso_case_spoil(ISO_ROW_POSITION, position);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

void iso_topk_rows_cases(iso_case_sink *sink)
{
    static const struct {
        const char *name;
        int64_t tokens, entries, base;
        iso_topk_params params;
        iso_fill score;
    } rows[] = {
        {"empty", 0, 32, 0, {1, 8}, ISO_FILL_MILD},
        {"none", 1, 32, 0, {2, 8}, ISO_FILL_MILD},
        {"first", 3, 7, 0, {1, 1}, ISO_FILL_MILD},
        {"fewer", 5, 61, 13, {2, 16}, ISO_FILL_MILD},
        {"edge", 7, 61, 29, {2, 16}, ISO_FILL_MILD},
        {"mild", 3, 601, 590, {1, 63}, ISO_FILL_MILD},
        {"mild", 3, 601, 590, {1, 64}, ISO_FILL_WIDE},
        {"mild", 3, 601, 590, {1, 65}, ISO_FILL_TINY},
        {"ties", 5, 601, 590, {1, 127}, ISO_FILL_TIES},
        {"ties", 5, 97, 90, {1, 31}, ISO_FILL_TIES},
        {"zero", 3, 601, 590, {1, 100}, ISO_FILL_ZERO},
        {"constant", 3, 601, 590, {1, 100}, ISO_FILL_CONSTANT},
        {"onehot", 3, 601, 590, {1, 2}, ISO_FILL_ONEHOT},
        {"sorted", 3, 601, 590, {1, 100}, ISO_FILL_SORTED},
        {"cancel", 3, 601, 590, {1, 100}, ISO_FILL_CANCEL},
        {"real", 2, 4096, 4090, {1, 512}, ISO_FILL_MILD},
        {"real_ties", 2, 2000, 3990, {2, 512}, ISO_FILL_TIES},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, rows[i].tokens, rows[i].entries, rows[i].base,
                          rows[i].params, rows[i].score);
        iso_case_add(sink, &test);
    }
    test = start_case("bits", 5, 320, 300, (iso_topk_params){1, 50}, ISO_FILL_TIES);
    add_bits(&test, ISO_FILL_RAW);
    iso_case_add(sink, &test);
    test = start_case("bits_few", 5, 320, 300, (iso_topk_params){1, 200}, ISO_FILL_MILD);
    add_bits(&test, ISO_FILL_RAW);
    iso_case_add(sink, &test);
    test = start_case("bits_none", 2, 64, 50, (iso_topk_params){1, 9}, ISO_FILL_MILD);
    add_bits(&test, ISO_FILL_ZERO);
    iso_case_add(sink, &test);
    test = start_case("live", 8, 96, 70, (iso_topk_params){1, 20}, ISO_FILL_MILD);
    iso_case_live(&test, SCORE, 1);
    iso_case_live(&test, ROWS, 1);
    test.live = 5;
    iso_case_add(sink, &test);
    add_bad_case(sink, "bad_position_minus", -1);
    add_bad_case(sink, "bad_position_max", 40);
    add_bad_case(sink, "bad_position_int", INT32_MAX);
}
