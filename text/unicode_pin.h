/* unicode_pin: general categories that do not depend on the Unicode version of a library.
 *
 * Regular expressions of tokenizer files speak of the categories L, M, N, P and S. A code point
 * that was assigned in Unicode 14.0 has kept its category since, so that every library we accept
 * agrees on it. The others are the rows of unicode_pin.def, with their category in Unicode 16.0:
 * the data of the tokenizers package that our goldens come from.
 * Threads: pure functions and constant data. */
#ifndef ISO_TEXT_UNICODE_PIN_H
#define ISO_TEXT_UNICODE_PIN_H

#include "text/growing.h"

/* Replaces each character that was unassigned in Unicode 14.0 by an old one of the same category
 * and the same number of bytes. The text is valid UTF-8. Appends nothing and returns false if
 * there is no such character, which is nearly always; else appends a text of equal length (or sets
 * out->failed) and returns true. */
bool iso_unicode_pin(const char *text, size_t bytes, iso_chars *out);

#endif
