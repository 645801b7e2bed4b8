/* text: a growing text buffer for reports. A failed allocation is remembered, so that a report can
 * be written without a check per line; iso_text_take says so at the end. */
#ifndef ISO_CORE_TEXT_H
#define ISO_CORE_TEXT_H

#include "core/status.h"

typedef struct iso_text {
    char *data;              /* NUL-terminated once something was written */
    size_t used, capacity;   /* bytes, the NUL not counted in used */
    bool is_out_of_memory;
} iso_text;

/* Start with a zeroed struct. */
void iso_text_printf(iso_text *text, const char *format, ...) ISO_PRINTF(2, 3);
/* A JSON string with its quotes; `string` is UTF-8, invalid bytes are written as U+FFFD. */
void iso_text_json(iso_text *text, const char *string);
/* Gives the text away: *out is the caller's, ended with iso_free. The struct is used up, also on
 * ISO_NO_MEMORY. */
iso_status iso_text_take(iso_text *text, char **out, iso_error *error);
/* Ends a text that was not taken. */
void iso_text_free(iso_text *text);

#endif
