#include "text/dsml.h"

#include "text/python_json.h"

#include <string.h>

static const char tools_head[] =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools "
    "by writing a \"<｜DSML｜ calls>\" block like the following:\n\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
    "</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types "
    "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning "
    "inside <think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";

static const char tools_tail[] =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke "
    "tool calls.\n";

/* A function's name in two parts; space.data is NULL without a namespace. */
typedef struct name_part {
    const char *data;
    size_t bytes;
} name_part;

typedef struct qualified {
    name_part space, name;
    const iso_json *description; /* of the namespace; NULL without one */
} qualified;

static const char *find_colons(const char *text, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i++)
        if (text[i] == ':' && text[i + 1] == ':')
            return text + i;
    return NULL;
}

static bool same(name_part a, name_part b)
{
    return a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0;
}

/* Reads the name of item.function. The namespace is a string or {name, description}, beside the
 * function or in it, or is written in front of the name; if it is there twice, both agree. */
static iso_status read_name(const iso_json *item, qualified *out, iso_error *error)
{
    const iso_json *function = iso_json_get(item, "function");
    const iso_json *space = iso_json_get(item, "namespace");
    name_part given = {NULL, 0};
    const char *colons;

    *out = (qualified){0};
    out->name.data = iso_json_string(iso_json_get(function, "name"), &out->name.bytes);
    if (out->name.data == NULL)
        return iso_fail(error, ISO_BAD_PROMPT, "function.name: a string expected");
    if (iso_json_type_of(space) == ISO_JSON_NULL)
        space = iso_json_get(function, "namespace");
    if (iso_json_type_of(space) == ISO_JSON_OBJECT) {
        out->description = iso_json_get(space, "description");
        space = iso_json_get(space, "name");
    }
    if (iso_json_type_of(space) != ISO_JSON_NULL || out->description != NULL) {
        given.data = iso_json_string(space, &given.bytes);
        if (given.data == NULL || given.bytes == 0 || find_colons(given.data, given.bytes) != NULL)
            return iso_fail(error, ISO_BAD_PROMPT, "namespace: a name without :: expected");
    }
    colons = find_colons(out->name.data, out->name.bytes);
    out->space = given;
    if (colons != NULL) {
        const name_part whole = out->name;

        out->space = (name_part){whole.data, (size_t)(colons - whole.data)};
        out->name = (name_part){colons + 2, whole.bytes - out->space.bytes - 2};
        if (out->space.bytes == 0 || find_colons(colons + 1, out->name.bytes + 1) != NULL ||
            (given.data != NULL && !same(given, out->space)))
            return iso_fail(error, ISO_BAD_PROMPT,
                            "function.name: one namespace expected, \"%s\" found", whole.data);
    }
    if (out->name.bytes == 0)
        return iso_fail(error, ISO_BAD_PROMPT, "function.name: a name expected, nothing found");
    return ISO_OK;
}

static void add_name(iso_chars *out, const qualified *name)
{
    if (name->space.data != NULL) {
        iso_chars_add(out, name->space.data, name->space.bytes);
        iso_chars_add(out, "::", 2);
    }
    iso_chars_add(out, name->name.data, name->name.bytes);
}

/* Appends "namespace's description\nown description" as a JSON string. */
static void add_description(iso_chars *out, const qualified *name, const iso_json *own)
{
    iso_chars both = {0};
    size_t bytes = 0;
    const char *text = iso_json_string(name->description, &bytes);

    iso_chars_add(&both, text, bytes);
    iso_chars_add(&both, "\n", 1);
    text = iso_json_string(own, &bytes);
    if (text != NULL)
        iso_chars_add(&both, text, bytes);
    iso_python_json_add_string(out, both.used == 0 ? "" : both.data, both.used);
    out->failed = out->failed || both.failed;
    iso_chars_deinit(&both);
}

/* Appends the function as JSON: its members in order, with the qualified name, without the
 * namespace; a description that only the namespace has comes last. */
static void add_schema(iso_chars *out, const iso_json *function, const qualified *name)
{
    size_t space_bytes = 0;
    const char *between = "", *key;
    const iso_json *value;
    iso_json_cursor cursor = {0};
    bool describes;

    (void)iso_json_string(name->description, &space_bytes);
    describes = space_bytes != 0;
    iso_chars_add(out, "{", 1);
    while (iso_json_next(function, &cursor, &key, &value)) {
        if (strcmp(key, "namespace") == 0)
            continue;
        iso_chars_add_string(out, between);
        between = ", ";
        iso_python_json_add_string(out, key, strlen(key));
        iso_chars_add(out, ": ", 2);
        if (strcmp(key, "name") == 0) {
            iso_chars whole = {0};

            add_name(&whole, name);
            iso_python_json_add_string(out, whole.used == 0 ? "" : whole.data, whole.used);
            out->failed = out->failed || whole.failed;
            iso_chars_deinit(&whole);
        } else if (describes && strcmp(key, "description") == 0) {
            add_description(out, name, value);
        } else {
            iso_python_json_add(out, value);
        }
    }
    if (describes && iso_json_get(function, "description") == NULL) {
        iso_chars_add_string(out, ", \"description\": ");
        add_description(out, name, NULL);
    }
    iso_chars_add(out, "}", 1);
}

