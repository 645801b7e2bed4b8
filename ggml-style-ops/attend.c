/* attend: attention of every head over the window and the selected compressed rows, and a sink.
 *   keys: raw positions max(p - window + 1, 0) .. p in blocks of 64 by absolute position, then the
 *   selected entries in blocks of 64 by rank. Values are the keys. Per block b with maximum m_b:
 *   s_j = clean(q K_j * scale); p_j = clean(exp(s_j - m_b)); l_b = sum p_j; o_b = sum bf16(p_j) K_j
 *   out = sum_b clean(o_b f_b) / (sum_b l_b f_b + exp(sink - m)),  f_b = clean(exp(m_b - m))
 * Shapes:   q bf16 [T,H,d]; ring_code e4m3 [slots,W,d]; ring_scale ue8m0 [slots,W,d/32];
 *           pend_code e4m3 [T,d], pend_scale ue8m0 [T,d/32]: the step's own rows; kv_code e2m1
 *           [R,d], kv_scale e4m3 [R,d/16], pages i32 [B,P], ids i32 [T,n]: all four or none;
 *           rows i32 [T,2]; seqs i32 [B,4]; sink f32 [H] or absent; out bf16 [T,H,d].
 *           W = window; d <= 512, 32 | d.
 * Units:    one head of one token.
 * Order:    numerics 12; the arrangement depends on the position and the list only.
 * Ranges:   codes are not NaN, ring scales in [105, 169], kv scales in [1, 126]: keys are bf16
 *           numbers in the domain; l >= 1 (the largest term is exp(0)).
 * Params:   window 1..2^20; page_rows a power of two (with compressed rows); scale > 0.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX and a zero row for: seq
 *           outside [0, B); position < 0; a raw position >= base whose row is not one of the
 *           sequence's live rows; slot outside [0, slots) or base - lo > W if some raw position is
 *           below base; ids not ascending before the first -1, or without a page.
 * Source:   released inference/kernel.py, sparse_attn. Differs from it in: blocks, and two passes
 *           instead of a running maximum. */
#include "ggml-style-ops/attention.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/inv_sqrt.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/table_rules.h"

enum {
    Q, RING_CODE, RING_SCALE, PEND_CODE, PEND_SCALE, KV_CODE, KV_SCALE, PAGES, IDS, ROWS, SEQS,
    SINK, OUT
};
enum { RAW_GROUP = 32, KV_GROUP = 16 };

static iso_status infer_raw(const iso_op_call *call, iso_error *error)
{
    const iso_attend_params *params = (const void *)call->params;
    const int64_t tokens = call->in[Q].extent[0], dim = call->in[Q].extent[2];
    const int64_t slots = call->in[RING_CODE].extent[0];

    ISO_TRY(iso_rule_input(call, RING_CODE, "ring_code", ISO_DTYPE_E4M3, 3, error));
    ISO_TRY(iso_rule_extent(call, RING_CODE, "ring_code", 1, params->window, error));
    ISO_TRY(iso_rule_extent(call, RING_CODE, "ring_code", 2, dim, error));
    ISO_TRY(iso_rule_input(call, RING_SCALE, "ring_scale", ISO_DTYPE_UE8M0, 3, error));
    ISO_TRY(iso_rule_extent(call, RING_SCALE, "ring_scale", 0, slots, error));
    ISO_TRY(iso_rule_extent(call, RING_SCALE, "ring_scale", 1, params->window, error));
    ISO_TRY(iso_rule_extent(call, RING_SCALE, "ring_scale", 2, dim / RAW_GROUP, error));
    ISO_TRY(iso_rule_input(call, PEND_CODE, "pend_code", ISO_DTYPE_E4M3, 2, error));
    ISO_TRY(iso_rule_extent(call, PEND_CODE, "pend_code", 0, tokens, error));
    ISO_TRY(iso_rule_extent(call, PEND_CODE, "pend_code", 1, dim, error));
    ISO_TRY(iso_rule_input(call, PEND_SCALE, "pend_scale", ISO_DTYPE_UE8M0, 2, error));
    ISO_TRY(iso_rule_extent(call, PEND_SCALE, "pend_scale", 0, tokens, error));
    return iso_rule_extent(call, PEND_SCALE, "pend_scale", 1, dim / RAW_GROUP, error);
}

