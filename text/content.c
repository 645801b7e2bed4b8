#include "text/content.h"

#include <string.h>

#define BETWEEN "\n\n"

static bool holds_image_token(const char *text, size_t bytes)
{
    const char *token = iso_marker_text(ISO_MARKER_IMAGE);
    const size_t token_bytes = strlen(token);

    for (size_t i = 0; i + token_bytes <= bytes; i++) {
        const char *start = memchr(text + i, token[0], bytes - token_bytes + 1 - i);

        if (start == NULL)
            return false;
        i = (size_t)(start - text);
        if (memcmp(start, token, token_bytes) == 0)
            return true;
    }
    return false;
}

iso_status iso_content_check_string(const iso_json *object, const char *key, iso_error *error)
{
    const iso_json *value = iso_json_get(object, key);
    const iso_json_type type = iso_json_type_of(value);
    size_t bytes = 0;
    const char *text = iso_json_string(value, &bytes);

    if (value == NULL || type == ISO_JSON_NULL)
        return ISO_OK;
    if (text == NULL)
        return iso_fail(error, ISO_BAD_PROMPT, "%s: a string expected, %s found", key,
                        iso_json_type_name(type));
    if (holds_image_token(text, bytes))
        return iso_fail(error, ISO_BAD_PROMPT,
                        "%s: text without %s expected: images are parts of type \"image\"", key,
                        iso_marker_text(ISO_MARKER_IMAGE));
    return ISO_OK;
}

iso_part_kind iso_part_kind_of(const iso_json *part)
{
    const char *type = iso_json_string(iso_json_get(part, "type"), NULL);

    if (type == NULL)
        return ISO_PART_OTHER;
    if (strcmp(type, "text") == 0)
        return ISO_PART_TEXT;
    if (strcmp(type, "image") == 0 || strcmp(type, "image_url") == 0)
        return ISO_PART_IMAGE;
    return strcmp(type, "tool_result") == 0 ? ISO_PART_TOOL_RESULT : ISO_PART_OTHER;
}

/* An image says where it comes from: {image_url: "..."}, {image_url: {url}}, {url}, {source} or
 * {data}. */
static iso_status check_image(const iso_json *part, iso_error *error)
{
    static const char *const keys[] = {"image_url", "url", "source", "data"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const iso_json *value = iso_json_get(part, keys[i]);
        const iso_json_type type = iso_json_type_of(value);

        if (type == ISO_JSON_STRING || (type == ISO_JSON_OBJECT && i >= 2) ||
            (type == ISO_JSON_OBJECT && iso_json_string(iso_json_get(value, "url"), NULL) != NULL))
            return ISO_OK;
    }
    return iso_fail(error, ISO_BAD_PROMPT, "an image with an url, source or data expected");
}

static iso_status check_part(const iso_json *part, unsigned depth, iso_error *error);

/* depth: of nested tool results; each holds a list of parts at most. */
static iso_status check_content(const iso_json *owner, unsigned depth, iso_error *error)
{
    const iso_json *content = iso_json_get(owner, "content");

    if (iso_json_type_of(content) != ISO_JSON_ARRAY)
        return iso_content_check_string(owner, "content", error);
    if (depth > 4)
        return iso_fail(error, ISO_BAD_PROMPT, "content: at most 4 nested lists expected");
    for (size_t i = 0; i < iso_json_size(content); i++) {
        const iso_status status = check_part(iso_json_at(content, i), depth, error);

        if (status != ISO_OK)
            return iso_fail_in(error, status, "content[%zu]", i);
    }
    return ISO_OK;
}

static iso_status check_part(const iso_json *part, unsigned depth, iso_error *error)
{
    if (iso_json_type_of(part) != ISO_JSON_OBJECT)
        return iso_fail(error, ISO_BAD_PROMPT, "an object expected, %s found",
                        iso_json_type_name(iso_json_type_of(part)));
    if (iso_json_string(iso_json_get(part, "type"), NULL) == NULL)
        return iso_fail(error, ISO_BAD_PROMPT, "type: a string expected");
    switch (iso_part_kind_of(part)) {
    case ISO_PART_TEXT:
        return iso_content_check_string(part, "text", error);
    case ISO_PART_IMAGE:
        return check_image(part, error);
    case ISO_PART_TOOL_RESULT:
        ISO_TRY(iso_content_check_string(part, "tool_use_id", error));
        return check_content(part, depth + 1, error);
    case ISO_PART_OTHER:
        break;
    }
    return ISO_OK;
}

iso_status iso_content_check(const iso_json *owner, iso_error *error)
{
    return check_content(owner, 0, error);
}

void iso_content_add_member(iso_prompt *prompt, const iso_json *object, const char *key)
{
    size_t bytes = 0;
    const char *text = iso_json_string(iso_json_get(object, key), &bytes);

    if (text != NULL)
        iso_prompt_add_content(prompt, text, bytes);
}

static void add_unsupported(iso_prompt *prompt, const iso_json *part)
{
    iso_prompt_add_protocol(prompt, "[Unsupported ");
    iso_content_add_member(prompt, part, "type");
    iso_prompt_add_protocol(prompt, "]");
}

/* Text and images of a list; other parts are named if `names_others`, else left out. */
static void add_list(iso_prompt *prompt, const iso_json *list, bool names_others)
{
    const char *between = "";

    for (size_t i = 0; i < iso_json_size(list); i++) {
        const iso_json *part = iso_json_at(list, i);
        const iso_part_kind kind = iso_part_kind_of(part);

        if (kind != ISO_PART_TEXT && kind != ISO_PART_IMAGE && !names_others)
            continue;
        iso_prompt_add_protocol(prompt, between);
        between = BETWEEN;
        if (kind == ISO_PART_TEXT)
            iso_content_add_member(prompt, part, "text");
        else if (kind == ISO_PART_IMAGE)
            iso_prompt_add_marker(prompt, ISO_MARKER_IMAGE);
        else
            add_unsupported(prompt, part);
    }
}

void iso_content_add(iso_prompt *prompt, const iso_json *content)
{
    size_t bytes = 0;
    const char *text = iso_json_string(content, &bytes);

    if (text != NULL)
        iso_prompt_add_content(prompt, text, bytes);
    else if (iso_json_type_of(content) == ISO_JSON_ARRAY)
        add_list(prompt, content, false);
}

void iso_content_add_part(iso_prompt *prompt, const iso_json *part)
{
    const iso_json *content = iso_json_get(part, "content");

    switch (iso_part_kind_of(part)) {
    case ISO_PART_TEXT:
        iso_content_add_member(prompt, part, "text");
        break;
    case ISO_PART_IMAGE:
        iso_prompt_add_marker(prompt, ISO_MARKER_IMAGE);
        break;
    case ISO_PART_TOOL_RESULT:
        iso_prompt_add_protocol(prompt, "<tool_result>");
        if (iso_json_type_of(content) == ISO_JSON_ARRAY)
            add_list(prompt, content, true);
        else
            iso_content_add(prompt, content);
        iso_prompt_add_protocol(prompt, "</tool_result>");
        break;
    case ISO_PART_OTHER:
        add_unsupported(prompt, part);
        break;
    }
}
