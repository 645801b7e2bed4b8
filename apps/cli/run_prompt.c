#include "apps/cli/run_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_status bad_prompt(iso_error *error, const char *text)
{
    error->status = ISO_BAD_PROMPT;
    error->driver_code = 0;
    snprintf(error->text, sizeof error->text, "%.400s", text);
    return ISO_BAD_PROMPT;
}

static iso_status ids_of_list(const char *list, int32_t **ids, size_t *count, iso_error *error)
{
    size_t capacity = 1;
    int32_t *made;

    for (const char *c = list; *c != '\0'; c++)
        capacity += *c == ',';
    made = malloc(capacity * sizeof *made);
    if (made == NULL)
        return ISO_NO_MEMORY;
    for (size_t i = 0; i < capacity; i++) {
        char *end;
        const uint64_t id = strtoull(list, &end, 10);

        if (end == list || id > INT32_MAX || (*end != ',' && *end != '\0')) {
            free(made);
            return bad_prompt(error, "--ids: expected token ids separated by commas");
        }
        made[i] = (int32_t)id;
        list = end + (*end == ',');
    }
    *ids = made;
    *count = capacity;
    return ISO_OK;
}

/* A JSON array of the chat's turns, from malloc. */
static char *messages(const char *system, const char *user, size_t user_bytes, size_t *bytes)
{
    char *json = NULL;
    FILE *out = open_memstream(&json, bytes);
    const char *text[2] = {system, user};
    const size_t length[2] = {system != NULL ? strlen(system) : 0, user_bytes};
    static const char *const role[2] = {"system", "user"};

    if (out == NULL)
        return NULL;
    fputc('[', out);
    for (int turn = 0; turn < 2; turn++) {
        if (text[turn] == NULL)
            continue;
        fprintf(out, "%s{\"role\":\"%s\",\"content\":\"", turn == 1 && system ? "," : "",
                role[turn]);
        for (size_t i = 0; i < length[turn]; i++) {
            const unsigned char c = (unsigned char)text[turn][i];

            if (c == '"' || c == '\\')
                fprintf(out, "\\%c", c);
            else if (c < 0x20)
                fprintf(out, "\\u%04x", c);
            else
                fputc(c, out);
        }
        fputs("\"}", out);
    }
    fputc(']', out);
    return fclose(out) == 0 ? json : NULL;
}

typedef struct prompt_text {
    const char *text;
    size_t bytes;
} prompt_text;

static iso_status ids_of_chat(const run_options *o, const cli_model *model, prompt_text user,
                              int32_t **ids, size_t *count, iso_error *error)
{
    size_t json_bytes = 0;
    char *json = messages(o->system, user.text, user.bytes, &json_bytes);
    iso_chat_prompt prompt;
    iso_status status;

    if (json == NULL)
        return ISO_NO_MEMORY;
    status = iso_chat_render(model->tokenizer, json, json_bytes, &o->chat, &prompt, error);
    free(json);
    if (status != ISO_OK)
        return status;
    iso_free(prompt.text);
    *ids = prompt.tokens.ids;
    *count = prompt.tokens.count;
    return status;
}

/* Plain text: the beginning-of-sentence token, then the text. */
static iso_status ids_of_text(const cli_model *model, prompt_text prompt, int32_t **ids,
                              size_t *count, iso_error *error)
{
    iso_token_list encoded;
    int32_t *made;
    const iso_status status = iso_tokenizer_encode(model->tokenizer, prompt.text, prompt.bytes,
                                                   ISO_ENCODE_PLAIN, &encoded, error);

    if (status != ISO_OK)
        return status;
    made = malloc((encoded.count + 1) * sizeof *made);
    if (made != NULL) {
        made[0] = model->info.bos_id;
        if (encoded.count != 0)
            memcpy(made + 1, encoded.ids, encoded.count * sizeof *made);
        *ids = made;
        *count = encoded.count + 1;
    }
    iso_free(encoded.ids);
    return made != NULL ? ISO_OK : ISO_NO_MEMORY;
}

iso_status run_prompt_ids(const run_options *o, const cli_model *model, int32_t **ids,
                          size_t *count, iso_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    prompt_text prompt;
    iso_status status = ISO_OK;

    if (o->ids != NULL)
        return ids_of_list(o->ids, ids, count, error);
    if (o->prompt_file != NULL) {
        status = cli_read_text(o->prompt_file, &text, &bytes, error);
        if (status != ISO_OK)
            return status;
    } else {
        bytes = strlen(o->prompt);
    }
    prompt = (prompt_text){text != NULL ? text : o->prompt, bytes};
    if (bytes == 0)
        status = bad_prompt(error, "the prompt is empty");
    else if (o->is_chat)
        status = ids_of_chat(o, model, prompt, ids, count, error);
    else
        status = ids_of_text(model, prompt, ids, count, error);
    free(text);
    return status;
}
