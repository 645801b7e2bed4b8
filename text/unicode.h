/* unicode: normal forms and case; the only door to utf8proc. Any Unicode version from 14.0 on gives
 * the same results for text assigned in 14.0, by the stability policies of the standard; the
 * released vocabulary holds no other. Threads: pure functions. */
#ifndef ISO_TEXT_UNICODE_H
#define ISO_TEXT_UNICODE_H

#include "text/growing.h"

/* Appends text (valid UTF-8) in NFKD form, without marks (general categories Mn, Mc, Me) and in
 * lower case, one character at a time (no final-sigma rule). out->failed: no memory. */
void iso_unicode_fold(const char *text, size_t bytes, iso_chars *out);

/* The property White_Space. */
bool iso_unicode_is_white(uint32_t code);

#endif
