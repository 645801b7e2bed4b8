/* compress_pool: softmax-pool the m raw rows of each emitted group into one latent row.
 *   y[c] = sum_i v_i[c] * w_i[c],  w_i = softmax over the members i of g_i[c]
 *   Member i of entry j is position j m + i: row first + position - base of this step when the
 *   position is >= base, else ring slot position mod m of the sequence's slot.
 * Shapes:   v, g f32 [T,d]; ring_v, ring_g f32 [slots,m,d]; groups i32 [G,2]; seqs i32 [B,4];
 *           y bf16 [G,d]. G >= 0, 1 <= d <= 2^20.
 * Units:    one group.
 * Order:    numerics 15.1 in the form of V4.1: sequential, members ascending; one rounding to bf16.
 * Ranges:   v, g in the domain; e in {0} u [2^-50, 1], l >= 1; v w >= 2^-100 (L1).
 * Params:   ratio m, 2..128: 2 in V4.1.
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE; ISO_BAD_PARAM. ISO_FLAG_INDEX and a zero row for: seq
 *           outside [0, B); entry < 0; a position >= base whose row is not one of the sequence's
 *           rows; slot outside [0, slots) or a position < base - m if some position is below base.
 * Source:   released inference/model.py, Compressor.forward. Differs from it in: order of sums. */
#include "ggml-style-ops/pool.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/table_rules.h"

enum { V, G, RING_V, RING_G, GROUPS, SEQS, Y };

