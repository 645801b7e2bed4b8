/* cli: what the commands share. A command returns the exit code: 0 done, 1 our side failed, 2 bad
 * arguments or bad input, 130 interrupted. */
#ifndef ISO_APPS_CLI_H
#define ISO_APPS_CLI_H

#include "core/isobit.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_BAD_INPUT = 2, CLI_INTERRUPTED = 130 };

#define COMMAND(name, summary) int cmd_##name(int argc, char **argv);
#include "apps/cli/commands.def"
#undef COMMAND

/* Prints "isobit: text" to stderr and returns the exit code that fits the status. */
int cli_fail(iso_status status, const iso_error *error);
/* Prints "isobit COMMAND: text (see isobit COMMAND --help)" and returns CLI_BAD_INPUT. */
int cli_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parse a whole argument; false after an error line naming the option, value and range. */
bool cli_u32(const char *command, const char *option, const char *text, uint32_t low,
             uint32_t high, uint32_t *value);
bool cli_u64(const char *command, const char *option, const char *text, uint64_t *value);
bool cli_float(const char *command, const char *option, const char *text, float *value);

/* A model with everything a command needs to run it; close with cli_model_close. */
typedef struct cli_model {
    iso_store *store;
    iso_model *model;
    iso_tokenizer *tokenizer;
    iso_engine *engine;
    int32_t *token_map;
    iso_model_info info;
} cli_model;
/* Fills token_map into options, opens all parts. tokenizer stays NULL if the directory has none
 * and no text is needed (need_text false). */
iso_status cli_model_open(const char *directory, bool need_text, iso_engine_options *options,
                          cli_model *model, iso_error *error);
void cli_model_close(cli_model *model);

/* Progress bar on stderr when it is a terminal; also watches for Ctrl-C. */
bool cli_progress(void *context, const char *phase, uint64_t done, uint64_t total);
/* Installs the Ctrl-C handler; cli_interrupted says whether it was pressed. */
void cli_watch_interrupt(void);
bool cli_interrupted(void);

uint64_t cli_clock_ns(void);
uint64_t cli_peak_rss(void);             /* bytes */

/* Reads a file or, for "-", standard input; *text from malloc. */
iso_status cli_read_text(const char *path, char **text, size_t *bytes, iso_error *error);

/* JSON output: a quoted, escaped string. */
void cli_json_string(const char *text, size_t bytes);

#endif
