/* prompt: a text that is built from three kinds of parts, and where control tokens stand in it.
 *
 *   marker    one control token, e.g. <｜User｜>
 *   protocol  text that this library wrote; <think>, </think> and ｜DSML｜ in it are control tokens
 *   content   text that someone else wrote; what looks like a control token in it is ordinary text
 *
 * Text between two control tokens is encoded as one piece, whatever parts it came from, as if the
 * rendered text had been encoded by a tokenizer that knows which markers are meant.
 * Failed allocations stick; iso_prompt_encode and iso_chars_publish report them. */
#ifndef ISO_TEXT_PROMPT_H
#define ISO_TEXT_PROMPT_H

#include "text/growing.h"

typedef enum iso_marker {
#define MARKER(name, text) ISO_MARKER_##name,
#include "text/markers.def"
#undef MARKER
    ISO_MARKER_COUNT,
    ISO_MARKER_NONE = ISO_MARKER_COUNT
} iso_marker;

typedef struct iso_prompt_mark {
    size_t offset;           /* of the marker's text in `text` */
    iso_marker marker;
} iso_prompt_mark;

typedef struct iso_prompt {
    iso_chars text;
    iso_prompt_mark *marks;  /* in order of their offsets */
    size_t mark_count, mark_capacity;
} iso_prompt;

/* "<｜User｜>"; static. */
const char *iso_marker_text(iso_marker marker);

void iso_prompt_add_marker(iso_prompt *prompt, iso_marker marker);
void iso_prompt_add_protocol(iso_prompt *prompt, const char *text);
void iso_prompt_add_content(iso_prompt *prompt, const char *text, size_t bytes);
void iso_prompt_deinit(iso_prompt *prompt);

/* Appends the ids. ISO_BAD_TOKENIZER if the tokenizer lacks a marker, ISO_NO_MEMORY, ISO_LIMIT. */
ISO_CHECKED iso_status iso_prompt_encode(const iso_prompt *prompt,
                                         const iso_tokenizer *tokenizer, iso_ids *ids,
                                         iso_error *error);

#endif
