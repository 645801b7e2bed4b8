/* python_json: JSON as Python's json.dumps(value, ensure_ascii=False) writes it, which is what the
 * released prompts contain: ", " and ": " between elements, no ASCII-escapes for other scripts,
 * members in their order, reals in the shortest form that reads back. */
#ifndef ISO_TEXT_PYTHON_JSON_H
#define ISO_TEXT_PYTHON_JSON_H

#include "core/json.h"
#include "text/growing.h"

void iso_python_json_add(iso_chars *out, const iso_json *value);
void iso_python_json_add_string(iso_chars *out, const char *text, size_t bytes);

#endif
