/* verify: full check of a checkpoint. */
#include "apps/cli/cli.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: isobit verify [--json] DIR\n"
    "Checks every name, dtype, shape and value of a checkpoint. Reads all of it.\n"
    "      --json        one JSON object\n";

int cmd_verify(int argc, char **argv)
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
            return cli_usage("verify", "unknown option %s", argv[optind - 1]);
        json = true;
    }
    if (argc - optind != 1)
        return cli_usage("verify", "expected one checkpoint directory");
    cli_watch_interrupt();
    status = iso_verify(argv[optind], json, cli_progress, NULL, &text, &error);
    if (status != ISO_OK)
        return cli_fail(status, &error);
    fputs(text, stdout);
    iso_free(text);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}
