/* content: what a message says: a string, or a list of parts {type, ...} of which text, image,
 * image_url and tool_result are known. All of it is someone else's text; only an image part gives
 * a control token, and text that spells that token is refused. */
#ifndef ISO_TEXT_CONTENT_H
#define ISO_TEXT_CONTENT_H

#include "core/json.h"
#include "text/prompt.h"

typedef enum iso_part_kind {
    ISO_PART_TEXT, ISO_PART_IMAGE, ISO_PART_TOOL_RESULT, ISO_PART_OTHER
} iso_part_kind;

/* Checks a string that goes into the prompt: NULL-safe; anything but a string or nothing and null
 * is refused, and so is the image token's text. ISO_BAD_PROMPT, naming `key`. */
ISO_CHECKED iso_status iso_content_check_string(const iso_json *object, const char *key,
                                                iso_error *error);

/* Checks member "content" of a message or of a tool_result, where it is there. ISO_BAD_PROMPT. */
ISO_CHECKED iso_status iso_content_check(const iso_json *owner, iso_error *error);

/* The functions below take what iso_content_check has accepted. */

iso_part_kind iso_part_kind_of(const iso_json *part);

/* Appends a string, or the text and image parts of a list joined by empty lines; nothing for
 * null. */
void iso_content_add(iso_prompt *prompt, const iso_json *content);

/* Appends one part of a user's list. */
void iso_content_add_part(iso_prompt *prompt, const iso_json *part);

/* Appends member `key` of an object if it is a string. */
void iso_content_add_member(iso_prompt *prompt, const iso_json *object, const char *key);

#endif