static iso_status infer_compressed(const iso_op_call *call, iso_error *error)
{
    const iso_attend_params *params = (const void *)call->params;
    const iso_tensor_desc *kv = &call->in[KV_CODE];
    const int64_t tokens = call->in[Q].extent[0], dim = call->in[Q].extent[2];
    bool any = false;

    for (uint32_t i = KV_CODE; i <= IDS; i++)
        any = any || iso_call_has(call, i);
    if (!any)
        return ISO_OK;
    ISO_TRY(iso_rule_page_rows(call, params->page_rows, error));
    ISO_TRY(iso_rule_input(call, KV_CODE, "kv_code", ISO_DTYPE_E2M1, 2, error));
    ISO_TRY(iso_rule_extent(call, KV_CODE, "kv_code", 1, dim, error));
    ISO_TRY(iso_rule_input(call, KV_SCALE, "kv_scale", ISO_DTYPE_E4M3, 2, error));
    ISO_TRY(iso_rule_extent(call, KV_SCALE, "kv_scale", 0, kv->extent[0], error));
    ISO_TRY(iso_rule_extent(call, KV_SCALE, "kv_scale", 1, dim / KV_GROUP, error));
    ISO_TRY(iso_rule_table(call, PAGES, "pages", call->in[SEQS].extent[0], -1, error));
    return iso_rule_table(call, IDS, "ids", tokens, -1, error);
}

iso_status iso_attend_infer(iso_op_call *call, iso_error *error)
{
    const iso_attend_params *params = (const void *)call->params;
    const iso_tensor_desc *q = &call->in[Q];

    ISO_TRY(iso_rule_input(call, Q, "q", ISO_DTYPE_BF16, 3, error));
    ISO_TRY(iso_rule_within(call, Q, "q", 1, 1, 1 << 16, error));
    ISO_TRY(iso_rule_multiple(call, Q, "q", 2, RAW_GROUP, error));
    ISO_TRY(iso_rule_within(call, Q, "q", 2, 1, ISO_HEAD_DIM_MAX, error));
    ISO_TRY(iso_rule_param(call, params->window >= 1 && params->window <= 1u << 20,
                           "window not in 1..2^20", error));
    ISO_TRY(iso_rule_param(call, params->scale > 0.0f && params->scale < 0x1p50f,
                           "scale not in (0, 2^50)", error));
    ISO_TRY(infer_raw(call, error));
    ISO_TRY(iso_rule_table(call, ROWS, "rows", q->extent[0], ISO_ROW_WORDS, error));
    ISO_TRY(iso_rule_table(call, SEQS, "seqs", -1, ISO_SEQ_WORDS, error));
    ISO_TRY(infer_compressed(call, error));
    if (iso_call_has(call, SINK)) {
        ISO_TRY(iso_rule_input(call, SINK, "sink", ISO_DTYPE_F32, 1, error));
        ISO_TRY(iso_rule_extent(call, SINK, "sink", 0, q->extent[1], error));
    }
    call->out[0] = *q;
    return ISO_OK;
}

void iso_attend_fill(const iso_op_call *call, void *args)
{
    const iso_attend_params *params = (const void *)call->params;
    const bool has_kv = iso_call_has(call, IDS);

    *(iso_attend_args *)args = (iso_attend_args){
        .rows = iso_live_of(&call->in[Q]),
        .heads = (uint32_t)call->in[Q].extent[1],
        .dim = (uint32_t)call->in[Q].extent[2],
        .window = params->window,
        .slots = (uint32_t)call->in[RING_CODE].extent[0],
        .tokens = (uint32_t)call->in[Q].extent[0],
        .seqs = (uint32_t)call->in[SEQS].extent[0],
        .pool_rows = has_kv ? (uint32_t)call->in[KV_CODE].extent[0] : 0,
        .pages = has_kv ? (uint32_t)call->in[PAGES].extent[1] : 0,
        .page_rows = has_kv ? params->page_rows : 0,
        .picks = has_kv ? (uint32_t)call->in[IDS].extent[1] : 0,
        .has_sink = iso_call_has(call, SINK),
        .scale = params->scale,
    };
}

uint64_t iso_attend_units(const void *args)
{
    const iso_attend_args *a = args;

    return (uint64_t)a->rows.count * a->heads;
}

/* ---- the keys of one token ---- */

