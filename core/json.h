/* json: bounded JSON with duplicate keys refused; the only door to jansson.
 *
 * A document is immutable and owns every value and string it lends. Accessors on a value of
 * another type return NULL, false or 0 elements; they never fail otherwise. Integers are 64 bit and
 * never pass through a double. */
#ifndef ISO_CORE_JSON_H
#define ISO_CORE_JSON_H

#include "core/status.h"

typedef struct iso_json_doc iso_json_doc;
typedef struct iso_json iso_json;          /* a value inside a document; lent */

typedef enum iso_json_type {
    ISO_JSON_NULL, ISO_JSON_BOOL, ISO_JSON_INT, ISO_JSON_REAL, ISO_JSON_STRING, ISO_JSON_ARRAY,
    ISO_JSON_OBJECT
} iso_json_type;

/* Parses `bytes` bytes of UTF-8 JSON (any value at the top). `what` names the source in errors,
 * e.g. a file name. ISO_BAD_JSON: "what: line 3 column 9: duplicate object key near ...". */
iso_status iso_json_parse(const char *text, size_t bytes, const char *what, iso_json_doc **doc,
                          iso_error *error);
/* Reads a file of at most bytes_max bytes; *text is NUL-terminated behind them, and freed with
 * iso_free. */
iso_status iso_json_read_text(const char *path, size_t bytes_max, char **text, size_t *bytes,
                              iso_error *error);
/* Reads a file of at most bytes_max bytes and parses it. ISO_NOT_FOUND (no file, or a
 * directory), ISO_IO, ISO_LIMIT. */
iso_status iso_json_read(const char *path, size_t bytes_max, iso_json_doc **doc,
                         iso_error *error);
void iso_json_free(iso_json_doc **doc);
const iso_json *iso_json_root(const iso_json_doc *doc);

iso_json_type iso_json_type_of(const iso_json *value);
const char *iso_json_type_name(iso_json_type type);

/* Elements of an array or members of an object; 0 for other types. */
size_t iso_json_size(const iso_json *value);
const iso_json *iso_json_at(const iso_json *array, size_t index);       /* NULL outside */
const iso_json *iso_json_get(const iso_json *object, const char *key);  /* NULL if absent */

/* Walks an object's members in file order: start with a zeroed cursor; false at the end. */
typedef struct iso_json_cursor {
    void *state;
} iso_json_cursor;
bool iso_json_next(const iso_json *object, iso_json_cursor *cursor, const char **key,
                   const iso_json **value);

bool iso_json_int(const iso_json *value, int64_t *out);        /* integers only */
bool iso_json_number(const iso_json *value, double *out);      /* integers and reals */
bool iso_json_bool(const iso_json *value, bool *out);
const char *iso_json_string(const iso_json *value, size_t *bytes); /* NULL if not a string; bytes
                                                                      may be NULL; may hold NULs */

#endif