iso_status iso_dsml_add_tools(iso_prompt *prompt, const iso_json *tools, iso_error *error)
{
    iso_prompt_add_protocol(prompt, tools_head);
    for (size_t i = 0; i < iso_json_size(tools); i++) {
        const iso_json *tool = iso_json_at(tools, i);
        qualified name;
        const iso_status status = read_name(tool, &name, error);

        if (status != ISO_OK)
            return iso_fail_in(error, status, "tools[%zu]", i);
        if (i != 0)
            iso_prompt_add_protocol(prompt, "\n");
        add_schema(&prompt->text, iso_json_get(tool, "function"), &name);
    }
    iso_prompt_add_protocol(prompt, tools_tail);
    return ISO_OK;
}

static void add_parameter(iso_prompt *prompt, const char *key, const iso_json *value)
{
    size_t bytes = 0;
    const char *text = iso_json_string(value, &bytes);

    iso_prompt_add_protocol(prompt, "<｜DSML｜ parameter name=\"");
    iso_prompt_add_content(prompt, key, strlen(key));
    iso_prompt_add_protocol(prompt, text != NULL ? "\" string=\"true\">" : "\" string=\"false\">");
    if (text != NULL)
        iso_prompt_add_content(prompt, text, bytes);
    else
        iso_python_json_add(&prompt->text, value);
    iso_prompt_add_protocol(prompt, "</｜DSML｜ parameter>");
}

static void add_parameters(iso_prompt *prompt, const iso_json *object)
{
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *key, *between = "";

    while (iso_json_next(object, &cursor, &key, &value)) {
        iso_prompt_add_protocol(prompt, between);
        add_parameter(prompt, key, value);
        between = "\n";
    }
}

/* A string is read as JSON, twice if it holds a string again. What is no object then becomes one
 * parameter with the original value. */
static iso_status add_arguments(iso_prompt *prompt, const iso_json *arguments, iso_error *error)
{
    iso_json_doc *doc[2] = {NULL, NULL};
    const iso_json *value = arguments;
    iso_status status = ISO_OK;

    for (size_t i = 0; i < 2 && iso_json_type_of(value) == ISO_JSON_STRING; i++) {
        size_t bytes = 0;
        const char *text = iso_json_string(value, &bytes);

        status = iso_json_parse(text, bytes, "arguments", &doc[i], error);
        if (status != ISO_OK)
            break;
        value = iso_json_root(doc[i]);
    }
    if (status != ISO_OK && status != ISO_BAD_JSON)
        goto done;
    status = ISO_OK;
    if (iso_json_type_of(value) == ISO_JSON_OBJECT)
        add_parameters(prompt, value);
    else
        add_parameter(prompt, "arguments", arguments);
done:
    iso_json_free(&doc[1]);
    iso_json_free(&doc[0]);
    return status;
}

static iso_status add_call(iso_prompt *prompt, const iso_json *call, iso_error *error)
{
    const iso_json *arguments = iso_json_get(iso_json_get(call, "function"), "arguments");
    qualified name;

    ISO_TRY(read_name(call, &name, error));
    if (arguments == NULL)
        return iso_fail(error, ISO_BAD_PROMPT, "function.arguments: an object or JSON expected");
    iso_prompt_add_protocol(prompt, "<｜DSML｜ invoke name=\"");
    add_name(&prompt->text, &name);
    iso_prompt_add_protocol(prompt, "\">\n");
    ISO_TRY(add_arguments(prompt, arguments, error));
    iso_prompt_add_protocol(prompt, "\n</｜DSML｜ invoke>");
    return ISO_OK;
}

iso_status iso_dsml_add_calls(iso_prompt *prompt, const iso_json *calls, iso_error *error)
{
    iso_prompt_add_protocol(prompt, "<｜DSML｜ calls>\n");
    for (size_t i = 0; i < iso_json_size(calls); i++) {
        const iso_status status = add_call(prompt, iso_json_at(calls, i), error);

        if (status != ISO_OK)
            return iso_fail_in(error, status, "tool_calls[%zu]", i);
        iso_prompt_add_protocol(prompt, i + 1 < iso_json_size(calls) ? "\n" : "");
    }
    iso_prompt_add_protocol(prompt, "\n</｜DSML｜ calls>");
    return ISO_OK;
}
