/* chat: a list of messages, made ready to be rendered: tool results and following user messages
 * join the user turn before them, and tool results stand in the order of their calls (spec:
 * tokenizer-chat, section 3). The public function is iso_chat_render.
 *
 *   chat_read.c  messages -> turns, checked
 *   chat.c       turns -> prompt
 *
 * Threads: a chat has one owner. It lends everything from the JSON document of the messages. */
#ifndef ISO_TEXT_CHAT_H
#define ISO_TEXT_CHAT_H

#include "core/json.h"
#include "text/prompt.h"

typedef enum iso_role {
    ISO_ROLE_SYSTEM, ISO_ROLE_USER, ISO_ROLE_ASSISTANT, ISO_ROLE_TOOL, ISO_ROLE_LATEST_REMINDER
} iso_role;

/* A part of a user turn. */
typedef enum iso_block_kind {
    ISO_BLOCK_MESSAGE,       /* the string content of a user message */
    ISO_BLOCK_PART,          /* an element of a user message's content list */
    ISO_BLOCK_TOOL           /* a message of role tool */
} iso_block_kind;

typedef struct iso_block {
    iso_block_kind kind;
    const iso_json *value;   /* the message, or the element */
} iso_block;

typedef struct iso_turn {
    iso_role role;           /* never ISO_ROLE_TOOL: those are blocks of a user turn */
    iso_marker task;         /* ISO_MARKER_NONE without one */
    size_t message_index;    /* of the first message of the turn */
    const iso_json *message;
    size_t block_first;      /* user turns: blocks[block_first .. block_first + block_count) */
    size_t block_count;
} iso_turn;

typedef struct iso_chat {
    iso_turn *turns;
    size_t turn_count, turn_capacity;
    iso_block *blocks;
    size_t block_count, block_capacity;
    bool has_tools;          /* some turn's message has a non-empty list "tools" */
    size_t last_user;        /* last turn of a user, or of the system but not the first one;
                                SIZE_MAX if there is none */
} iso_chat;

/* Fills a zeroed chat from an array of messages; on failure what was made stays in it.
 * ISO_BAD_PROMPT names message, key, what was expected and found; ISO_NO_MEMORY. */
ISO_CHECKED iso_status iso_chat_read(iso_chat *chat, const iso_json *messages, iso_error *error);
void iso_chat_deinit(iso_chat *chat);

#endif
