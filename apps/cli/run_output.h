/* run_output: options of `isobit run` and the generation they describe. */
#ifndef ISO_APPS_RUN_OUTPUT_H
#define ISO_APPS_RUN_OUTPUT_H

#include "apps/cli/cli.h"

typedef struct run_options {
    const char *model, *prompt, *prompt_file, *ids, *system, *logits_file, *trace_file;
    uint32_t token_count;
    bool is_chat, ignore_eos, is_json, is_quiet;
    iso_chat_options chat;
    iso_sampling sampling;
    iso_engine_options engine;
} run_options;

/* Loads, prefills, generates, prints. Returns the exit code. */
int run_generate(run_options *options);

/* run_prompt.c: the prompt's token ids (owned by the caller, iso_free). */
iso_status run_prompt_ids(const run_options *options, const cli_model *model, int32_t **ids,
                          size_t *count, iso_error *error);

#endif
