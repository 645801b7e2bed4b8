/* state_commit: fold the first rows of a step into the rings of their sequences.
 *   for the last min(commit[b], W) of the rows i < commit[b] of sequence b, ascending:
 *   ring[slot, (base + i) mod W] = src[first + i]
 * Shapes:   ring [slots,W,n] of any dtype; src [T,n] of the same dtype; seqs i32 [B,4]; commit i32
 *           [B]. The output is the ring, in place.
 * Units:    one sequence; the slots of a call are distinct.
 * Order:    none: bytes are moved.
 * Ranges:   any bits.
 * Params:   none.
 * Aliasing: the output is input 0; src and ring do not overlap.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE. ISO_FLAG_INDEX, and nothing is written for the sequence:
 *           slot outside [0, slots), base < 0, first < 0, count < 0, first + count > T, or commit
 *           outside [0, count].
 * Source:   none; the ring is the model's, committing is isobit's. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/case_tables.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/table_rules.h"

enum { RING, SRC, SEQS, COMMIT, OUT };

iso_status iso_state_commit_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *ring = &call->in[RING];

    ISO_TRY(iso_rule_input(call, RING, "ring", ring->dtype, 3, error));
    ISO_TRY(iso_rule_within(call, RING, "ring", 1, 1, 1 << 20, error));
    ISO_TRY(iso_rule_within(call, RING, "ring", 2, 1, 1 << 28, error));
    ISO_TRY(iso_rule_input(call, SRC, "src", ring->dtype, 2, error));
    ISO_TRY(iso_rule_extent(call, SRC, "src", 1, ring->extent[2], error));
    ISO_TRY(iso_rule_table(call, SEQS, "seqs", -1, ISO_SEQ_WORDS, error));
    ISO_TRY(iso_rule_input(call, COMMIT, "commit", ISO_DTYPE_I32, 1, error));
    ISO_TRY(iso_rule_extent(call, COMMIT, "commit", 0, call->in[SEQS].extent[0], error));
    call->out[0] = *ring;
    return ISO_OK;
}

void iso_state_commit_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc *ring = &call->in[RING];
    uint64_t row_bytes = 0;

    ISO_ASSERT(iso_dtype_bytes(ring->dtype, (uint64_t)ring->extent[2], &row_bytes));
    *(iso_state_commit_args *)args = (iso_state_commit_args){
        .rows = iso_live_of(&call->in[SEQS]),
        .row_bytes = (uint32_t)row_bytes,                /* <= 8 * 2^28 */
        .slots = (uint32_t)ring->extent[0],
        .window = (uint32_t)ring->extent[1],
        .tokens = (uint32_t)call->in[SRC].extent[0],
    };
}

uint64_t iso_state_commit_units(const void *args)
{
    const iso_state_commit_args *a = args;

    return a->rows.count;
}

static bool seq_is_valid(const iso_state_commit_args *a, const int32_t *seq, int32_t commit)
{
    return seq[ISO_SEQ_SLOT] >= 0 && (uint32_t)seq[ISO_SEQ_SLOT] < a->slots
        && seq[ISO_SEQ_BASE] >= 0 && seq[ISO_SEQ_FIRST] >= 0 && seq[ISO_SEQ_COUNT] >= 0
        && (int64_t)seq[ISO_SEQ_FIRST] + seq[ISO_SEQ_COUNT] <= a->tokens
        && commit >= 0 && commit <= seq[ISO_SEQ_COUNT];
}

