/* explain: the plan of one step, without running it. */
#include "apps/cli/cli.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: isobit explain -m DIR [OPTIONS]\n"
    "  -m, --model DIR   checkpoint directory\n"
    "      --tokens N    rows of the step (default 1)\n"
    "      --ctx N       context in tokens\n"
    "      --layout NAME of weights: plain, rows32, auto (default)\n"
    "      --no-fuse     a step per operator\n"
    "      --json        one JSON object\n";

int cmd_explain(int argc, char **argv)
{
    enum { TOKENS = 256, CTX, LAYOUT, NO_FUSE, JSON, HELP };
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'}, {"tokens", required_argument, NULL, TOKENS},
        {"ctx", required_argument, NULL, CTX},   {"json", no_argument, NULL, JSON},
        {"layout", required_argument, NULL, LAYOUT}, {"no-fuse", no_argument, NULL, NO_FUSE},
        {"help", no_argument, NULL, HELP},       {NULL, 0, NULL, 0},
    };
    iso_engine_options engine = {.progress = cli_progress};
    iso_error error = {.status = ISO_OK};
    const char *directory = NULL;
    uint32_t tokens = 1;
    bool json = false;
    cli_model model;
    char *text = NULL;
    iso_status status;
    int option;

    optind = 1;
    while ((option = getopt_long(argc, argv, "m:h", options, NULL)) != -1) {
        if (option == HELP || option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == 'm')
            directory = optarg;
        else if (option == LAYOUT)
            engine.layout = optarg;
        else if (option == NO_FUSE)
            engine.no_fuse = true;
        else if (option == JSON)
            json = true;
        else if (option == '?'
                 || (option == TOKENS
                     && !cli_u32("explain", "--tokens", optarg, 1, 4096, &tokens))
                 || (option == CTX
                     && !cli_u32("explain", "--ctx", optarg, 1, 1 << 20, &engine.context_tokens)))
            return CLI_BAD_INPUT;
    }
    if (directory == NULL || optind < argc)
        return cli_usage("explain", directory == NULL ? "no model: -m DIR is missing"
                                                      : "unexpected argument");
    status = cli_model_open(directory, false, &engine, &model, &error);
    if (status == ISO_OK) {
        status = iso_engine_explain(model.engine, tokens, json, &text, &error);
        if (status == ISO_OK)
            fputs(text, stdout);
        iso_free(text);
        cli_model_close(&model);
    }
    return status == ISO_OK ? CLI_OK : cli_fail(status, &error);
}