typedef struct token_keys {
    const iso_attend_args *a;
    void *const *at;
    iso_page_table table;
    const int32_t *ids;
    int64_t lo, hi;              /* visible raw positions */
    int64_t base, first;         /* position t >= base is own row first + t - base */
    uint64_t window_blocks;
    uint32_t slot, picked;
    int32_t seq;
} token_keys;

static void decode_raw(const uint8_t *code, const uint8_t *scale, uint32_t dim, float *row)
{
    for (uint32_t c = 0; c < dim; c++)                       /* exact: 4 bits * 2^k */
        row[c] = lane_e4m3_f32(code[c]) * lane_ue8m0_f32(scale[c / RAW_GROUP]);
}

static void decode_kv(const uint8_t *code, const uint8_t *scale, uint32_t dim, float *row)
{
    for (uint32_t c = 0; c < dim; c++)                       /* exact: 2 + 4 bits */
        row[c] = lane_e2m1_f32((uint32_t)code[c / 2] >> 4 * (c % 2))
               * lane_e4m3_f32(scale[c / KV_GROUP]);
}

static void raw_row(const token_keys *k, int64_t position, float *row)
{
    const uint32_t dim = k->a->dim, scales = dim / RAW_GROUP;
    const bool own = position >= k->base;
    const uint64_t index = own ? (uint64_t)(k->first + position - k->base)
                               : (uint64_t)k->slot * k->a->window
                                     + (uint64_t)position % k->a->window;
    const uint8_t *code = k->at[own ? PEND_CODE : RING_CODE];
    const uint8_t *scale = k->at[own ? PEND_SCALE : RING_SCALE];

    decode_raw(code + index * dim, scale + index * scales, dim, row);
}

static bool key_row(const void *context, uint64_t block, uint32_t slot, float *row)
{
    const token_keys *k = context;
    const uint32_t dim = k->a->dim;
    uint64_t rank;
    uint32_t index;

    if (block < k->window_blocks) {
        const int64_t block_number = k->lo / LANE_KEY_BLOCK + (int64_t)block;
        const int64_t position = block_number * LANE_KEY_BLOCK + slot;

        if (position < k->lo || position > k->hi)
            return false;
        raw_row(k, position, row);
        return true;
    }
    rank = (block - k->window_blocks) * LANE_KEY_BLOCK + slot;
    if (rank >= k->picked || !iso_page_row(&k->table, k->seq, k->ids[rank], &index))
        return false;
    decode_kv((const uint8_t *)k->at[KV_CODE] + (uint64_t)index * (dim / 2),
              (const uint8_t *)k->at[KV_SCALE] + (uint64_t)index * (dim / KV_GROUP), dim, row);
    return true;
}

/* Raw positions lo .. hi of the token, and where they lie; false if one of them lies nowhere. */
static bool find_raw(token_keys *k, const int32_t *rows, const int32_t *seqs, uint64_t token)
{
    const int32_t *seq;

    k->seq = rows[token * ISO_ROW_WORDS + ISO_ROW_SEQ];
    k->hi = rows[token * ISO_ROW_WORDS + ISO_ROW_POSITION];
    if (k->seq < 0 || (uint32_t)k->seq >= k->a->seqs || k->hi < 0)
        return false;
    seq = seqs + (uint64_t)(uint32_t)k->seq * ISO_SEQ_WORDS;
    k->lo = k->hi - k->a->window + 1 > 0 ? k->hi - k->a->window + 1 : 0;
    k->window_blocks = (uint64_t)(k->hi / LANE_KEY_BLOCK - k->lo / LANE_KEY_BLOCK + 1);
    k->base = seq[ISO_SEQ_BASE];
    k->first = seq[ISO_SEQ_FIRST];
    if (k->hi >= k->base
        && (k->base < 0 || k->first < 0 || k->hi - k->base >= seq[ISO_SEQ_COUNT]
            || k->first + k->hi - k->base >= k->a->rows.count))
        return false;
    if (k->lo < k->base
        && (seq[ISO_SEQ_SLOT] < 0 || (uint32_t)seq[ISO_SEQ_SLOT] >= k->a->slots
            || k->base - k->lo > k->a->window))
        return false;
    k->slot = (uint32_t)seq[ISO_SEQ_SLOT];
    return true;
}

