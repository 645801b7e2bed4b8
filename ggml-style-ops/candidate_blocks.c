/* candidate_blocks: the best blocks of compressed entries of a token, as bits of entries.
 *   A block is `block` consecutive entries; its key is that of its largest visible score with the
 *   block index. The block of the last visible entry precedes all. The `count` best are kept.
 * Shapes:   score bf16 [T,R]; rows i32 [T,2]; bits u32 [T,R/32], bit j of a row is bit j mod 32 of
 *           word j / 32: entry j is visible and its block is kept. R a positive multiple of 32.
 * Units:    one token.
 * Order:    numerics 17: higher score first, then the lower block; integers only.
 * Ranges:   scores in the domain.
 * Params:   ratio, block, count >= 1: 1, 8, 2048 in V4.1.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX and a row of zeros if the
 *           position is negative or more than R entries are visible.
 * Source:   released inference/model.py, Indexer (hierarchical candidates). Differs from it in:
 *           ties are decided. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/select.h"
#include "ggml-style-ops/table_rules.h"

enum { SCORE, ROWS, BITS };

iso_status iso_candidate_blocks_infer(iso_op_call *call, iso_error *error)
{
    const iso_candidate_params *params = (const void *)call->params;
    const iso_tensor_desc *score = &call->in[SCORE];

    ISO_TRY(iso_rule_param(call, params->ratio >= 1, "ratio is 0", error));
    ISO_TRY(iso_rule_param(call, params->block >= 1, "block is 0", error));
    ISO_TRY(iso_rule_param(call, params->count >= 1, "count is 0", error));
    ISO_TRY(iso_rule_input(call, SCORE, "score", ISO_DTYPE_BF16, 2, error));
    ISO_TRY(iso_rule_multiple(call, SCORE, "score", 1, 32, error));
    ISO_TRY(iso_rule_table(call, ROWS, "rows", score->extent[0], ISO_ROW_WORDS, error));
    call->out[0] = iso_desc2(ISO_DTYPE_U32, score->extent[0], score->extent[1] / 32);
    iso_live_copy(&call->out[0], score, 1);
    return ISO_OK;
}

void iso_candidate_blocks_fill(const iso_op_call *call, void *args)
{
    const iso_candidate_params *params = (const void *)call->params;

    *(iso_candidate_blocks_args *)args = (iso_candidate_blocks_args){
        .rows = iso_live_of(&call->in[SCORE]),
        .entries = (uint32_t)call->in[SCORE].extent[1],
        .ratio = params->ratio,
        .block = params->block,
        .count = params->count,
    };
}

uint64_t iso_candidate_blocks_units(const void *args)
{
    const iso_candidate_blocks_args *a = args;

    return a->rows.count;
}

typedef struct block_list {
    const uint16_t *score;
    uint32_t visible, block;     /* entries */
    uint32_t pinned;             /* block index; its blocks precede all others */
    uint32_t *flags;
} block_list;

static uint32_t block_high(const block_list *list, uint32_t block)
{
    const uint64_t begin = (uint64_t)block * list->block;
    uint32_t best = 0;

    for (uint64_t j = begin; j < begin + list->block && j < list->visible; j++) {
        const uint32_t high = lane_key_high(lane_bf16_f32(list->score[j]), list->flags);

        best = high > best ? high : best;
    }
    return best;
}

/* Number of blocks, the pinned one aside, whose high word is >= high. */
static uint64_t count_blocks(const void *context, uint32_t high)
{
    const block_list *list = context;
    uint64_t count = 0;

    for (uint32_t b = 0; b <= list->pinned; b++)
        count += b != list->pinned && block_high(list, b) >= high;
    return count;
}

static void keep_blocks(const block_list *list, uint32_t count, uint32_t *bits)
{
    iso_cut cut = iso_cut_find(count_blocks, list, count - 1);

    for (uint32_t b = 0; b <= list->pinned; b++) {
        const uint64_t begin = (uint64_t)b * list->block;

        if (b != list->pinned && !iso_cut_take(&cut, block_high(list, b), 1))
            continue;
        for (uint64_t j = begin; j < begin + list->block && j < list->visible; j++)
            bits[j / 32] |= 1u << j % 32;
    }
}

