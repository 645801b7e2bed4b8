#include "apps/cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} command[] = {
#define COMMAND(name, summary) {#name, summary, cmd_##name},
#include "apps/cli/commands.def"
#undef COMMAND
};

static void help(FILE *out)
{
    fprintf(out, "usage: isobit COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; i < sizeof command / sizeof command[0]; i++)
        fprintf(out, "  %-8s %s\n", command[i].name, command[i].summary);
    fprintf(out, "\nisobit COMMAND --help shows the options of a command.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return CLI_BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("isobit %s, %s\n", ISO_VERSION, ISO_NUMERICS_ID);
        return CLI_OK;
    }
    for (size_t i = 0; i < sizeof command / sizeof command[0]; i++)
        if (strcmp(argv[1], command[i].name) == 0)
            return command[i].run(argc - 1, argv + 1);
    fprintf(stderr, "isobit: unknown command \"%s\" (see isobit --help)\n", argv[1]);
    return CLI_BAD_INPUT;
}
