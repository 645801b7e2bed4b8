#include "text/prompt.h"

#include "core/alloc.h"
#include "text/tokenizer.h"

#include <string.h>

static const char *const marker_texts[] = {
#define MARKER(name, text) text,
#include "text/markers.def"
#undef MARKER
};

const char *iso_marker_text(iso_marker marker)
{
    ISO_ASSERT(marker < ISO_MARKER_COUNT);
    return marker_texts[marker];
}

void iso_prompt_add_marker(iso_prompt *prompt, iso_marker marker)
{
    void *marks;

    if (prompt->mark_count == prompt->mark_capacity) {
        marks = iso_array_grow(prompt->marks, &prompt->mark_capacity, prompt->mark_count,
                               prompt->mark_count + 1, sizeof *prompt->marks);
        if (marks == NULL) {
            prompt->text.failed = true;
            return;
        }
        prompt->marks = marks;
    }
    prompt->marks[prompt->mark_count++] = (iso_prompt_mark){prompt->text.used, marker};
    iso_chars_add_string(&prompt->text, iso_marker_text(marker));
}

/* The marker that starts the text among those that protocol text may hold. */
static iso_marker protocol_marker(const char *text)
{
    static const iso_marker known[] = {ISO_MARKER_THINK, ISO_MARKER_THINK_END, ISO_MARKER_DSML};

    for (size_t i = 0; i < ISO_COUNT_OF(known); i++)
        if (strncmp(text, marker_texts[known[i]], strlen(marker_texts[known[i]])) == 0)
            return known[i];
    return ISO_MARKER_NONE;
}

void iso_prompt_add_protocol(iso_prompt *prompt, const char *text)
{
    const char *plain = text;        /* what is before `text` and not yet added */

    while (*text != '\0') {
        const iso_marker marker = protocol_marker(text);

        if (marker == ISO_MARKER_NONE) {
            text++;
            continue;
        }
        iso_chars_add(&prompt->text, plain, (size_t)(text - plain));
        iso_prompt_add_marker(prompt, marker);
        text += strlen(marker_texts[marker]);
        plain = text;
    }
    iso_chars_add(&prompt->text, plain, (size_t)(text - plain));
}

void iso_prompt_add_content(iso_prompt *prompt, const char *text, size_t bytes)
{
    iso_chars_add(&prompt->text, text, bytes);
}

void iso_prompt_deinit(iso_prompt *prompt)
{
    iso_release(prompt->marks, prompt->mark_capacity * sizeof *prompt->marks);
    iso_chars_deinit(&prompt->text);
    *prompt = (iso_prompt){0};
}

iso_status iso_prompt_encode(const iso_prompt *prompt, const iso_tokenizer *tokenizer,
                             iso_ids *ids, iso_error *error)
{
    const char *text = prompt->text.data;
    size_t at = 0;

    if (prompt->text.failed)
        return iso_fail(error, ISO_NO_MEMORY, "prompt: out of memory");
    for (size_t i = 0; i < prompt->mark_count; i++) {
        const iso_prompt_mark *mark = &prompt->marks[i];
        const char *name = marker_texts[mark->marker];
        const int32_t id = iso_tokenizer_find(tokenizer, name);

        if (id < 0)
            return iso_fail(error, ISO_BAD_TOKENIZER,
                            "added token %s expected in the tokenizer, not found", name);
        ISO_TRY(iso_tokenizer_append(tokenizer, text + at, mark->offset - at, ISO_ENCODE_PLAIN,
                                     ids, error));
        iso_ids_add(ids, id);
        at = mark->offset + strlen(name);
    }
    if (prompt->text.used > at)
        ISO_TRY(iso_tokenizer_append(tokenizer, text + at, prompt->text.used - at,
                                     ISO_ENCODE_PLAIN, ids, error));
    if (ids->failed)
        return iso_fail(error, ISO_NO_MEMORY, "prompt: out of memory");
    return ISO_OK;
}
