#include "core/pages.h"

iso_status iso_pages_check(const iso_pages *wish, iso_error *error)
{
    if (wish->is_huge || wish->is_interleaved)
        return iso_fail(error, ISO_UNSUPPORTED, "%s: not known how to ask this system for them",
                        wish->is_huge ? "huge pages" : "interleaved pages");
    return ISO_OK;
}

void iso_pages_apply(const iso_pages *wish, void *memory, uint64_t bytes)
{
    (void)wish;
    (void)memory;
    (void)bytes;
}
