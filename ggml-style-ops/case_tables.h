/* case_tables: row, sequence and page tables for the `make` functions of cases.
 *
 * A table input of a case has the fill ZERO; its lo is the base position of sequence 0 (sequence s
 * begins 3 s later) and its hi names one word to spoil, see iso_case_spoil. */
#ifndef ISO_OPS_CASE_TABLES_H
#define ISO_OPS_CASE_TABLES_H

#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/rows.h"

enum { ISO_CASE_SEQS_MAX = 8, ISO_CASE_UNUSED = -9 };

/* hi of a table input: word number `word` becomes `value` at the end of `make`. */
static inline int64_t iso_case_spoil(uint32_t word, int32_t value)
{
    return (int64_t)((uint64_t)(word + 1) << 32 | (uint32_t)value);
}

static inline void iso_case_spoil_tables(const iso_case *test, void *const *inputs)
{
    for (uint32_t i = 0; i < test->call.op->input_count; i++) {
        const uint64_t hi = (uint64_t)test->input[i].hi;

        if (test->call.in[i].dtype == ISO_DTYPE_I32 && test->input[i].fill == ISO_FILL_ZERO
            && hi != 0)
            ((int32_t *)inputs[i])[(hi >> 32) - 1] = (int32_t)(uint32_t)hi;
    }
}

/* Leading rows of input `index` that exist in the case. */
static inline uint32_t iso_case_rows(const iso_case *test, uint32_t index)
{
    return iso_live_resolve(iso_live_of(&test->call.in[index]), &test->live);
}

/* seqs [B,4]: `tokens` rows in uneven shares, slots in descending order. `base`: of sequence 0. */
static inline void iso_case_seqs(int32_t *seqs, uint32_t seq_count, uint32_t tokens,
                                 uint32_t slots, int64_t base)
{
    uint32_t first = 0;

    ISO_ASSERT(seq_count <= slots);
    for (uint32_t s = 0; s < seq_count; s++) {
        const uint32_t count = tokens / seq_count + (s < tokens % seq_count);
        int32_t *seq = seqs + s * ISO_SEQ_WORDS;

        seq[ISO_SEQ_SLOT] = (int32_t)(slots - 1 - s);
        seq[ISO_SEQ_BASE] = (int32_t)(base + 3 * (int64_t)s);
        seq[ISO_SEQ_FIRST] = (int32_t)first;
        seq[ISO_SEQ_COUNT] = (int32_t)count;
        first += count;
    }
}

/* rows [capacity,2] of those sequences; rows that do not exist get a value that is an error. */
static inline void iso_case_token_rows(int32_t *rows, uint32_t capacity, const int32_t *seqs,
                                       uint32_t seq_count)
{
    for (uint32_t i = 0; i < capacity * ISO_ROW_WORDS; i++)
        rows[i] = ISO_CASE_UNUSED;
    for (uint32_t s = 0; s < seq_count; s++) {
        const int32_t *seq = seqs + s * ISO_SEQ_WORDS;

        for (int32_t i = 0; i < seq[ISO_SEQ_COUNT]; i++) {
            int32_t *row = rows + (seq[ISO_SEQ_FIRST] + i) * ISO_ROW_WORDS;

            row[ISO_ROW_SEQ] = (int32_t)s;
            row[ISO_ROW_POSITION] = seq[ISO_SEQ_BASE] + i;
        }
    }
}

/* The rows table alone (input `index`, its lo the base), for operators without seqs. */
static inline void iso_case_rows_only(const iso_case *test, uint32_t index, uint32_t seq_count,
                                      void *const *inputs)
{
    int32_t seqs[ISO_CASE_SEQS_MAX * ISO_SEQ_WORDS];

    ISO_ASSERT(seq_count <= ISO_CASE_SEQS_MAX);
    iso_case_seqs(seqs, seq_count, iso_case_rows(test, index), seq_count, test->input[index].lo);
    iso_case_token_rows(inputs[index], (uint32_t)test->call.in[index].extent[0], seqs, seq_count);
}

/* pages [B,P] of input `index`: distinct pages of the pool, permuted. */
static inline void iso_case_pages(const iso_case *test, uint32_t index, uint32_t pool_rows,
                                  uint32_t page_rows, void *const *inputs)
{
    const uint32_t count = (uint32_t)iso_desc_elems(&test->call.in[index]);
    const uint32_t pool_pages = pool_rows / page_rows;
    int32_t *pages = inputs[index];

    ISO_ASSERT(count == 0 || (pool_pages >= count && pool_pages % 7 != 0));
    for (uint32_t i = 0; i < count; i++)
        pages[i] = (int32_t)((i * 7 + 3) % pool_pages);
}

#endif
