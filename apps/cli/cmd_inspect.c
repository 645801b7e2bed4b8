/* inspect: describes a checkpoint; headers and configuration only. */
#include "apps/cli/cli.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: isobit inspect [--json] DIR\n"
    "Describes a checkpoint: configuration, tensors and bytes by dtype, component and file, bytes\n"
    "read per decoded token, state bytes per token. Reads headers only.\n"
    "      --json        one JSON object\n";

int cmd_inspect(int argc, char **argv)
{
    enum { JSON = 256, HELP };
    static const struct option options[] = {
        {"json", no_argument, NULL, JSON}, {"help", no_argument, NULL, HELP}, {NULL, 0, NULL, 0},
    };
    iso_error error = {.status = ISO_OK};
    bool json = false;
    char *text = NULL;
    iso_status status;
    int option;

    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == HELP || option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option != JSON)
            return cli_usage("inspect", "unknown option %s", argv[optind - 1]);
        json = true;
    }
    if (argc - optind != 1)
        return cli_usage("inspect", "expected one checkpoint directory");
    status = iso_inspect(argv[optind], json, &text, &error);
    if (status != ISO_OK)
        return cli_fail(status, &error);
    fputs(text, stdout);
    iso_free(text);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}