/* The selected entries up to the first hole; false if one is out of order or has no page. */
static bool find_compressed(token_keys *k, uint64_t token)
{
    const iso_attend_args *a = k->a;
    uint32_t index;

    if (a->picks == 0)
        return true;
    k->table = (iso_page_table){k->at[PAGES], a->seqs, a->pages, a->page_rows, a->pool_rows};
    k->ids = (const int32_t *)k->at[IDS] + token * a->picks;
    for (k->picked = 0; k->picked < a->picks && k->ids[k->picked] != -1; k->picked++) {
        if (!iso_page_row(&k->table, k->seq, k->ids[k->picked], &index))
            return false;
        if (k->picked != 0 && k->ids[k->picked] <= k->ids[k->picked - 1])
            return false;
    }
    return true;
}

void iso_attend_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_attend_args *a = args;
    const uint16_t *q = tensors->at[Q];
    const float *sink = tensors->at[SINK];
    uint16_t *out = tensors->at[OUT];
    uint32_t flags = 0;

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        const uint64_t token = unit / a->heads, head = unit % a->heads;
        token_keys k = {.a = a, .at = tensors->at};
        iso_keys keys = {key_row, &k, 0, a->dim};

        if (!find_raw(&k, tensors->at[ROWS], tensors->at[SEQS], token)
            || !find_compressed(&k, token)) {
            flags |= ISO_FLAG_INDEX;
            memset(out + unit * a->dim, 0, a->dim * sizeof *out);
            continue;
        }
        keys.blocks = k.window_blocks + (k.picked + LANE_KEY_BLOCK - 1) / LANE_KEY_BLOCK;
        iso_attend_row(&keys, q + unit * a->dim, a->scale, a->has_sink ? sink + head : NULL,
                       out + unit * a->dim, &flags);
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

enum { PAGE_ROWS = 16 };

/* seqs and rows from the base in seqs; ids: lo entries (one less for every second token), spread
 * over all pages of the sequence, then holes. */
static void make_tables(const iso_case *test, void *const *inputs)
{
    const uint32_t tokens = iso_case_rows(test, Q), capacity = (uint32_t)test->call.in[Q].extent[0];
    const uint32_t seq_count = (uint32_t)test->call.in[SEQS].extent[0];

    iso_case_seqs(inputs[SEQS], seq_count, tokens, (uint32_t)test->call.in[RING_CODE].extent[0],
                  test->input[SEQS].lo);
    iso_case_token_rows(inputs[ROWS], capacity, inputs[SEQS], seq_count);
    if (iso_call_has(&test->call, IDS)) {
        const uint32_t picks = (uint32_t)test->call.in[IDS].extent[1];
        const uint32_t entries = (uint32_t)test->call.in[PAGES].extent[1] * PAGE_ROWS;
        int32_t *ids = inputs[IDS];

        iso_case_pages(test, PAGES, (uint32_t)test->call.in[KV_CODE].extent[0], PAGE_ROWS, inputs);
        for (uint32_t t = 0; t < capacity; t++) {
            const uint32_t all = (uint32_t)test->input[IDS].lo;
            const uint32_t some = all - (all != 0 && t % 2 == 1);

            for (uint32_t i = 0; i < picks; i++)
                ids[t * picks + i] = i < some ? (int32_t)(i * entries / some) : -1;
        }
    }
    iso_case_spoil_tables(test, inputs);
}

typedef struct attend_case {
    const char *name;
    int64_t tokens, heads, dim, window, seqs, base;
    int64_t picks, selected, pages;      /* pages per sequence; picks 0: no compressed rows */
    bool sink;
    iso_fill q;
} attend_case;

