#include "text/added.h"

#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Tokens are sorted by their bytes, a prefix before its continuations. Matching narrows a range of
 * this order byte by byte, which needs no trie. */
struct iso_added {
    size_t count;
    size_t first[257];       /* tokens that start with byte b are [first[b], first[b + 1]) */
    iso_added_token *tokens;
};

static int by_text(const void *left, const void *right)
{
    const iso_added_token *a = left, *b = right;
    const int order = memcmp(a->text, b->text, a->bytes < b->bytes ? a->bytes : b->bytes);

    if (order != 0)
        return order;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

iso_status iso_added_create(const iso_added_token *tokens, size_t count, iso_added **added,
                            iso_error *error)
{
    iso_added *made = iso_alloc_zero(1, sizeof *made, "added");

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "added tokens: out of memory");
    made->count = count;
    made->tokens = iso_alloc_zero(count + 1, sizeof *made->tokens, "added");
    if (made->tokens == NULL) {
        iso_added_destroy(&made);
        return iso_fail(error, ISO_NO_MEMORY, "%zu added tokens: out of memory", count);
    }
    if (count != 0)
        memcpy(made->tokens, tokens, count * sizeof *tokens);
    qsort(made->tokens, count, sizeof *made->tokens, by_text);
    for (size_t i = 1; i < count; i++)
        ISO_ASSERT(by_text(&made->tokens[i - 1], &made->tokens[i]) < 0);
    for (size_t i = 0; i < count; i++)
        made->first[(uint8_t)made->tokens[i].text[0] + 1]++;
    for (size_t byte = 0; byte < 256; byte++)
        made->first[byte + 1] += made->first[byte];
    *added = made;
    return ISO_OK;
}

void iso_added_destroy(iso_added **added)
{
    if (*added == NULL)
        return;
    iso_release((*added)->tokens, ((*added)->count + 1) * sizeof *(*added)->tokens);
    iso_release(*added, sizeof **added);
    *added = NULL;
}

/* First index in [low, high) whose byte at `depth` is >= byte. The range shares its first `depth`
 * bytes and no token of it ends before depth + 1. */
static size_t lower_bound(const iso_added *added, size_t low, size_t high, size_t depth,
                          unsigned byte)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if ((uint8_t)added->tokens[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that starts the text, or NULL. */
static const iso_added_token *longest(const iso_added *added, const char *text, size_t bytes)
{
    const iso_added_token *best = NULL;
    size_t low = added->first[(uint8_t)text[0]];
    size_t high = added->first[(uint8_t)text[0] + 1];

    for (size_t depth = 1; low < high; depth++) {
        unsigned byte;

        if (added->tokens[low].bytes == depth)
            best = &added->tokens[low++];
        if (depth == bytes)
            break;
        byte = (uint8_t)text[depth];
        low = lower_bound(added, low, high, depth, byte);
        high = lower_bound(added, low, high, depth, byte + 1);
    }
    return best;
}

bool iso_added_next(const iso_added *added, const char *text, size_t bytes, size_t from,
                    iso_added_hit *hit)
{
    for (size_t i = from; i < bytes; i++) {
        const unsigned byte = (uint8_t)text[i];
        const iso_added_token *found;

        if (added->first[byte] == added->first[byte + 1])
            continue;
        found = longest(added, text + i, bytes - i);
        if (found != NULL) {
            *hit = (iso_added_hit){i, found->bytes, found->id};
            return true;
        }
    }
    return false;
}

int32_t iso_added_find(const iso_added *added, const char *text, size_t bytes)
{
    const iso_added_token *found = bytes == 0 ? NULL : longest(added, text, bytes);

    return found != NULL && found->bytes == bytes ? found->id : -1;
}
