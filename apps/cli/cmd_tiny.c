/* tiny: writes a checkpoint with made-up weights. */
#include "apps/cli/cli.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: isobit tiny [OPTIONS] DIR\n"
    "       isobit tiny --list\n"
    "Writes a checkpoint with made-up weights into an absent or empty directory. The same preset\n"
    "and seed give the same bytes on every machine.\n"
    "      --preset NAME which model (default v41)\n"
    "      --seed N      which weights (default 1)\n"
    "      --list        names the presets\n";

static int list_presets(void)
{
    const char *name, *description;

    for (uint32_t i = 0; iso_tiny_presets(i, &name, &description); i++)
        printf("%-14s %s\n", name, description);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

int cmd_tiny(int argc, char **argv)
{
    enum { PRESET = 256, SEED, LIST, HELP };
    static const struct option options[] = {
        {"preset", required_argument, NULL, PRESET}, {"seed", required_argument, NULL, SEED},
        {"list", no_argument, NULL, LIST},           {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    const char *preset = "v41";
    iso_error error = {.status = ISO_OK};
    uint64_t seed = 1;
    iso_status status;
    int option;

    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == HELP || option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == LIST)
            return list_presets();
        if (option == PRESET)
            preset = optarg;
        else if (option != SEED)
            return cli_usage("tiny", "unknown option or missing value: %s", argv[optind - 1]);
        else if (!cli_u64("tiny", "--seed", optarg, &seed))
            return CLI_BAD_INPUT;
    }
    if (argc - optind != 1)
        return cli_usage("tiny", "expected one directory");
    status = iso_tiny_write(preset, seed, argv[optind], &error);
    return status == ISO_OK ? CLI_OK : cli_fail(status, &error);
}
