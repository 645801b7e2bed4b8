#include "core/alloc.h"
#include "text/chat.h"
#include "text/content.h"
#include "text/string_map.h"

#include <stdlib.h>
#include <string.h>

static const char *const role_names[] = {"system", "user", "assistant", "tool",
                                         "latest_reminder"};

static const struct {
    const char *name;
    iso_marker marker;
} tasks[] = {
    {"action", ISO_MARKER_ACTION},       {"query", ISO_MARKER_QUERY},
    {"authority", ISO_MARKER_AUTHORITY}, {"domain", ISO_MARKER_DOMAIN},
    {"title", ISO_MARKER_TITLE},         {"read_url", ISO_MARKER_READ_URL},
};

static iso_status read_role(const iso_json *message, iso_role *role, iso_error *error)
{
    const char *name = iso_json_string(iso_json_get(message, "role"), NULL);

    for (size_t i = 0; name != NULL && i < ISO_COUNT_OF(role_names); i++) {
        if (strcmp(name, role_names[i]) == 0) {
            *role = (iso_role)i;
            return ISO_OK;
        }
    }
    return iso_fail(error, ISO_BAD_PROMPT,
                    "role: system, user, assistant, tool or latest_reminder expected, %s found",
                    name == NULL ? "nothing" : name);
}

static iso_status read_task(const iso_json *message, iso_marker *task, iso_error *error)
{
    const iso_json *value = iso_json_get(message, "task");
    const char *name = iso_json_string(value, NULL);

    *task = ISO_MARKER_NONE;
    if (iso_json_type_of(value) == ISO_JSON_NULL)
        return ISO_OK;
    for (size_t i = 0; name != NULL && i < ISO_COUNT_OF(tasks); i++) {
        if (strcmp(name, tasks[i].name) == 0) {
            *task = tasks[i].marker;
            return ISO_OK;
        }
    }
    return iso_fail(error, ISO_BAD_PROMPT,
                    "task: action, query, authority, domain, title or read_url expected, %s found",
                    name == NULL ? iso_json_type_name(iso_json_type_of(value)) : name);
}

/* A member that is absent, null, or of the given type. */
static iso_status check_member(const iso_json *message, const char *key, iso_json_type type,
                               iso_error *error)
{
    const iso_json_type found = iso_json_type_of(iso_json_get(message, key));

    if (found == ISO_JSON_NULL || found == type)
        return ISO_OK;
    return iso_fail(error, ISO_BAD_PROMPT, "%s: %s expected, %s found", key,
                    iso_json_type_name(type), iso_json_type_name(found));
}

static iso_status check_message(const iso_json *message, iso_role role, iso_error *error)
{
    const iso_json *content = iso_json_get(message, "content");
    /* An assistant that only calls tools, or a system turn that only lists them, says nothing. */
    const bool may_be_null = role == ISO_ROLE_SYSTEM || role == ISO_ROLE_ASSISTANT;
    const bool is_null = content != NULL && iso_json_type_of(content) == ISO_JSON_NULL;

    if ((content == NULL && role == ISO_ROLE_LATEST_REMINDER) || (is_null && !may_be_null))
        return iso_fail(error, ISO_BAD_PROMPT, "content: a string or a list expected, %s found",
                        is_null ? "null" : "nothing");
    ISO_TRY(iso_content_check(message, error));
    ISO_TRY(iso_content_check_string(message, "reasoning_content", error));
    ISO_TRY(check_member(message, "tool_call_id", ISO_JSON_STRING, error));
    ISO_TRY(check_member(message, "tool_calls", ISO_JSON_ARRAY, error));
    ISO_TRY(check_member(message, "tools", ISO_JSON_ARRAY, error));
    ISO_TRY(check_member(message, "response_format", ISO_JSON_OBJECT, error));
    return check_member(message, "wo_eos", ISO_JSON_BOOL, error);
}

