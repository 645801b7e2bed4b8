/* utf8: UTF-8 as the Unicode standard defines it: no surrogates, no overlong forms, nothing
 * above U+10FFFF. Ill-formed input is cut into maximal subparts (section 3.9 of the standard), so
 * that every implementation puts the same number of U+FFFD. Only iso_chars allocates. */
#ifndef ISO_TEXT_UTF8_H
#define ISO_TEXT_UTF8_H

#include "text/growing.h"

typedef enum iso_utf8_kind {
    ISO_UTF8_CHAR,           /* one character */
    ISO_UTF8_BAD,            /* a maximal subpart that can become no character */
    ISO_UTF8_CUT             /* the text ends inside a character that was well-formed so far */
} iso_utf8_kind;

/* Looks at the start of text (bytes >= 1). *taken receives 1..4, *code the code point of a CHAR. */
iso_utf8_kind iso_utf8_next(const char *text, size_t bytes, uint32_t *code, size_t *taken);

bool iso_utf8_is_valid(const char *text, size_t bytes);

/* Appends text with U+FFFD for each ill-formed part (a cut end included). */
void iso_utf8_repair(const char *text, size_t bytes, iso_chars *out);

/* Appends one code point (a Unicode scalar value). */
void iso_utf8_add(iso_chars *out, uint32_t code);

#endif
