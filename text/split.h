/* split: cuts text into pieces by the regular expressions of a tokenizer file; the only door to
 * PCRE2. Patterns apply one after another, each to the pieces of the one before; what no
 * alternative matches stays a piece of its own ("Isolated").
 *
 * The files' dialect is Oniguruma's. A pattern is accepted when both dialects agree on it:
 * classes, groups, quantifiers, look-ahead and the escapes \p{x} and \P{x} of the categories L, M,
 * N, P, S, \r \n \t \s \S and of punctuation. \s means the Unicode property White_Space there
 * and more than that in PCRE2, so it is replaced by an explicit class. Results depend neither on
 * PCRE2's Unicode version (see unicode_pin.h) nor on its JIT being available.
 * Threads: a splitter is immutable once its patterns are added. */
#ifndef ISO_TEXT_SPLIT_H
#define ISO_TEXT_SPLIT_H

#include "core/status.h"

#define ISO_SPLIT_PATTERNS_MAX 16

typedef struct iso_splitter iso_splitter;
typedef iso_status iso_piece_fn(void *context, const char *piece, size_t bytes);

/* ISO_UNSUPPORTED if PCRE2's Unicode data is older than 14.0; ISO_NO_MEMORY. */
ISO_CHECKED iso_status iso_splitter_create(iso_splitter **splitter, iso_error *error);
void iso_splitter_destroy(iso_splitter **splitter);

/* Appends a pattern. ISO_BAD_TOKENIZER: a pattern that does not compile, uses another escape or
 * can match the empty string; ISO_LIMIT; ISO_NO_MEMORY. */
ISO_CHECKED iso_status iso_splitter_add(iso_splitter *splitter, const char *pattern,
                                        size_t bytes, iso_error *error);

/* Calls fn for each piece of valid UTF-8 text, in order; the pieces join to the text and none is
 * empty. A status of fn other than ISO_OK ends the run and is returned. ISO_LIMIT: a pattern
 * backtracks without end; ISO_NO_MEMORY. */
ISO_CHECKED iso_status iso_splitter_run(const iso_splitter *splitter, const char *text,
                                        size_t bytes, iso_piece_fn *fn, void *context,
                                        iso_error *error);

#endif
