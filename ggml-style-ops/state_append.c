/* state_append: copy emitted rows to where their entries lie in a paged pool.
 *   pool[pages[seq, entry / page_rows] * page_rows + entry mod page_rows] = src[g]
 * Shapes:   pool [R,n] of any dtype; src [G,n] of the same dtype; groups i32 [G,2]: {seq, entry};
 *           pages i32 [B,P]. The output is the pool, in place.
 * Units:    one group; the entries of a call are distinct.
 * Order:    none: bytes are moved.
 * Ranges:   any bits.
 * Params:   page_rows a power of two.
 * Aliasing: the output is input 0; src and pool do not overlap.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX, and nothing is written,
 *           for: seq outside [0, B); entry < 0; an entry without a page.
 * Source:   none; the paging is isobit's. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/table_rules.h"

enum { POOL, SRC, GROUPS, PAGES, OUT };

iso_status iso_state_append_infer(iso_op_call *call, iso_error *error)
{
    const iso_page_params *params = (const void *)call->params;
    const iso_tensor_desc *pool = &call->in[POOL], *src = &call->in[SRC];

    ISO_TRY(iso_rule_page_rows(call, params->page_rows, error));
    ISO_TRY(iso_rule_input(call, POOL, "pool", pool->dtype, 2, error));
    ISO_TRY(iso_rule_within(call, POOL, "pool", 1, 1, 1 << 28, error));
    ISO_TRY(iso_rule_input(call, SRC, "src", pool->dtype, 2, error));
    ISO_TRY(iso_rule_extent(call, SRC, "src", 1, pool->extent[1], error));
    ISO_TRY(iso_rule_table(call, GROUPS, "groups", src->extent[0], ISO_GROUP_WORDS, error));
    ISO_TRY(iso_rule_table(call, PAGES, "pages", -1, -1, error));
    call->out[0] = *pool;
    return ISO_OK;
}

void iso_state_append_fill(const iso_op_call *call, void *args)
{
    const iso_page_params *params = (const void *)call->params;
    const iso_tensor_desc *pool = &call->in[POOL];
    uint64_t row_bytes = 0;

    ISO_ASSERT(iso_dtype_bytes(pool->dtype, (uint64_t)pool->extent[1], &row_bytes));
    *(iso_state_append_args *)args = (iso_state_append_args){
        .rows = iso_live_of(&call->in[GROUPS]),
        .row_bytes = (uint32_t)row_bytes,                /* <= 8 * 2^28 */
        .pool_rows = (uint32_t)pool->extent[0],
        .seqs = (uint32_t)call->in[PAGES].extent[0],
        .pages = (uint32_t)call->in[PAGES].extent[1],
        .page_rows = params->page_rows,
    };
}

uint64_t iso_state_append_units(const void *args)
{
    const iso_state_append_args *a = args;

    return a->rows.count;
}

