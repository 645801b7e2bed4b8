#include "text/utf8.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Bytes that follow a lead byte, and the range of the first of them (the others are 80..BF). */
typedef struct lead {
    uint8_t follow, low, high;
} lead;

static lead lead_of(uint8_t byte)
{
    if (byte >= 0xc2 && byte <= 0xdf)
        return (lead){1, 0x80, 0xbf};
    if (byte == 0xe0)
        return (lead){2, 0xa0, 0xbf};
    if (byte == 0xed)
        return (lead){2, 0x80, 0x9f};
    if (byte >= 0xe1 && byte <= 0xef)
        return (lead){2, 0x80, 0xbf};
    if (byte == 0xf0)
        return (lead){3, 0x90, 0xbf};
    if (byte == 0xf4)
        return (lead){3, 0x80, 0x8f};
    if (byte >= 0xf1 && byte <= 0xf3)
        return (lead){3, 0x80, 0xbf};
    return (lead){0, 1, 0};
}

iso_utf8_kind iso_utf8_next(const char *text, size_t bytes, uint32_t *code, size_t *taken)
{
    const uint8_t first = (uint8_t)text[0];
    lead want;
    uint32_t value;

    *taken = 1;
    if (first < 0x80) {
        *code = first;
        return ISO_UTF8_CHAR;
    }
    want = lead_of(first);
    if (want.follow == 0)
        return ISO_UTF8_BAD;
    value = first & (0x3fu >> want.follow);
    for (uint8_t i = 0; i < want.follow; i++) {
        uint8_t byte;

        if (*taken == bytes)
            return ISO_UTF8_CUT;
        byte = (uint8_t)text[*taken];
        if (byte < want.low || byte > want.high)
            return ISO_UTF8_BAD;
        want.low = 0x80;
        want.high = 0xbf;
        value = value << 6 | (byte & 0x3fu);
        *taken += 1;
    }
    *code = value;
    return ISO_UTF8_CHAR;
}

/* Bytes of the longest ASCII start; most texts are mostly ASCII. */
static size_t ascii_prefix(const char *text, size_t bytes)
{
    size_t i = 0;
    uint64_t word;

    for (; bytes - i >= sizeof word; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        if ((word & 0x8080808080808080u) != 0)
            break;
    }
    while (i < bytes && (uint8_t)text[i] < 0x80)
        i++;
    return i;
}

bool iso_utf8_is_valid(const char *text, size_t bytes)
{
    size_t i = 0, taken;
    uint32_t code;

    while (i < bytes) {
        i += ascii_prefix(text + i, bytes - i);
        if (i == bytes)
            break;
        if (iso_utf8_next(text + i, bytes - i, &code, &taken) != ISO_UTF8_CHAR)
            return false;
        i += taken;
    }
    return true;
}

void iso_utf8_repair(const char *text, size_t bytes, iso_chars *out)
{
    size_t i = 0, good = 0, taken;   /* text[good..i) is valid and not yet appended */
    uint32_t code;

    if (bytes == 0)
        return;
    while (i < bytes) {
        const iso_utf8_kind kind = iso_utf8_next(text + i, bytes - i, &code, &taken);

        if (kind != ISO_UTF8_CHAR) {
            iso_chars_add(out, text + good, i - good);
            iso_chars_add(out, replacement, 3);
            good = i + taken;
        }
        i += taken;
    }
    iso_chars_add(out, text + good, bytes - good);
}

void iso_utf8_add(iso_chars *out, uint32_t code)
{
    char text[4];

    if (code < 0x80) {
        text[0] = (char)code;
        iso_chars_add(out, text, 1);
    } else if (code < 0x800) {
        text[0] = (char)(0xc0 | code >> 6);
        text[1] = (char)(0x80 | (code & 0x3f));
        iso_chars_add(out, text, 2);
    } else if (code < 0x10000) {
        text[0] = (char)(0xe0 | code >> 12);
        text[1] = (char)(0x80 | (code >> 6 & 0x3f));
        text[2] = (char)(0x80 | (code & 0x3f));
        iso_chars_add(out, text, 3);
    } else {
        text[0] = (char)(0xf0 | code >> 18);
        text[1] = (char)(0x80 | (code >> 12 & 0x3f));
        text[2] = (char)(0x80 | (code >> 6 & 0x3f));
        text[3] = (char)(0x80 | (code & 0x3f));
        iso_chars_add(out, text, 4);
    }
}
