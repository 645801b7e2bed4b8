/* dsml: the markup of function calls: the text that introduces tools to the model, and the block
 * of calls in an assistant's turn (spec: tokenizer-chat, sections 5, 6 and 10). Names, schemas and
 * arguments are content; the tags around them are protocol. */
#ifndef ISO_TEXT_DSML_H
#define ISO_TEXT_DSML_H

#include "core/json.h"
#include "text/prompt.h"

/* Appends the text for a list of tools {type, function: {name, ...}, namespace}. A tool in a
 * namespace is called namespace::name. ISO_BAD_PROMPT names the tool. */
ISO_CHECKED iso_status iso_dsml_add_tools(iso_prompt *prompt, const iso_json *tools,
                                          iso_error *error);

/* Appends the block for a list of calls {function: {name, arguments}, namespace}; arguments are an
 * object or a string that holds one as JSON, and otherwise one parameter named "arguments". */
ISO_CHECKED iso_status iso_dsml_add_calls(iso_prompt *prompt, const iso_json *calls,
                                          iso_error *error);

#endif
