#include "text/chat.h"

#include "core/check.h"
#include "text/content.h"
#include "text/dsml.h"
#include "text/python_json.h"

#include <stdio.h>
#include <string.h>

#define EFFORT_DEFAULT 75

typedef struct rendering {
    const iso_chat *chat;
    const iso_chat_options *options;
    bool drops;              /* reasoning of turns before the last user turn is left out */
    iso_prompt *prompt;
    iso_error *error;
} rendering;

/* What stands before the first turn: the effort line is in the system turn, which a thinking
 * conversation has even when it starts with another role. */
static void add_start(const rendering *r, const iso_turn *turn)
{
    char line[128];

    if (r->options->thinking || turn->role == ISO_ROLE_SYSTEM)
        iso_prompt_add_marker(r->prompt, ISO_MARKER_SYSTEM);
    if (!r->options->thinking)
        return;
    snprintf(line, sizeof line,
             "Reasoning Effort: %d (range 1-100, the higher the value, the more thorough the "
             "reasoning)\n\n",
             r->options->effort == 0 ? EFFORT_DEFAULT : r->options->effort);
    iso_prompt_add_protocol(r->prompt, line);
}

static iso_status add_system(const rendering *r, const iso_turn *turn, size_t index)
{
    const iso_json *tools = iso_json_get(turn->message, "tools");
    const iso_json *format = iso_json_get(turn->message, "response_format");

    if (index > 0)
        iso_prompt_add_marker(r->prompt, ISO_MARKER_SYSTEM);
    iso_content_add(r->prompt, iso_json_get(turn->message, "content"));
    if (iso_json_size(tools) != 0) {
        iso_prompt_add_protocol(r->prompt, "\n\n");
        ISO_TRY(iso_dsml_add_tools(r->prompt, tools, r->error));
    }
    if (iso_json_size(format) != 0) {
        iso_prompt_add_protocol(r->prompt,
                                "\n\n## Response Format:\n\nYou MUST strictly adhere to the "
                                "following schema to reply:\n");
        iso_python_json_add(&r->prompt->text, format);
    }
    return ISO_OK;
}

static void add_user(const rendering *r, const iso_turn *turn)
{
    iso_prompt_add_marker(r->prompt, ISO_MARKER_USER);
    for (size_t i = 0; i < turn->block_count; i++) {
        const iso_block *block = &r->chat->blocks[turn->block_first + i];
        const iso_json *content = iso_json_get(block->value, "content");

        if (i != 0)
            iso_prompt_add_protocol(r->prompt, "\n\n");
        switch (block->kind) {
        case ISO_BLOCK_MESSAGE:
            iso_content_add(r->prompt, content);
            break;
        case ISO_BLOCK_PART:
            iso_content_add_part(r->prompt, block->value);
            break;
        case ISO_BLOCK_TOOL:
            iso_prompt_add_protocol(r->prompt, "<tool_result>");
            iso_content_add(r->prompt, content);
            iso_prompt_add_protocol(r->prompt, "</tool_result>");
            break;
        }
    }
}

/* True for a turn after the last user turn, and for each one if there is none. */
static bool is_after_user(const rendering *r, size_t index)
{
    return r->chat->last_user == SIZE_MAX || index > r->chat->last_user;
}

static iso_status add_assistant(const rendering *r, const iso_turn *turn, size_t index)
{
    const iso_json *calls = iso_json_get(turn->message, "tool_calls");
    const bool after_task = index > 0 && turn[-1].task != ISO_MARKER_NONE;
    bool without_eos = false;

    if (r->options->thinking && !after_task && (!r->drops || is_after_user(r, index))) {
        iso_content_add_member(r->prompt, turn->message, "reasoning_content");
        iso_prompt_add_marker(r->prompt, ISO_MARKER_THINK_END);
    }
    iso_content_add(r->prompt, iso_json_get(turn->message, "content"));
    if (iso_json_size(calls) != 0) {
        iso_prompt_add_protocol(r->prompt, "\n\n");
        ISO_TRY(iso_dsml_add_calls(r->prompt, calls, r->error));
    }
    (void)iso_json_bool(iso_json_get(turn->message, "wo_eos"), &without_eos);
    if (!without_eos)
        iso_prompt_add_marker(r->prompt, ISO_MARKER_EOS);
    return ISO_OK;
}

