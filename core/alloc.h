/* alloc: the only door to malloc, realloc and free.
 *
 * Library memory comes from iso_alloc and goes back through iso_release with the size it was
 * asked with; memory that the public API gives away comes from malloc, so that iso_free is free.
 * For tests the door counts, can be made to fail at the n-th allocation, and can be sealed: while
 * it is sealed an allocation is a failed assertion (running a plan allocates nothing). */
#ifndef ISO_CORE_ALLOC_H
#define ISO_CORE_ALLOC_H

#include "core/check.h"

/* `bytes` bytes, aligned to `align` (a power of two <= 4096), undefined contents; NULL when there
 * is no memory or bytes is 0. `tag` names the owner in reports and must be a literal. */
void *iso_alloc(size_t bytes, size_t align, const char *tag);
/* The same, zeroed, for `count` elements; NULL also when the product overflows. */
void *iso_alloc_zero(size_t count, size_t bytes, const char *tag);
/* NULL is fine. `bytes` must be what was asked for. */
void iso_release(void *memory, size_t bytes);
/* Memory for the caller of the public API, who ends it with iso_free. NULL when there is none or
 * bytes is 0. It counts for fail_at and is not in the statistics: it leaves the library. */
void *iso_alloc_public(size_t bytes);

typedef struct iso_alloc_stats {
    uint64_t bytes_now, bytes_peak;
    uint64_t count_now, count_total;
} iso_alloc_stats;
void iso_alloc_get_stats(iso_alloc_stats *stats);

/* Test hooks. The n-th allocation from now fails (1: the next; 0: none), once. */
void iso_alloc_fail_at(uint64_t n);
/* Nests; each seal needs its unseal. */
void iso_alloc_seal(void);
void iso_alloc_unseal(void);

#endif
