#include "core/text.h"

#include "core/alloc.h"

#include <string.h>

static bool reserve(iso_text *text, size_t more)
{
    size_t wanted = text->used + more + 1;
    char *grown;

    if (text->is_out_of_memory)
        return false;
    if (wanted <= text->capacity)
        return true;
    wanted = wanted < 256 ? 256 : wanted * 2;
    grown = iso_alloc(wanted, 1, "text");
    if (grown == NULL) {
        text->is_out_of_memory = true;
        return false;
    }
    if (text->used != 0)
        memcpy(grown, text->data, text->used);
    grown[text->used] = '\0';
    iso_release(text->data, text->capacity);
    text->data = grown;
    text->capacity = wanted;
    return true;
}

void iso_text_printf(iso_text *text, const char *format, ...)
{
    va_list args;
    int bytes;

    va_start(args, format);
    bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes < 0 || !reserve(text, (size_t)bytes))
        return;
    va_start(args, format);
    vsnprintf(text->data + text->used, (size_t)bytes + 1, format, args);
    va_end(args);
    text->used += (size_t)bytes;
}

static void put(iso_text *text, const char *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    memcpy(text->data + text->used, bytes, count);
    text->used += count;
    text->data[text->used] = '\0';
}

/* Bytes of the UTF-8 character at s, 0 if it is not one. */
static size_t utf8_bytes(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t count = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
                       : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t code = s[0] & (0xffu >> (count + (count > 1)));

    for (size_t i = 1; i < count; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (count > 1 && (code < least[count] || code > 0x10ffff || (code & 0xfffff800) == 0xd800))
        return 0;
    return count;
}

void iso_text_json(iso_text *text, const char *string)
{
    const unsigned char *s = (const unsigned char *)string;

    put(text, "\"", 1);
    while (*s != '\0') {
        const size_t count = utf8_bytes(s);

        if (count == 0)
            put(text, "\xef\xbf\xbd", 3);
        else if (*s == '"' || *s == '\\')
            iso_text_printf(text, "\\%c", *s);
        else if (*s < 0x20)
            iso_text_printf(text, "\\u%04x", *s);
        else
            put(text, (const char *)s, count);
        s += count == 0 ? 1 : count;
    }
    put(text, "\"", 1);
}

iso_status iso_text_take(iso_text *text, char **out, iso_error *error)
{
    char *copy = NULL;

    if (reserve(text, 0))
        copy = iso_alloc_public(text->used + 1);
    if (copy != NULL) {
        memcpy(copy, text->data, text->used);
        copy[text->used] = '\0';
        *out = copy;
    }
    iso_text_free(text);
    return copy != NULL ? ISO_OK : iso_fail(error, ISO_NO_MEMORY, "out of memory for a report");
}

void iso_text_free(iso_text *text)
{
    iso_release(text->data, text->capacity);
    *text = (iso_text){0};
}