/* Hands over to the model: the header of its turn, or a task token. */
static void add_transition(const rendering *r, const iso_turn *turn, size_t index)
{
    const bool thinks = r->options->thinking;
    const bool asks = turn->role == ISO_ROLE_USER || (turn->role == ISO_ROLE_SYSTEM && index > 0);
    bool opens = thinks;

    if (turn->task != ISO_MARKER_NONE && turn->task != ISO_MARKER_ACTION) {
        iso_prompt_add_marker(r->prompt, turn->task);
        return;
    }
    if (turn->task == ISO_MARKER_NONE) {
        if (!asks)
            return;
        opens = thinks && (!r->drops || index >= r->chat->last_user);
    }
    iso_prompt_add_marker(r->prompt, ISO_MARKER_ASSISTANT);
    iso_prompt_add_marker(r->prompt, opens ? ISO_MARKER_THINK : ISO_MARKER_THINK_END);
    if (turn->task == ISO_MARKER_ACTION)
        iso_prompt_add_marker(r->prompt, ISO_MARKER_ACTION);
}

static iso_status add_turn(const rendering *r, size_t index)
{
    const iso_turn *turn = &r->chat->turns[index];
    iso_role next = ISO_ROLE_ASSISTANT;

    if (index == 0)
        add_start(r, turn);
    switch (turn->role) {
    case ISO_ROLE_SYSTEM:
        ISO_TRY(add_system(r, turn, index));
        break;
    case ISO_ROLE_ASSISTANT:
        ISO_TRY(add_assistant(r, turn, index));
        break;
    case ISO_ROLE_LATEST_REMINDER:
        iso_prompt_add_marker(r->prompt, ISO_MARKER_LATEST_REMINDER);
        iso_content_add(r->prompt, iso_json_get(turn->message, "content"));
        break;
    case ISO_ROLE_USER:
    case ISO_ROLE_TOOL:
        add_user(r, turn);
        break;
    }
    if (index + 1 < r->chat->turn_count)
        next = turn[1].role;
    if (next == ISO_ROLE_ASSISTANT || next == ISO_ROLE_LATEST_REMINDER)
        add_transition(r, turn, index);
    return ISO_OK;
}

static iso_status render(const iso_chat *chat, const iso_chat_options *options,
                         iso_prompt *prompt, iso_error *error)
{
    const rendering r = {chat, options, !options->keep_thinking && !chat->has_tools, prompt,
                         error};

    if (!options->no_bos)
        iso_prompt_add_marker(prompt, ISO_MARKER_BOS);
    for (size_t i = 0; i < chat->turn_count; i++) {
        const iso_status status = add_turn(&r, i);

        if (status != ISO_OK)
            return iso_fail_in(error, status, "messages[%zu]", chat->turns[i].message_index);
    }
    return ISO_OK;
}

/* Copies the results out, both or neither. */
static iso_status publish(const iso_prompt *prompt, const iso_tokenizer *tokenizer,
                          iso_chat_prompt *out, iso_error *error)
{
    iso_chat_prompt made = {0};
    iso_ids found = {0};
    iso_status status;

    ISO_GOTO(iso_chars_publish(&prompt->text, &made.text, NULL, error));
    if (tokenizer != NULL) {
        ISO_GOTO(iso_prompt_encode(prompt, tokenizer, &found, error));
        ISO_GOTO(iso_ids_publish(&found, &made.tokens.ids, &made.tokens.count, error));
    }
    *out = made;
    made = (iso_chat_prompt){0};
    status = ISO_OK;
done:
    iso_free(made.text);
    iso_ids_deinit(&found);
    return status;
}

iso_status iso_chat_render(const iso_tokenizer *tokenizer, const char *messages_json,
                           size_t json_bytes, const iso_chat_options *options,
                           iso_chat_prompt *out, iso_error *error)
{
    static const iso_chat_options defaults = {0};
    iso_json_doc *doc = NULL;
    iso_chat chat = {0};
    iso_prompt prompt = {0};
    iso_status status;

    if (options == NULL)
        options = &defaults;
    if (messages_json == NULL || out == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_chat_render: NULL argument");
    if (options->effort < 0 || options->effort > 100)
        return iso_fail(error, ISO_BAD_ARGUMENT, "effort: 0..100 expected, %d found",
                        options->effort);
    ISO_GOTO(iso_json_parse(messages_json, json_bytes, "messages", &doc, error));
    ISO_GOTO(iso_chat_read(&chat, iso_json_root(doc), error));
    ISO_GOTO(render(&chat, options, &prompt, error));
    ISO_GOTO(publish(&prompt, tokenizer, out, error));
done:
    iso_prompt_deinit(&prompt);
    iso_chat_deinit(&chat);
    iso_json_free(&doc);
    return status;
}