iso_status iso_compress_pool_infer(iso_op_call *call, iso_error *error)
{
    const iso_pool_params *params = (const void *)call->params;
    const iso_tensor_desc *v = &call->in[V];

    ISO_TRY(iso_rule_param(call, params->ratio >= 2 && params->ratio <= ISO_POOL_MAX,
                           "ratio not in 2..128", error));
    ISO_TRY(iso_rule_input(call, V, "v", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_within(call, V, "v", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_input(call, G, "g", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_extent(call, G, "g", 0, v->extent[0], error));
    ISO_TRY(iso_rule_extent(call, G, "g", 1, v->extent[1], error));
    ISO_TRY(iso_rule_input(call, RING_V, "ring_v", ISO_DTYPE_F32, 3, error));
    ISO_TRY(iso_rule_extent(call, RING_V, "ring_v", 1, params->ratio, error));
    ISO_TRY(iso_rule_extent(call, RING_V, "ring_v", 2, v->extent[1], error));
    ISO_TRY(iso_rule_input(call, RING_G, "ring_g", ISO_DTYPE_F32, 3, error));
    for (uint32_t i = 0; i < 3; i++)
        ISO_TRY(iso_rule_extent(call, RING_G, "ring_g", i, call->in[RING_V].extent[i], error));
    ISO_TRY(iso_rule_table(call, GROUPS, "groups", -1, ISO_GROUP_WORDS, error));
    ISO_TRY(iso_rule_table(call, SEQS, "seqs", -1, ISO_SEQ_WORDS, error));
    call->out[0] = iso_desc2(ISO_DTYPE_BF16, call->in[GROUPS].extent[0], v->extent[1]);
    iso_live_copy(&call->out[0], &call->in[GROUPS], 1);
    return ISO_OK;
}

void iso_compress_pool_fill(const iso_op_call *call, void *args)
{
    const iso_pool_params *params = (const void *)call->params;

    *(iso_compress_pool_args *)args = (iso_compress_pool_args){
        .rows = iso_live_of(&call->in[GROUPS]),
        .dim = (uint32_t)call->in[V].extent[1],
        .ratio = params->ratio,
        .tokens = (uint32_t)call->in[V].extent[0],
        .slots = (uint32_t)call->in[RING_V].extent[0],
        .seqs = (uint32_t)call->in[SEQS].extent[0],
    };
}

uint64_t iso_compress_pool_units(const void *args)
{
    const iso_compress_pool_args *a = args;

    return a->rows.count;
}

/* Where the member at `position` lies: a row of this step (*own) or of the rings. */
static bool find_member(const iso_compress_pool_args *a, const int32_t *seq, int64_t position,
                        bool *own, uint64_t *row)
{
    const int64_t offset = position - seq[ISO_SEQ_BASE];
    const int64_t index = seq[ISO_SEQ_FIRST] + offset;

    *own = offset >= 0;
    if (*own) {
        *row = (uint64_t)index;
        return seq[ISO_SEQ_BASE] >= 0 && seq[ISO_SEQ_FIRST] >= 0 && offset < seq[ISO_SEQ_COUNT]
            && index < a->tokens;
    }
    *row = (uint64_t)(uint32_t)seq[ISO_SEQ_SLOT] * a->ratio + (uint64_t)position % a->ratio;
    return seq[ISO_SEQ_SLOT] >= 0 && (uint32_t)seq[ISO_SEQ_SLOT] < a->slots
        && -offset <= a->ratio;
}

/* Rows of the members of one group; false if one of them lies nowhere. */
static bool find_group(const iso_compress_pool_args *a, const iso_tensors *tensors,
                       const int32_t *group, const float **v, const float **g)
{
    const int32_t *seqs = tensors->at[SEQS];
    const int64_t entry = group[ISO_GROUP_ENTRY];
    const int32_t seq = group[ISO_GROUP_SEQ];

    if (seq < 0 || (uint32_t)seq >= a->seqs || entry < 0)
        return false;
    for (uint32_t i = 0; i < a->ratio; i++) {
        uint64_t row;
        bool own;

        if (!find_member(a, seqs + (uint64_t)(uint32_t)seq * ISO_SEQ_WORDS, entry * a->ratio + i,
                         &own, &row))
            return false;
        v[i] = (const float *)tensors->at[own ? V : RING_V] + row * a->dim;
        g[i] = (const float *)tensors->at[own ? G : RING_G] + row * a->dim;
    }
    return true;
}

void iso_compress_pool_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_compress_pool_args *a = args;
    const int32_t *groups = tensors->at[GROUPS];
    const float *v[ISO_POOL_MAX], *g[ISO_POOL_MAX];
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t unit = units.begin; unit < units.end; unit++) {
        uint16_t *row = y + unit * a->dim;

        if (!find_group(a, tensors, groups + unit * ISO_GROUP_WORDS, v, g)) {
            flags |= ISO_FLAG_INDEX;
            memset(row, 0, a->dim * sizeof *row);
            continue;
        }
        for (uint32_t c = 0; c < a->dim; c++)
            row[c] = (uint16_t)lane_bf16(iso_pool_channel(v, g, a->ratio, c, &flags), &flags);
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

/* seqs from its base; groups: every group that the rows of a sequence complete, as many as fit;
 * the rest of the table is an error where it is not live. */
static void make_tables(const iso_case *test, void *const *inputs)
{
    const iso_pool_params *params = (const void *)test->call.params;
    const uint32_t seq_count = (uint32_t)test->call.in[SEQS].extent[0];
    const uint32_t capacity = (uint32_t)test->call.in[GROUPS].extent[0];
    const int32_t ratio = (int32_t)params->ratio;
    int32_t *seqs = inputs[SEQS], *groups = inputs[GROUPS];
    uint32_t count = 0;

    iso_case_seqs(seqs, seq_count, (uint32_t)test->call.in[V].extent[0],
                  (uint32_t)test->call.in[RING_V].extent[0], test->input[SEQS].lo);
    for (uint32_t i = 0; i < capacity * ISO_GROUP_WORDS; i++)
        groups[i] = ISO_CASE_UNUSED;
    for (uint32_t s = 0; s < seq_count; s++) {
        const int32_t *seq = seqs + s * ISO_SEQ_WORDS;
        const int32_t end = (seq[ISO_SEQ_BASE] + seq[ISO_SEQ_COUNT]) / ratio;

        for (int32_t j = seq[ISO_SEQ_BASE] / ratio; j < end && count < capacity; j++, count++) {
            groups[count * ISO_GROUP_WORDS + ISO_GROUP_SEQ] = (int32_t)s;
            groups[count * ISO_GROUP_WORDS + ISO_GROUP_ENTRY] = j;
        }
    }
    ISO_ASSERT(count >= iso_case_rows(test, GROUPS));
    iso_case_spoil_tables(test, inputs);
}

typedef struct pool_case {
    const char *name;
    uint32_t ratio;
    int64_t tokens, dim, groups, seqs, base;
    iso_fill v, g;
} pool_case;

static iso_case start_case(const pool_case *c)
{
    const iso_pool_params params = {c->ratio};
    const iso_tensor_desc x = iso_desc2(ISO_DTYPE_F32, c->tokens, c->dim);
    const iso_tensor_desc ring = iso_desc3(ISO_DTYPE_F32, c->seqs + 1, c->ratio, c->dim);
    iso_case test = iso_case_start(ISO_OP_ID_compress_pool, "%s_m%u_%lldx%lld_g%lld_b%lld",
                                   c->name, c->ratio, (long long)c->tokens, (long long)c->dim,
                                   (long long)c->groups, (long long)c->base);

    iso_case_in(&test, V, x, c->v, 0, 0);
    iso_case_in(&test, G, x, c->g, 0, 0);
    iso_case_in(&test, RING_V, ring, c->v, 0, 0);
    iso_case_in(&test, RING_G, ring, c->g, 0, 0);
    iso_case_in(&test, GROUPS, iso_desc2(ISO_DTYPE_I32, c->groups, ISO_GROUP_WORDS),
                ISO_FILL_ZERO, 0, 0);
    iso_case_in(&test, SEQS, iso_desc2(ISO_DTYPE_I32, c->seqs, ISO_SEQ_WORDS), ISO_FILL_ZERO,
                c->base, 0);
    iso_case_params(&test, &params, sizeof params);
    test.make = make_tables;
    return test;
}

static void add_bad_case(iso_case_sink *sink, const char *name, uint32_t table, uint32_t word,
                         int32_t value)
{
    const pool_case shape = {name, 2, 5, 8, 2, 2, 7, ISO_FILL_MILD, ISO_FILL_MILD};
    iso_case test = start_case(&shape);

    test.input[table].hi = iso_case_spoil(word, value);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

void iso_compress_pool_cases(iso_case_sink *sink)
{
    static const pool_case rows[] = {
        {"mild", 2, 1, 1, 0, 1, 0, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 2, 2, 7, 1, 1, 0, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 2, 1, 33, 1, 1, 1, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 2, 4, 512, 2, 1, 9, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 2, 11, 129, 5, 3, 7, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 3, 13, 17, 4, 2, 4, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 4, 23, 16, 5, 3, 126, ISO_FILL_MILD, ISO_FILL_MILD},
        {"mild", 128, 100, 9, 1, 1, 100, ISO_FILL_MILD, ISO_FILL_MILD},
        {"tiny", 2, 7, 127, 3, 2, 1, ISO_FILL_TINY, ISO_FILL_TINY},
        {"wide", 2, 7, 512, 3, 2, 1, ISO_FILL_WIDE, ISO_FILL_WIDE},
        {"huge", 2, 7, 63, 3, 2, 1, ISO_FILL_HUGE, ISO_FILL_HUGE},
        {"zero", 2, 7, 63, 3, 2, 1, ISO_FILL_ZERO, ISO_FILL_ZERO},
        {"ties", 2, 7, 65, 3, 2, 1, ISO_FILL_TIES, ISO_FILL_TIES},
        {"cancel", 4, 9, 65, 2, 1, 3, ISO_FILL_CANCEL, ISO_FILL_ZERO},
    };
    const pool_case live = {"live", 2, 9, 31, 7, 2, 1, ISO_FILL_MILD, ISO_FILL_MILD};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(&rows[i]);
        iso_case_add(sink, &test);
    }
    test = start_case(&live);
    iso_case_live(&test, GROUPS, 1);
    test.live = 4;
    iso_case_add(sink, &test);
    add_bad_case(sink, "bad_seq_minus", GROUPS, ISO_GROUP_SEQ, -1);
    add_bad_case(sink, "bad_seq_max", GROUPS, ISO_GROUP_SEQ, 2);
    add_bad_case(sink, "bad_seq_int", GROUPS, ISO_GROUP_SEQ, INT32_MAX);
    add_bad_case(sink, "bad_entry_minus", GROUPS, ISO_GROUP_ENTRY, -1);
    add_bad_case(sink, "bad_entry_past", GROUPS, ISO_GROUP_ENTRY, 2);
    add_bad_case(sink, "bad_entry_max", GROUPS, ISO_GROUP_ENTRY, 5);
    add_bad_case(sink, "bad_entry_int", GROUPS, ISO_GROUP_ENTRY, INT32_MAX);
    add_bad_case(sink, "bad_slot_minus", SEQS, ISO_SEQ_SLOT, -1);
    add_bad_case(sink, "bad_slot_max", SEQS, ISO_SEQ_SLOT, 3);
    add_bad_case(sink, "bad_first_minus", SEQS, ISO_SEQ_FIRST, -1);
    add_bad_case(sink, "bad_first_max", SEQS, ISO_SEQ_FIRST, 5);
    add_bad_case(sink, "bad_first_int", SEQS, ISO_SEQ_FIRST, INT32_MAX);
    add_bad_case(sink, "bad_base_minus", SEQS, ISO_SEQ_BASE, -1);
    add_bad_case(sink, "bad_base_int", SEQS, ISO_SEQ_BASE, INT32_MAX);
    add_bad_case(sink, "bad_count", SEQS, ISO_SEQ_COUNT, 0);
}