void iso_state_commit_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_state_commit_args *a = args;
    const int32_t *seqs = tensors->at[SEQS], *commit = tensors->at[COMMIT];
    const unsigned char *src = tensors->at[SRC];
    unsigned char *ring = tensors->at[OUT];
    uint32_t flags = 0;

    for (uint64_t b = units.begin; b < units.end; b++) {
        const int32_t *seq = seqs + b * ISO_SEQ_WORDS;
        const int64_t count = commit[b], window = a->window;

        if (!seq_is_valid(a, seq, commit[b])) {
            flags |= ISO_FLAG_INDEX;
            continue;
        }
        for (int64_t i = count > window ? count - window : 0; i < count; i++) {
            const int64_t to = seq[ISO_SEQ_SLOT] * window + (seq[ISO_SEQ_BASE] + i) % window;
            const int64_t from = seq[ISO_SEQ_FIRST] + i;

            memcpy(ring + (uint64_t)to * a->row_bytes, src + (uint64_t)from * a->row_bytes,
                   a->row_bytes);
        }
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

/* commit[b] = count - lo of commit for sequence 0, one more is committed for each next one, within
 * 0 .. count; sequences beyond the live ones are an error. */
static void make_tables(const iso_case *test, void *const *inputs)
{
    const uint32_t seq_count = (uint32_t)test->call.in[SEQS].extent[0];
    const uint32_t live = iso_case_rows(test, SEQS);
    int32_t *seqs = inputs[SEQS], *commit = inputs[COMMIT];

    iso_case_seqs(seqs, seq_count, (uint32_t)test->call.in[SRC].extent[0],
                  (uint32_t)test->call.in[RING].extent[0], test->input[SEQS].lo);
    for (uint32_t b = 0; b < seq_count; b++) {
        const int64_t count = seqs[b * ISO_SEQ_WORDS + ISO_SEQ_COUNT];
        const int64_t wanted = count - test->input[COMMIT].lo + b;

        commit[b] = (int32_t)(wanted < 0 ? 0 : wanted > count ? count : wanted);
        if (b >= live)
            seqs[b * ISO_SEQ_WORDS + ISO_SEQ_SLOT] = ISO_CASE_UNUSED;
    }
    iso_case_spoil_tables(test, inputs);
}

typedef struct commit_case {
    const char *name;
    iso_dtype dtype;
    int64_t tokens, dim, window, seqs, base, dropped;
} commit_case;

static iso_case start_case(const commit_case *c)
{
    iso_case test = iso_case_start(ISO_OP_ID_state_commit, "%s_%s_%lldx%lld_w%lld_b%lld_d%lld",
                                   c->name, iso_dtype_name(c->dtype), (long long)c->tokens,
                                   (long long)c->dim, (long long)c->window, (long long)c->base,
                                   (long long)c->dropped);

    iso_case_in(&test, RING, iso_desc3(c->dtype, c->seqs + 1, c->window, c->dim), ISO_FILL_RAW, 0,
                0);
    iso_case_in(&test, SRC, iso_desc2(c->dtype, c->tokens, c->dim), ISO_FILL_RAW, 0, 0);
    iso_case_in(&test, SEQS, iso_desc2(ISO_DTYPE_I32, c->seqs, ISO_SEQ_WORDS), ISO_FILL_ZERO,
                c->base, 0);
    iso_case_in(&test, COMMIT, iso_desc1(ISO_DTYPE_I32, c->seqs), ISO_FILL_ZERO, c->dropped, 0);
    test.make = make_tables;
    return test;
}

static void add_bad_case(iso_case_sink *sink, const char *name, uint32_t table, uint32_t word,
                         int32_t value)
{
    const commit_case shape = {name, ISO_DTYPE_BF16, 5, 3, 4, 2, 7, 1};
    iso_case test = start_case(&shape);

    test.input[table].hi = iso_case_spoil(word, value);
    test.flags_expected = ISO_FLAG_INDEX;
    iso_case_add(sink, &test);
}

void iso_state_commit_cases(iso_case_sink *sink)
{
    static const commit_case rows[] = {
        {"empty", ISO_DTYPE_F32, 0, 8, 4, 0, 0, 0},
        {"one", ISO_DTYPE_UE8M0, 1, 1, 1, 1, 0, 0},
        {"none", ISO_DTYPE_BF16, 5, 3, 8, 1, 6, 5},
        {"some", ISO_DTYPE_F32, 11, 5, 8, 3, 6, 2},
        {"all", ISO_DTYPE_E4M3, 11, 33, 8, 3, 7, 0},
        {"pair", ISO_DTYPE_F32, 7, 16, 2, 2, 3, 1},
        {"window", ISO_DTYPE_E4M3, 127, 7, 128, 1, 1, 0},
        {"window", ISO_DTYPE_E4M3, 128, 7, 128, 1, 127, 0},
        {"window", ISO_DTYPE_E2M1, 129, 8, 128, 1, 128, 0},
        {"window", ISO_DTYPE_UE8M0, 300, 16, 128, 2, 255, 1},
        {"far", ISO_DTYPE_I32, 5, 2, 128, 1, INT32_MAX - 3, 0},
    };
    const commit_case live = {"live", ISO_DTYPE_BF16, 12, 4, 8, 4, 5, 1};
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        test = start_case(&rows[i]);
        iso_case_add(sink, &test);
    }
    test = start_case(&live);
    iso_case_live(&test, SEQS, 1);
    iso_case_live(&test, COMMIT, 1);
    test.live = 2;
    iso_case_add(sink, &test);
    add_bad_case(sink, "bad_slot_minus", SEQS, ISO_SEQ_SLOT, -1);
    add_bad_case(sink, "bad_slot_max", SEQS, ISO_SEQ_SLOT, 3);
    add_bad_case(sink, "bad_slot_int", SEQS, ISO_SEQ_SLOT, INT32_MAX);
    add_bad_case(sink, "bad_base", SEQS, ISO_SEQ_BASE, -1);
    add_bad_case(sink, "bad_first_minus", SEQS, ISO_SEQ_FIRST, -1);
    add_bad_case(sink, "bad_first_max", SEQS, ISO_SEQ_FIRST, 3);
    add_bad_case(sink, "bad_first_int", SEQS, ISO_SEQ_FIRST, INT32_MAX);
    add_bad_case(sink, "bad_count_minus", SEQS, ISO_SEQ_COUNT, -1);
    add_bad_case(sink, "bad_count_int", SEQS, ISO_SEQ_COUNT, INT32_MAX);
    add_bad_case(sink, "bad_commit_minus", COMMIT, 0, -1);
    add_bad_case(sink, "bad_commit_max", COMMIT, 0, 4);
    add_bad_case(sink, "bad_commit_int", COMMIT, 1, INT32_MAX);
}