static iso_case start_case(const attend_case *c)
{
    const int64_t slots = c->seqs + 1, pool = (c->seqs * c->pages + 1) * PAGE_ROWS * 5;
    const iso_attend_params params = {(uint32_t)c->window, PAGE_ROWS,
                                      iso_inv_sqrt_u32((uint32_t)c->dim)};
    iso_case test = iso_case_start(ISO_OP_ID_attend, "%s_%lldx%lldx%lld_w%lld_b%lld_s%lld",
                                   c->name, (long long)c->tokens, (long long)c->heads,
                                   (long long)c->dim, (long long)c->window, (long long)c->base,
                                   (long long)c->selected);

    iso_case_in(&test, Q, iso_desc3(ISO_DTYPE_BF16, c->tokens, c->heads, c->dim), c->q, 0, 0);
    iso_case_in(&test, RING_CODE, iso_desc3(ISO_DTYPE_E4M3, slots, c->window, c->dim),
                ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, RING_SCALE, iso_desc3(ISO_DTYPE_UE8M0, slots, c->window,
                                             c->dim / RAW_GROUP), ISO_FILL_RANGE, 116, 121);
    iso_case_in(&test, PEND_CODE, iso_desc2(ISO_DTYPE_E4M3, c->tokens, c->dim), ISO_FILL_CODES,
                0, 0);
    iso_case_in(&test, PEND_SCALE, iso_desc2(ISO_DTYPE_UE8M0, c->tokens, c->dim / RAW_GROUP),
                ISO_FILL_RANGE, 116, 121);
    if (c->picks != 0) {
        iso_case_in(&test, KV_CODE, iso_desc2(ISO_DTYPE_E2M1, pool, c->dim), ISO_FILL_CODES, 0,
                    0);
        iso_case_in(&test, KV_SCALE, iso_desc2(ISO_DTYPE_E4M3, pool, c->dim / KV_GROUP),
                    ISO_FILL_RANGE, 1, 0x48);
        iso_case_in(&test, PAGES, iso_desc2(ISO_DTYPE_I32, c->seqs, c->pages), ISO_FILL_ZERO, 0,
                    0);
        iso_case_in(&test, IDS, iso_desc2(ISO_DTYPE_I32, c->tokens, c->picks), ISO_FILL_ZERO,
                    c->selected, 0);
    }
    iso_case_in(&test, ROWS, iso_desc2(ISO_DTYPE_I32, c->tokens, ISO_ROW_WORDS), ISO_FILL_ZERO,
                0, 0);
    iso_case_in(&test, SEQS, iso_desc2(ISO_DTYPE_I32, c->seqs, ISO_SEQ_WORDS), ISO_FILL_ZERO,
                c->base, 0);
    if (c->sink)
        iso_case_in(&test, SINK, iso_desc1(ISO_DTYPE_F32, c->heads), ISO_FILL_MILD, 0, 0);
    iso_case_params(&test, &params, sizeof params);
    test.make = make_tables;
    return test;
}

