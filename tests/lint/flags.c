/* Flags of every translation unit, from compile_commands.json (numerics 20.1). */
#include "tests/lint/lint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const required[] = {"-ffp-contract=off", "-std=c11"};
static const char *const forbidden[] = {
    "-ffast" "-math", "-Of" "ast", "-funsafe" "-math-optimizations", "-fassociative" "-math",
    "-freciprocal" "-math", "-ffinite" "-math-only", "-fno-signed" "-zeros", "-mfpmath" "=387",
    "-ffp-contract" "=fast", "-ffp-contract" "=on", "-fcx-limited-range", "-fsingle-precision-"
    "constant", "-mrecip", "-frounding" "-math", "-fexcess-precision" "=fast",
};

/* Text of the string value of `"key":` between `at` and `end`; NULL if there is none. */
static const char *value_of(const char *at, const char *end, const char *key)
{
    const char *found = strstr(at, key);

    if (found == NULL || found > end)
        return NULL;
    found += strlen(key);
    return found + strspn(found, " \n\t");
}

/* Whether `flag` is a whole word of the command; `prefix`: or the beginning of one. */
static bool has_flag(const char *command, const char *end, const char *flag, bool prefix)
{
    const size_t bytes = strlen(flag);

    for (const char *at = strstr(command, flag); at != NULL && at < end;
         at = strstr(at + 1, flag))
        if (strchr(" \"", at[-1]) != NULL && (prefix || strchr(" \"\\", at[bytes]) != NULL))
            return true;
    return false;
}

static void check_unit(const char *command, const char *end, const char *file)
{
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (lint_ends(file, ".c") && !has_flag(command, end, required[i], false))
            lint_report("flags", file, 0, "compiled without %s", required[i]);
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (has_flag(command, end, forbidden[i], true))
            lint_report("flags", file, 0, "compiled with %s", forbidden[i]);
}

/* Objects of the file are flat: no brace stands in a path or a flag of ours. */
void lint_flags(const char *path)
{
    size_t bytes;
    char *text = lint_read(path, &bytes);
    int units = 0;

    if (text == NULL) {
        fprintf(stderr, "isobit-lint: cannot read %s\n", path);
        exit(2);
    }
    for (const char *at = strchr(text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        const char *end = at + strcspn(at, "}");
        const char *command = value_of(at, end, "\"command\":");
        const char *file = value_of(at, end, "\"file\":");
        char name[4096] = "";

        if (command == NULL)
            command = value_of(at, end, "\"arguments\":");
        if (command == NULL || file == NULL || sscanf(file, "\"%4095[^\"]", name) != 1) {
            lint_report("flags", path, 0, "entry %d: no command or no file", units);
            continue;
        }
        check_unit(command, command[0] == '[' ? command + strcspn(command, "]")
                                              : command + strcspn(command, "\n"), name);
        units++;
    }
    if (units == 0)
        lint_report("flags", path, 0, "no translation unit");
    printf("isobit-lint: flags of %d translation units\n", units);
    free(text);
}
