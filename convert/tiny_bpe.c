#include "convert/tiny_bpe.h"

#include "core/alloc.h"

#include <string.h>

enum { TOKENS_MAX = 256 + ISO_TINY_MERGES_MAX, BREAK = 0xffff };

static const char *const lines[] = {
#define TEXT(line) line,
#include "convert/tiny_text.def"
#undef TEXT
};

typedef struct learner {
    uint16_t *symbols;               /* tokens; BREAK between pieces */
    size_t count, room;
    uint16_t *pairs;                 /* [TOKENS_MAX, TOKENS_MAX] occurrences, saturating */
    iso_tiny_merge *merges;
    uint32_t merge_count;
} learner;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* A new piece starts before a blank, before letters that follow no blank or letter, and at any
 * other byte. */
static bool starts_piece(const char *text, size_t i)
{
    if (i == 0 || !is_letter(text[i]))
        return true;
    return !is_letter(text[i - 1]) && text[i - 1] != ' ';
}

static void load(learner *l, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (starts_piece(text, i))
            l->symbols[l->count++] = BREAK;
        l->symbols[l->count++] = (unsigned char)text[i];
    }
}

static uint32_t token_bytes(const learner *l, uint32_t token)
{
    return token < 256 ? 1 : l->merges[token - 256].count;
}

static uint16_t *pair_at(const learner *l, size_t i)
{
    return &l->pairs[(size_t)l->symbols[i] * TOKENS_MAX + l->symbols[i + 1]];
}

static bool is_pair(const learner *l, size_t i)
{
    return l->symbols[i] != BREAK && l->symbols[i + 1] != BREAK
        && token_bytes(l, l->symbols[i]) + token_bytes(l, l->symbols[i + 1])
               <= ISO_TINY_TOKEN_MAX;
}

/* The most frequent pair, smallest first among equals; its count, or 0. Leaves `pairs` zeroed. */
static uint32_t best_pair(const learner *l, uint16_t *left, uint16_t *right)
{
    uint32_t best = 0;

    for (size_t i = 0; i + 1 < l->count; i++)
        if (is_pair(l, i) && *pair_at(l, i) < UINT16_MAX)
            ++*pair_at(l, i);
    for (size_t i = 0; i + 1 < l->count; i++) {
        const uint32_t count = is_pair(l, i) ? *pair_at(l, i) : 0;
        const uint16_t a = l->symbols[i], b = l->symbols[i + 1];

        if (count > best
            || (count == best && count != 0 && (a < *left || (a == *left && b < *right)))) {
            best = count;
            *left = a;
            *right = b;
        }
    }
    for (size_t i = 0; i + 1 < l->count; i++)
        if (is_pair(l, i))
            *pair_at(l, i) = 0;
    return best;
}

static void replace(learner *l, uint16_t left, uint16_t right, uint16_t merged)
{
    size_t used = 0;

    for (size_t i = 0; i < l->count; i++) {
        const bool is_match = i + 1 < l->count && l->symbols[i] == left
                           && l->symbols[i + 1] == right;

        l->symbols[used++] = is_match ? merged : l->symbols[i];
        i += is_match;
    }
    l->count = used;
}

static void append_bytes(const learner *l, iso_tiny_merge *merge, uint16_t token)
{
    if (token < 256) {
        merge->bytes[merge->count++] = (uint8_t)token;
        return;
    }
    memcpy(merge->bytes + merge->count, l->merges[token - 256].bytes,
           l->merges[token - 256].count);
    merge->count = (uint8_t)(merge->count + l->merges[token - 256].count);
}

/* Another split of a token that exists already (a b|c after a|b c): the text takes that token, and
 * no merge is made, because a vocabulary lists a string once. */
static uint32_t token_like(const learner *l, const iso_tiny_merge *merge)
{
    for (uint32_t i = 0; i < l->merge_count; i++)
        if (l->merges[i].count == merge->count
            && memcmp(l->merges[i].bytes, merge->bytes, merge->count) == 0)
            return 256 + i;
    return 256 + l->merge_count;
}

static void add_merge(learner *l, uint16_t left, uint16_t right)
{
    iso_tiny_merge merge = {.left = left, .right = right};
    uint32_t token;

    append_bytes(l, &merge, left);
    append_bytes(l, &merge, right);
    token = token_like(l, &merge);
    if (token == 256 + l->merge_count)
        l->merges[l->merge_count++] = merge;
    replace(l, left, right, (uint16_t)token);
}

iso_status iso_tiny_learn(uint32_t merges_max, iso_tiny_merge *merges, uint32_t *merge_count,
                          iso_error *error)
{
    const size_t pair_bytes = (size_t)TOKENS_MAX * TOKENS_MAX * sizeof(uint16_t);
    learner l = {.merges = merges, .room = 1};
    uint16_t left = 0, right = 0;

    ISO_ASSERT(merges_max <= ISO_TINY_MERGES_MAX);
    for (size_t i = 0; i < ISO_COUNT_OF(lines); i++)
        l.room += 2 * strlen(lines[i]);
    l.symbols = iso_alloc(l.room * sizeof *l.symbols, 2, "tiny.symbols");
    l.pairs = iso_alloc_zero(pair_bytes, 1, "tiny.pairs");
    if (l.symbols != NULL && l.pairs != NULL) {
        for (size_t i = 0; i < ISO_COUNT_OF(lines); i++)
            load(&l, lines[i]);
        while (l.merge_count < merges_max && best_pair(&l, &left, &right) >= 2)
            add_merge(&l, left, right);
        *merge_count = l.merge_count;
    }
    iso_release(l.symbols, l.symbols == NULL ? 0 : l.room * sizeof *l.symbols);
    iso_release(l.pairs, l.pairs == NULL ? 0 : pair_bytes);
    return l.symbols != NULL && l.pairs != NULL
               ? ISO_OK : iso_fail(error, ISO_NO_MEMORY, "out of memory learning a vocabulary");
}