static void add_bad_case(iso_case_sink *sink, const char *name, uint32_t table, uint32_t word,
                         int32_t value)
{
    const attend_case shape = {name, 5, 2, 32, 8, 2, 7, 6, 5, 2, true, ISO_FILL_MILD};
    iso_case test = start_case(&shape);

    test.input[table].hi = iso_case_spoil(word, value);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

static void add_bad_cases(iso_case_sink *sink)
{
    add_bad_case(sink, "bad_seq_minus", ROWS, ISO_ROW_SEQ, -1);
    add_bad_case(sink, "bad_seq_max", ROWS, ISO_ROW_SEQ, 2);
    add_bad_case(sink, "bad_seq_int", ROWS, ISO_ROW_SEQ, INT32_MAX);
    add_bad_case(sink, "bad_position_minus", ROWS, ISO_ROW_POSITION, -1);
    add_bad_case(sink, "bad_position_past", ROWS, ISO_ROW_POSITION, 10);
    add_bad_case(sink, "bad_position_int", ROWS, ISO_ROW_POSITION, INT32_MAX);
    add_bad_case(sink, "bad_slot_minus", SEQS, ISO_SEQ_SLOT, -1);
    add_bad_case(sink, "bad_slot_max", SEQS, ISO_SEQ_SLOT, 3);
    add_bad_case(sink, "bad_slot_int", SEQS, ISO_SEQ_SLOT, INT32_MAX);
    add_bad_case(sink, "bad_base_minus", SEQS, ISO_SEQ_BASE, -1);
    add_bad_case(sink, "bad_base_int", SEQS, ISO_SEQ_BASE, INT32_MAX);
    add_bad_case(sink, "bad_first_minus", SEQS, ISO_SEQ_FIRST, -1);
    add_bad_case(sink, "bad_first_max", SEQS, ISO_SEQ_FIRST, 5);
    add_bad_case(sink, "bad_first_int", SEQS, ISO_SEQ_FIRST, INT32_MAX);
    add_bad_case(sink, "bad_count", SEQS, ISO_SEQ_COUNT, 0);
    add_bad_case(sink, "bad_page_minus", PAGES, 0, -1);
    add_bad_case(sink, "bad_page_max", PAGES, 0, 25);
    add_bad_case(sink, "bad_page_int", PAGES, 0, INT32_MAX);
    add_bad_case(sink, "bad_id_minus", IDS, 0, -2);
    add_bad_case(sink, "bad_id_max", IDS, 4, 32);
    add_bad_case(sink, "bad_id_int", IDS, 4, INT32_MAX);
    add_bad_case(sink, "bad_id_order", IDS, 1, 0);
}

void iso_attend_cases(iso_case_sink *sink)
{
    static const int64_t bases[] = {0, 1, 62, 63, 64, 126, 127, 128, 129, 255, 256, 257, 1000};
    static const attend_case rows[] = {
        {"empty", 0, 2, 64, 128, 1, 0, 8, 0, 1, true, ISO_FILL_MILD},
        {"no_kv", 3, 3, 32, 128, 1, 100, 0, 0, 0, true, ISO_FILL_MILD},
        {"no_sink", 3, 3, 96, 128, 1, 100, 8, 5, 1, false, ISO_FILL_MILD},
        {"holes", 3, 2, 64, 128, 2, 5, 8, 0, 1, true, ISO_FILL_MILD},
        {"own_only", 130, 1, 32, 128, 1, 0, 0, 0, 0, true, ISO_FILL_MILD},
        {"own_ring", 37, 1, 32, 128, 3, 120, 4, 4, 1, true, ISO_FILL_MILD},
        {"window_1", 5, 2, 32, 1, 2, 3, 0, 0, 0, true, ISO_FILL_MILD},
        {"window_5", 5, 2, 32, 5, 2, 62, 0, 0, 0, true, ISO_FILL_MILD},
        {"ranks", 2, 1, 32, 8, 1, 900, 63, 63, 12, true, ISO_FILL_MILD},
        {"ranks", 2, 1, 32, 8, 1, 900, 64, 64, 12, true, ISO_FILL_MILD},
        {"ranks", 2, 1, 32, 8, 1, 900, 65, 65, 12, true, ISO_FILL_MILD},
        {"ranks", 2, 1, 32, 8, 1, 900, 192, 129, 12, true, ISO_FILL_MILD},
        {"zero", 2, 2, 64, 128, 1, 77, 8, 8, 2, true, ISO_FILL_ZERO},
        {"tiny", 2, 2, 64, 128, 1, 77, 8, 8, 2, true, ISO_FILL_TINY},
        {"wide", 3, 2, 64, 128, 1, 77, 8, 8, 2, true, ISO_FILL_WIDE},
        {"onehot", 2, 2, 64, 128, 1, 77, 8, 8, 2, true, ISO_FILL_ONEHOT},
        {"ties", 2, 2, 64, 128, 1, 77, 8, 8, 2, false, ISO_FILL_TIES},
        {"cancel", 2, 2, 160, 128, 1, 77, 8, 8, 2, true, ISO_FILL_CANCEL},
        {"real", 1, 2, 512, 128, 1, 5000, 512, 512, 40, true, ISO_FILL_MILD},
        {"real", 3, 3, 512, 128, 2, 254, 512, 500, 40, false, ISO_FILL_MILD},
        {"real", 2, 1, 512, 128, 1, 90, 96, 41, 3, true, ISO_FILL_WIDE},
        /* Many heads: one unit in the last place of a sum shows in some of their bf16 results. */
        {"many", 64, 64, 64, 64, 1, 100, 0, 0, 0, true, ISO_FILL_MILD},
    };
    const attend_case live = {"live", 7, 2, 64, 128, 2, 127, 8, 7, 2, true, ISO_FILL_MILD};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(bases); i++) {
        const attend_case edge = {"edge", 3, 2, 64, 128, 2, bases[i], 8, 7, 2, true,
                                  ISO_FILL_MILD};

        test = start_case(&edge);
        iso_case_add(sink, &test);
    }
    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(&rows[i]);
        iso_case_add(sink, &test);
    }
    test = start_case(&live);
    iso_case_live(&test, Q, 1);
    iso_case_live(&test, PEND_CODE, 1);
    iso_case_live(&test, PEND_SCALE, 1);
    iso_case_live(&test, IDS, 1);
    iso_case_live(&test, ROWS, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    add_bad_cases(sink);
}