static iso_status add_block(iso_chat *chat, iso_block_kind kind, const iso_json *value,
                            iso_error *error)
{
    void *blocks;

    if (chat->block_count == chat->block_capacity) {
        blocks = iso_array_grow(chat->blocks, &chat->block_capacity, chat->block_count,
                                chat->block_count + 1, sizeof *chat->blocks);
        if (blocks == NULL)
            return iso_fail(error, ISO_NO_MEMORY, "chat: out of memory");
        chat->blocks = blocks;
    }
    chat->blocks[chat->block_count++] = (iso_block){kind, value};
    chat->turns[chat->turn_count - 1].block_count++;
    return ISO_OK;
}

static iso_status add_turn(iso_chat *chat, iso_turn turn, iso_error *error)
{
    void *turns;

    if (chat->turn_count == chat->turn_capacity) {
        turns = iso_array_grow(chat->turns, &chat->turn_capacity, chat->turn_count,
                               chat->turn_count + 1, sizeof *chat->turns);
        if (turns == NULL)
            return iso_fail(error, ISO_NO_MEMORY, "chat: out of memory");
        chat->turns = turns;
    }
    turn.block_first = chat->block_count;
    chat->turns[chat->turn_count++] = turn;
    return ISO_OK;
}

static iso_status add_user_blocks(iso_chat *chat, const iso_json *message, iso_error *error)
{
    const iso_json *content = iso_json_get(message, "content");

    if (iso_json_type_of(content) != ISO_JSON_ARRAY || iso_json_size(content) == 0)
        return add_block(chat, ISO_BLOCK_MESSAGE, message, error);
    for (size_t i = 0; i < iso_json_size(content); i++)
        ISO_TRY(add_block(chat, ISO_BLOCK_PART, iso_json_at(content, i), error));
    return ISO_OK;
}

/* A tool result joins any user turn before it; a user message one that has no task. */
static iso_status read_message(iso_chat *chat, const iso_json *message, size_t index,
                               iso_error *error)
{
    const iso_turn *last = chat->turn_count == 0 ? NULL : &chat->turns[chat->turn_count - 1];
    const bool after_user = last != NULL && last->role == ISO_ROLE_USER;
    iso_turn turn = {.message = message, .message_index = index};

    if (iso_json_type_of(message) != ISO_JSON_OBJECT)
        return iso_fail(error, ISO_BAD_PROMPT, "an object expected, %s found",
                        iso_json_type_name(iso_json_type_of(message)));
    ISO_TRY(read_role(message, &turn.role, error));
    ISO_TRY(read_task(message, &turn.task, error));
    ISO_TRY(check_message(message, turn.role, error));
    if (turn.role == ISO_ROLE_TOOL) {
        if (!after_user) {
            turn.role = ISO_ROLE_USER;
            turn.task = ISO_MARKER_NONE;
            ISO_TRY(add_turn(chat, turn, error));
        }
        return add_block(chat, ISO_BLOCK_TOOL, message, error);
    }
    if (turn.role != ISO_ROLE_USER)
        return add_turn(chat, turn, error);
    if (!after_user || last->task != ISO_MARKER_NONE)
        ISO_TRY(add_turn(chat, turn, error));
    return add_user_blocks(chat, message, error);
}

static bool is_tool_result(const iso_block *block)
{
    return block->kind == ISO_BLOCK_TOOL ||
           (block->kind == ISO_BLOCK_PART &&
            iso_part_kind_of(block->value) == ISO_PART_TOOL_RESULT);
}

/* Ids of the calls -> their index; the last call wins where an id is there twice. */
static iso_status map_calls(const iso_json *calls, iso_string_map *order, iso_error *error)
{
    if (!iso_string_map_init(order, iso_json_size(calls)))
        return iso_fail(error, ISO_NO_MEMORY, "chat: out of memory");
    for (size_t i = iso_json_size(calls); i-- > 0;) {
        size_t bytes = 0;
        const char *id = iso_json_string(iso_json_get(iso_json_at(calls, i), "id"), &bytes);

        if (id != NULL && bytes != 0)
            iso_string_map_insert(order, id, bytes, (uint32_t)i);
    }
    return ISO_OK;
}