void iso_candidate_blocks_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_candidate_blocks_args *a = args;
    const uint16_t *score = tensors->at[SCORE];
    const int32_t *rows = tensors->at[ROWS];
    uint32_t *bits = tensors->at[BITS];
    uint32_t flags = 0;

    for (uint64_t t = units.begin; t < units.end; t++) {
        const int32_t position = rows[t * ISO_ROW_WORDS + ISO_ROW_POSITION];
        const int64_t visible = iso_visible_entries(position, a->ratio);
        uint32_t *row = bits + t * (a->entries / 32);
        block_list list = {score + t * a->entries, (uint32_t)visible, a->block, 0, &flags};

        memset(row, 0, a->entries / 32 * sizeof *row);
        if (position < 0 || visible > a->entries)
            flags |= ISO_FLAG_INDEX;
        else if (visible > 0) {
            list.pinned = (uint32_t)(visible - 1) / a->block;
            keep_blocks(&list, a->count, row);
        }
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
                           iso_candidate_params params, iso_fill score)
{
    iso_case test = iso_case_start(ISO_OP_ID_candidate_blocks, "%s_%lldx%lld_m%u_b%lld_%ux%u",
                                   name, (long long)tokens, (long long)entries, params.ratio,
                                   (long long)base, params.count, params.block);

    iso_case_in(&test, SCORE, iso_desc2(ISO_DTYPE_BF16, tokens, entries), score, 0, 0);
    iso_case_in(&test, ROWS, iso_desc2(ISO_DTYPE_I32, tokens, ISO_ROW_WORDS), ISO_FILL_ZERO, base,
                0);
    iso_case_params(&test, &params, sizeof params);
    test.make = make_tables;
    return test;
}

static void add_bad_case(iso_case_sink *sink, const char *name, int32_t position)
{
    iso_case test = start_case(name, 3, 32, 20, (iso_candidate_params){1, 8, 2}, ISO_FILL_MILD);

    test.input[ROWS].hi = iso_case_spoil(ISO_ROW_POSITION, position);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

void iso_candidate_blocks_cases(iso_case_sink *sink)
{
    static const struct {
        const char *name;
        int64_t tokens, entries, base;
        iso_candidate_params params;
        iso_fill score;
    } rows[] = {
        {"empty", 0, 32, 0, {1, 8, 4}, ISO_FILL_MILD},
        {"none", 1, 32, 0, {2, 8, 4}, ISO_FILL_MILD},
        {"first", 3, 32, 0, {1, 8, 4}, ISO_FILL_MILD},
        {"all", 3, 64, 50, {1, 8, 2048}, ISO_FILL_MILD},
        {"cut", 9, 64, 52, {1, 8, 3}, ISO_FILL_MILD},
        {"one", 5, 64, 52, {1, 8, 1}, ISO_FILL_MILD},
        {"cut", 7, 320, 290, {1, 8, 11}, ISO_FILL_WIDE},
        {"cut", 5, 160, 300, {2, 7, 5}, ISO_FILL_MILD},
        {"single", 5, 96, 60, {1, 1, 9}, ISO_FILL_MILD},
        {"whole", 5, 96, 60, {1, 4096, 1}, ISO_FILL_MILD},
        {"tiny", 5, 320, 290, {1, 8, 11}, ISO_FILL_TINY},
        {"ties", 9, 320, 290, {1, 8, 11}, ISO_FILL_TIES},
        {"zero", 5, 320, 290, {1, 8, 11}, ISO_FILL_ZERO},
        {"constant", 5, 320, 290, {1, 8, 11}, ISO_FILL_CONSTANT},
        {"onehot", 5, 320, 290, {1, 8, 2}, ISO_FILL_ONEHOT},
        {"sorted", 5, 320, 290, {1, 8, 11}, ISO_FILL_SORTED},
        {"real", 2, 1024, 1010, {1, 8, 100}, ISO_FILL_MILD},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(rows[i].name, rows[i].tokens, rows[i].entries, rows[i].base,
                          rows[i].params, rows[i].score);
        iso_case_add(sink, &test);
    }
    test = start_case("live", 8, 96, 70, (iso_candidate_params){1, 8, 3}, ISO_FILL_MILD);
    iso_case_live(&test, SCORE, 1);
    iso_case_live(&test, ROWS, 1);
    test.live = 5;
    iso_case_add(sink, &test);
    add_bad_case(sink, "bad_position_minus", -1);
    add_bad_case(sink, "bad_position_max", 32);
    add_bad_case(sink, "bad_position_int", INT32_MAX);
}
