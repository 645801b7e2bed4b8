#include "text/unicode_pin.h"

#include "core/check.h"
#include "text/utf8.h"

typedef enum category {
    NONE,                    /* none of the five */
    L, M, N, P, S
} category;

/* In order and disjoint. */
static const struct range {
    uint32_t first, last;
    category category;
} ranges[] = {
#define PIN(first, last, category) {first, last, category},
#include "text/unicode_pin.def"
#undef PIN
};

/* Members of each category for 2, 3 and 4 bytes, all assigned before Unicode 14.0. NONE has a
 * control character and private-use ones. */
static const uint32_t stand_in[][3] = {
    [NONE] = {0x80, 0xe000, 0xf0000}, [L] = {0xe0, 0x1e00, 0x10000},
    [M] = {0x300, 0x20d0, 0x1d165},   [N] = {0xb2, 0x2070, 0x10107},
    [P] = {0xa1, 0x2010, 0x10100},    [S] = {0xa6, 0x2100, 0x10137},
};

/* The row of a code point, or NULL. */
static const struct range *range_of(uint32_t code)
{
    size_t low = 0, high = ISO_COUNT_OF(ranges);

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ISO_COUNT_OF(ranges) && ranges[low].first <= code ? &ranges[low] : NULL;
}

/* Blocks that most text outside ASCII comes from and that have no row: a shortcut. */
static bool is_settled(uint32_t code)
{
    return code < 0x378 || (code >= 0x3a3 && code <= 0x52f) ||
           (code >= 0x3041 && code <= 0x3096) || (code >= 0x3400 && code <= 0xa48c) ||
           (code >= 0xac00 && code <= 0xd7a3);
}

bool iso_unicode_pin(const char *text, size_t bytes, iso_chars *out)
{
    size_t copied = 0, taken;        /* text[0 .. copied) is in `out` */
    uint32_t code = 0;
    bool found = false;

    for (size_t i = 0; i < bytes; i += taken) {
        const struct range *range;
        iso_utf8_kind kind;

        taken = 1;
        if ((uint8_t)text[i] < 0x80)
            continue;
        kind = iso_utf8_next(text + i, bytes - i, &code, &taken);
        ISO_ASSERT(kind == ISO_UTF8_CHAR);
        if (is_settled(code))
            continue;
        range = range_of(code);
        if (range == NULL)
            continue;
        found = true;
        iso_chars_add(out, text + copied, i - copied);
        iso_utf8_add(out, stand_in[range->category][taken - 2]);
        copied = i + taken;
    }
    if (found)
        iso_chars_add(out, text + copied, bytes - copied);
    return found;
}