typedef struct sorted_block {
    uint32_t rank;
    size_t position;
    iso_block block;
} sorted_block;

static int by_rank(const void *left, const void *right)
{
    const sorted_block *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* Sorts the tool results of a turn by the order of their calls; other blocks keep their places. */
static iso_status sort_results(iso_chat *chat, const iso_turn *turn, const iso_string_map *order,
                               iso_error *error)
{
    iso_block *blocks = chat->blocks + turn->block_first;
    sorted_block *results;
    size_t count = 0;

    if (turn->block_count < 2 || order->used == 0)
        return ISO_OK;
    results = iso_alloc_zero(turn->block_count, sizeof *results, "chat");
    if (results == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "chat: out of memory");
    for (size_t i = 0; i < turn->block_count; i++) {
        const char *key = blocks[i].kind == ISO_BLOCK_TOOL ? "tool_call_id" : "tool_use_id";
        size_t bytes = 0;
        const char *id = iso_json_string(iso_json_get(blocks[i].value, key), &bytes);
        uint32_t rank = 0;

        if (!is_tool_result(&blocks[i]))
            continue;
        if (id != NULL)
            (void)iso_string_map_find(order, id, bytes, &rank);
        results[count++] = (sorted_block){rank, i, blocks[i]};
    }
    qsort(results, count, sizeof *results, by_rank);
    for (size_t i = 0, next = 0; i < turn->block_count; i++)
        if (is_tool_result(&blocks[i]))
            blocks[i] = results[next++].block;
    iso_release(results, turn->block_count * sizeof *results);
    return ISO_OK;
}

static iso_status sort_all_results(iso_chat *chat, iso_error *error)
{
    iso_string_map order = {0};
    iso_status status = ISO_OK;

    for (size_t i = 0; i < chat->turn_count && status == ISO_OK; i++) {
        const iso_turn *turn = &chat->turns[i];
        const iso_json *calls = iso_json_get(turn->message, "tool_calls");

        if (turn->role == ISO_ROLE_ASSISTANT && iso_json_size(calls) != 0) {
            iso_string_map_deinit(&order);
            status = map_calls(calls, &order, error);
        } else if (turn->role == ISO_ROLE_USER) {
            status = sort_results(chat, turn, &order, error);
        }
    }
    iso_string_map_deinit(&order);
    return status;
}

iso_status iso_chat_read(iso_chat *chat, const iso_json *messages, iso_error *error)
{
    if (iso_json_type_of(messages) != ISO_JSON_ARRAY)
        return iso_fail(error, ISO_BAD_PROMPT, "messages: an array expected, %s found",
                        iso_json_type_name(iso_json_type_of(messages)));
    for (size_t i = 0; i < iso_json_size(messages); i++) {
        const iso_status status = read_message(chat, iso_json_at(messages, i), i, error);

        if (status != ISO_OK)
            return iso_fail_in(error, status, "messages[%zu]", i);
    }
    chat->last_user = SIZE_MAX;
    for (size_t i = 0; i < chat->turn_count; i++) {
        const iso_turn *turn = &chat->turns[i];

        if (turn->role == ISO_ROLE_USER || (turn->role == ISO_ROLE_SYSTEM && i > 0))
            chat->last_user = i;
        if (iso_json_size(iso_json_get(turn->message, "tools")) != 0)
            chat->has_tools = true;
    }
    return sort_all_results(chat, error);
}

void iso_chat_deinit(iso_chat *chat)
{
    iso_release(chat->turns, chat->turn_capacity * sizeof *chat->turns);
    iso_release(chat->blocks, chat->block_capacity * sizeof *chat->blocks);
    *chat = (iso_chat){0};
}
