/* pages: wishes about the pages behind large memory that nobody has written yet. They change speed,
 * never a value. CMake picks pages_linux.c or pages_none.c. */
#ifndef ISO_CORE_PAGES_H
#define ISO_CORE_PAGES_H

#include "core/status.h"

typedef struct iso_pages {
    bool is_huge;                        /* backed by the system's large pages where it can */
    bool is_interleaved;                 /* spread over all NUMA nodes that have memory */
} iso_pages;

/* ISO_UNSUPPORTED, naming the wish and what the system says, if a wish cannot be granted here. A
 * machine with one node grants interleaving. */
iso_status iso_pages_check(const iso_pages *wish, iso_error *error);

/* Applies a checked wish to the whole pages in [memory, +bytes). Less than 4 MiB is left alone. */
void iso_pages_apply(const iso_pages *wish, void *memory, uint64_t bytes);

#endif
