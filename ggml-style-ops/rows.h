/* rows: the small integer tables that say which sequence a row of a step belongs to, and where the
 * state of a sequence lies. The host (model/positions.c) writes them; operators read them. Every
 * value is checked by the operator that uses it: a bad one raises ISO_FLAG_INDEX and is not used.
 *
 *   rows   i32 [T,2]  per token row: {seq, position}. Rows of one sequence are adjacent, positions
 *                     ascending by 1.
 *   seqs   i32 [B,4]  per sequence of the step: {slot, base, first, count}: its state slot, the
 *                     position of its first row in this step (= committed length), the index of
 *                     that row in `rows`, and its number of rows.
 *   pages  i32 [B,P]  per sequence: page number in the pool of entries e / page_rows; -1: none.
 *   groups i32 [G,2]  per emitted compressed entry: {seq, entry}; entry j covers positions
 *                     j m .. j m + m - 1.
 *
 * A raw position t of a sequence is in the step's own rows when t >= base (row first + t - base),
 * and in ring slot t mod W otherwise. */
#ifndef ISO_OPS_ROWS_H
#define ISO_OPS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum { ISO_ROW_SEQ, ISO_ROW_POSITION, ISO_ROW_WORDS };
enum { ISO_SEQ_SLOT, ISO_SEQ_BASE, ISO_SEQ_FIRST, ISO_SEQ_COUNT, ISO_SEQ_WORDS };
enum { ISO_GROUP_SEQ, ISO_GROUP_ENTRY, ISO_GROUP_WORDS };

typedef struct iso_page_table {
    const int32_t *pages;        /* [seqs, per_seq] */
    uint32_t seqs, per_seq, page_rows, pool_rows;
} iso_page_table;

/* Pool row of an entry; false if the sequence, the entry or its page is out of range. */
static inline bool iso_page_row(const iso_page_table *table, int32_t seq, int64_t entry,
                                uint32_t *row)
{
    int64_t page, pool_row;

    if (seq < 0 || (uint32_t)seq >= table->seqs || entry < 0
        || entry / table->page_rows >= table->per_seq)
        return false;
    page = table->pages[(uint64_t)(uint32_t)seq * table->per_seq
                        + (uint64_t)entry / table->page_rows];
    pool_row = page * table->page_rows + entry % table->page_rows;
    if (page < 0 || pool_row >= table->pool_rows)
        return false;
    *row = (uint32_t)pool_row;
    return true;
}

/* Entries visible at a position: those whose group is complete, (position + 1) / ratio. */
static inline int64_t iso_visible_entries(int32_t position, uint32_t ratio)
{
    return position < 0 ? 0 : ((int64_t)position + 1) / ratio;
}

#endif