void iso_state_append_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_state_append_args *a = args;
    const iso_page_table table = {tensors->at[PAGES], a->seqs, a->pages, a->page_rows,
                                  a->pool_rows};
    const int32_t *groups = tensors->at[GROUPS];
    const unsigned char *src = tensors->at[SRC];
    unsigned char *pool = tensors->at[OUT];
    uint32_t flags = 0;

    for (uint64_t g = units.begin; g < units.end; g++) {
        const int32_t *group = groups + g * ISO_GROUP_WORDS;
        uint32_t row;

        if (iso_page_row(&table, group[ISO_GROUP_SEQ], group[ISO_GROUP_ENTRY], &row))
            memcpy(pool + (uint64_t)row * a->row_bytes, src + g * a->row_bytes, a->row_bytes);
        else
            flags |= ISO_FLAG_INDEX;
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

enum { PAGE_ROWS = 16 };

/* Sequence s gets every B-th group; its entries ascend by 1 from the base (lo of groups). */
static void make_tables(const iso_case *test, void *const *inputs)
{
    const int32_t seq_count = (int32_t)test->call.in[PAGES].extent[0];
    const int32_t live = (int32_t)iso_case_rows(test, GROUPS);
    int32_t *groups = inputs[GROUPS];

    iso_case_pages(test, PAGES, (uint32_t)test->call.in[POOL].extent[0], PAGE_ROWS, inputs);
    for (int32_t g = 0; g < (int32_t)test->call.in[GROUPS].extent[0]; g++) {
        int32_t *group = groups + g * ISO_GROUP_WORDS;

        group[ISO_GROUP_SEQ] = g < live ? g % seq_count : ISO_CASE_UNUSED;
        group[ISO_GROUP_ENTRY] = (int32_t)test->input[GROUPS].lo + g / seq_count;
    }
    iso_case_spoil_tables(test, inputs);
}

static iso_case start_case(const char *name, iso_dtype dtype, int64_t groups, int64_t dim,
                           int64_t seqs, int64_t base)
{
    const iso_page_params params = {PAGE_ROWS};
    const iso_fill fill = ISO_FILL_RAW;
    iso_case test = iso_case_start(ISO_OP_ID_state_append, "%s_%s_%lldx%lld_b%lld", name,
                                   iso_dtype_name(dtype), (long long)groups, (long long)dim,
                                   (long long)base);

    iso_case_in(&test, POOL, iso_desc2(dtype, (seqs * 3 * 7 + 1) * PAGE_ROWS, dim), fill, 0, 0);
    iso_case_in(&test, SRC, iso_desc2(dtype, groups, dim), fill, 0, 0);
    iso_case_in(&test, GROUPS, iso_desc2(ISO_DTYPE_I32, groups, ISO_GROUP_WORDS), ISO_FILL_ZERO,
                base, 0);
    iso_case_in(&test, PAGES, iso_desc2(ISO_DTYPE_I32, seqs, 3), ISO_FILL_ZERO, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    test.make = make_tables;
    return test;
}

static void add_bad_case(iso_case_sink *sink, const char *name, uint32_t table, uint32_t word,
                         int32_t value)
{
    iso_case test = start_case(name, ISO_DTYPE_BF16, 3, 5, 2, 7);

    test.input[table].hi = iso_case_spoil(word, value);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

void iso_state_append_cases(iso_case_sink *sink)
{
    static const iso_dtype dtypes[] = {ISO_DTYPE_F32, ISO_DTYPE_BF16, ISO_DTYPE_E4M3,
                                       ISO_DTYPE_E2M1, ISO_DTYPE_UE8M0, ISO_DTYPE_I32};
    iso_case test = start_case("empty", ISO_DTYPE_BF16, 0, 8, 1, 0);

    iso_case_add(sink, &test);
    for (size_t i = 0; i < ISO_COUNT_OF(dtypes); i++) {
        test = start_case("move", dtypes[i], 7, 34, 3, 15);
        iso_case_add(sink, &test);
    }
    test = start_case("one", ISO_DTYPE_UE8M0, 1, 1, 1, 0);
    iso_case_add(sink, &test);
    test = start_case("last", ISO_DTYPE_E2M1, 2, 512, 2, 47);
    iso_case_add(sink, &test);
    test = start_case("live", ISO_DTYPE_E4M3, 9, 33, 2, 14);
    iso_case_live(&test, SRC, 1);
    iso_case_live(&test, GROUPS, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    add_bad_case(sink, "bad_seq_minus", GROUPS, ISO_GROUP_SEQ, -1);
    add_bad_case(sink, "bad_seq_max", GROUPS, ISO_GROUP_SEQ, 2);
    add_bad_case(sink, "bad_seq_int", GROUPS, ISO_GROUP_SEQ, INT32_MAX);
    add_bad_case(sink, "bad_entry_minus", GROUPS, ISO_GROUP_ENTRY, -1);
    add_bad_case(sink, "bad_entry_max", GROUPS, ISO_GROUP_ENTRY, 48);
    add_bad_case(sink, "bad_entry_int", GROUPS, ISO_GROUP_ENTRY, INT32_MAX);
    add_bad_case(sink, "bad_page_minus", PAGES, 0, -1);
    add_bad_case(sink, "bad_page_max", PAGES, 0, 43);
    add_bad_case(sink, "bad_page_int", PAGES, 0, INT32_MAX);
}
