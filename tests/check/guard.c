/* Guarded memory: [protected page][pages][protected page] per operand and side, grown on demand. */
#include "tests/check/check.h"

#include "core/os.h"

#include <sys/mman.h>

typedef struct region {
    unsigned char *base;             /* of the mapping, the first protected page */
    uint64_t inner;                  /* bytes between the protected pages */
    unsigned char *operand;
    uint64_t bytes;
} region;

static region regions[CHECK_OPERANDS_MAX][CHECK_SIDES];

static void grow(region *r, uint64_t bytes)
{
    const uint64_t page = iso_os_page_bytes(), inner = iso_align_up(bytes, page);

    if (r->base != NULL)
        munmap(r->base, (size_t)(r->inner + 2 * page));
    r->base = mmap(NULL, (size_t)(inner + 2 * page), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ISO_ASSERT(r->base != MAP_FAILED);
    r->inner = inner;
    ISO_ASSERT(mprotect(r->base, (size_t)page, PROT_NONE) == 0);
    ISO_ASSERT(mprotect(r->base + page + inner, (size_t)page, PROT_NONE) == 0);
}

unsigned char *check_place(uint32_t operand, check_side side, uint64_t bytes)
{
    region *r = &regions[operand][side];
    const uint64_t page = iso_os_page_bytes();

    if (r->base == NULL || r->inner < bytes + CHECK_MARGIN)
        grow(r, bytes + CHECK_MARGIN);
    r->operand = r->base + page + (side == CHECK_END ? r->inner - bytes : 0);
    r->bytes = bytes;
    memset(side == CHECK_END ? r->operand - CHECK_MARGIN : r->operand + bytes, CHECK_MARGIN_BYTE,
           CHECK_MARGIN);
    return r->operand;
}

const unsigned char *check_placed_margin(uint32_t operand, check_side side)
{
    const region *r = &regions[operand][side];

    return side == CHECK_END ? r->operand - CHECK_MARGIN : r->operand + r->bytes;
}

void check_where(const void *address, char text[CHECK_TEXT])
{
    const unsigned char *p = address;

    text[0] = '\0';
    for (uint32_t i = 0; i < CHECK_OPERANDS_MAX; i++)
        for (uint32_t side = 0; side < CHECK_SIDES; side++) {
            const region *r = &regions[i][side];

            if (r->base == NULL || p < r->base || p >= r->base + r->inner
                                                          + 2 * iso_os_page_bytes())
                continue;
            if (p >= r->operand)
                snprintf(text, CHECK_TEXT, "byte %llu of operand %u of %llu bytes",
                         (unsigned long long)(p - r->operand), i, (unsigned long long)r->bytes);
            else
                snprintf(text, CHECK_TEXT, "%llu bytes before operand %u",
                         (unsigned long long)(r->operand - p), i);
        }
}
