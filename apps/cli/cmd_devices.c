/* devices: lists devices and the instruction sets of this processor. */
#include "apps/cli/cli.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: isobit devices [--json]\n"
    "Lists devices, their memory and the result of the arithmetic probe, and the instruction sets\n"
    "that kernels can use here.\n"
    "      --json        one JSON object\n";

int cmd_devices(int argc, char **argv)
{
    iso_error error = {.status = ISO_OK};
    bool json = false;
    char *text = NULL;
    iso_status status;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (strcmp(argv[i], "--json") != 0)
            return cli_usage("devices", "unexpected argument \"%s\"", argv[i]);
        json = true;
    }
    status = iso_devices(json, &text, &error);
    if (status != ISO_OK)
        return cli_fail(status, &error);
    fputs(text, stdout);
    iso_free(text);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}
