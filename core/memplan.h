/* memplan: lifetimes -> offsets in one workspace. Two items share bytes only if their lifetimes do
 * not touch; steps are numbered in the order of execution. */
#ifndef ISO_CORE_MEMPLAN_H
#define ISO_CORE_MEMPLAN_H

#include "core/status.h"

enum { ISO_MEMPLAN_ALIGN = 64 };

typedef struct iso_memplan_item {
    uint64_t bytes;
    uint32_t first, last;        /* steps, both included */
    uint64_t offset;             /* result, a multiple of ISO_MEMPLAN_ALIGN */
} iso_memplan_item;

/* Fills the offsets and *total. The same items give the same offsets. ISO_LIMIT when the total
 * does not fit 63 bits, ISO_NO_MEMORY. */
iso_status iso_memplan_assign(iso_memplan_item *items, uint32_t count, uint64_t *total,
                              iso_error *error);

#endif
