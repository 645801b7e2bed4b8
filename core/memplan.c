/* Largest first, each into the smallest hole that fits among the items alive at the same time:
 * within a few percent of the peak of live bytes on the graphs of this model. */
#include "core/memplan.h"

#include "core/alloc.h"

typedef struct order_row {
    uint64_t bytes;
    uint32_t first, index;
} order_row;

static int compare_rows(const void *left, const void *right)
{
    const order_row *a = left, *b = right;

    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t end_of(const iso_memplan_item *item)
{
    return item->offset + iso_align_up(item->bytes, ISO_MEMPLAN_ALIGN);
}

/* Offset of the smallest hole of at least `bytes` bytes between the placed items (indices in order
 * of offset) that live at the same time as `item`; behind them all if there is none. */
static uint64_t find_hole(const iso_memplan_item *items, const uint32_t *placed, uint32_t count,
                          const iso_memplan_item *item)
{
    const uint64_t bytes = iso_align_up(item->bytes, ISO_MEMPLAN_ALIGN);
    uint64_t top = 0, best = UINT64_MAX, best_bytes = UINT64_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const iso_memplan_item *other = &items[placed[i]];

        if (other->last < item->first || other->first > item->last)
            continue;
        if (other->offset > top && other->offset - top >= bytes
            && other->offset - top < best_bytes) {
            best = top;
            best_bytes = other->offset - top;
        }
        if (end_of(other) > top)
            top = end_of(other);
    }
    return best != UINT64_MAX ? best : top;
}

static void insert(const iso_memplan_item *items, uint32_t *placed, uint32_t count,
                   uint32_t index)
{
    uint32_t at = count;

    while (at > 0 && items[placed[at - 1]].offset > items[index].offset) {
        placed[at] = placed[at - 1];
        at--;
    }
    placed[at] = index;
}

static uint64_t place_all(iso_memplan_item *items, uint32_t count, const order_row *order,
                          uint32_t *placed)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < count && order[i].bytes != 0; i++) {
        iso_memplan_item *item = &items[order[i].index];

        item->offset = find_hole(items, placed, i, item);
        insert(items, placed, i, order[i].index);
        if (end_of(item) > total)
            total = end_of(item);
    }
    return total;
}

iso_status iso_memplan_assign(iso_memplan_item *items, uint32_t count, uint64_t *total,
                              iso_error *error)
{
    uint64_t sum = 0;
    order_row *order;
    uint32_t *placed;

    *total = 0;
    if (count == 0)
        return ISO_OK;
    for (uint32_t i = 0; i < count; i++) {
        ISO_ASSERT(items[i].first <= items[i].last);
        if (items[i].bytes > INT64_MAX - ISO_MEMPLAN_ALIGN
            || !iso_add_u64(sum, iso_align_up(items[i].bytes, ISO_MEMPLAN_ALIGN), &sum)
            || sum > INT64_MAX)
            return iso_fail(error, ISO_LIMIT, "plan: the workspace exceeds 2^63 bytes");
    }
    order = iso_alloc_zero(count, sizeof *order, "memory plan");
    placed = iso_alloc_zero(count, sizeof *placed, "memory plan");
    if (order != NULL && placed != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            order[i] = (order_row){items[i].bytes, items[i].first, i};
            items[i].offset = 0;             /* what empty items keep */
        }
        qsort(order, count, sizeof *order, compare_rows);
        *total = place_all(items, count, order, placed);
    }
    iso_release(order, order == NULL ? 0 : count * sizeof *order);
    iso_release(placed, placed == NULL ? 0 : count * sizeof *placed);
    if (order == NULL || placed == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "plan: out of memory for the memory plan");
    return ISO_OK;
}
