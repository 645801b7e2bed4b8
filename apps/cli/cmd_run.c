/* run: text in, text out. Text goes to stdout as it is made; progress and figures to stderr. */
#include "apps/cli/cli.h"
#include "apps/cli/run_output.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: isobit run -m DIR (-p TEXT | --prompt-file FILE | -) [OPTIONS]\n"
    "  -m, --model DIR        checkpoint directory\n"
    "  -p, --prompt TEXT      prompt; without it, --prompt-file or standard input\n"
    "      --prompt-file FILE prompt from a file, - for standard input\n"
    "      --ids LIST         prompt as token ids: 1,2,3\n"
    "      --chat             the prompt is a user turn of a chat\n"
    "      --thinking         chat in thinking mode\n"
    "      --effort N         reasoning effort 1 .. 100 (thinking mode)\n"
    "      --system TEXT      system turn of the chat\n"
    "  -n, --tokens N         tokens to generate (default 128)\n"
    "      --temperature T    0: greedy (default)\n"
    "      --top-k K --top-p P --min-p P   filters\n"
    "      --seed N           seed of the random draws\n"
    "      --ignore-eos       go on after the end-of-sentence token\n"
    "      --device NAME      cpu (default)\n"
    "      --threads N        0: all cores (default)\n"
    "      --ctx N            context in tokens (default: 4096 or the model's limit)\n"
    "      --prefill-chunk N  rows per prefill step (default 256)\n"
    "      --logits FILE      writes the logits of every generated token, f32\n"
    "      --trace FILE       writes a hash per operator and step; turns fusions off\n"
    "      --poison           fills work memory with NaN patterns before each step\n"
    "      --cpu ISA          strongest instruction set: portable, avx2, ... (default: native)\n"
    "      --layout NAME      of weights: plain, rows32 (packed), auto (default: what is faster)\n"
    "      --huge-pages       large memory in the system's large pages\n"
    "      --numa-interleave  large memory spread over all NUMA nodes\n"
    "      --no-fuse          a step per operator: no fusions, the same bits\n"
    "      --reference        operators by their references only: slow, the same bits\n"
    "      --json             one JSON object instead of text\n"
    "      --quiet            no figures at the end\n";

enum { PROMPT_FILE = 256, IDS, CHAT, THINKING, EFFORT, SYSTEM, TEMPERATURE, TOP_K, TOP_P, MIN_P,
       SEED, IGNORE_EOS, DEVICE, THREADS, CTX, CHUNK, LOGITS, TRACE, POISON,
       REFERENCE, CPU, LAYOUT, HUGE_PAGES, INTERLEAVE, NO_FUSE, JSON, QUIET, HELP };

static const struct option options[] = {
    {"model", required_argument, NULL, 'm'},
    {"prompt", required_argument, NULL, 'p'},
    {"tokens", required_argument, NULL, 'n'},
    {"prompt-file", required_argument, NULL, PROMPT_FILE},
    {"ids", required_argument, NULL, IDS},
    {"chat", no_argument, NULL, CHAT},
    {"thinking", no_argument, NULL, THINKING},
    {"effort", required_argument, NULL, EFFORT},
    {"system", required_argument, NULL, SYSTEM},
    {"temperature", required_argument, NULL, TEMPERATURE},
    {"top-k", required_argument, NULL, TOP_K},
    {"top-p", required_argument, NULL, TOP_P},
    {"min-p", required_argument, NULL, MIN_P},
    {"seed", required_argument, NULL, SEED},
    {"ignore-eos", no_argument, NULL, IGNORE_EOS},
    {"device", required_argument, NULL, DEVICE},
    {"threads", required_argument, NULL, THREADS},
    {"ctx", required_argument, NULL, CTX},
    {"prefill-chunk", required_argument, NULL, CHUNK},
    {"logits", required_argument, NULL, LOGITS},
    {"trace", required_argument, NULL, TRACE},
    {"poison", no_argument, NULL, POISON},
    {"reference", no_argument, NULL, REFERENCE},
    {"cpu", required_argument, NULL, CPU},
    {"layout", required_argument, NULL, LAYOUT},
    {"huge-pages", no_argument, NULL, HUGE_PAGES},
    {"numa-interleave", no_argument, NULL, INTERLEAVE},
    {"no-fuse", no_argument, NULL, NO_FUSE},
    {"json", no_argument, NULL, JSON},
    {"quiet", no_argument, NULL, QUIET},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static bool parse_value(run_options *o, int option, const char *value)
{
    uint32_t effort;

    switch (option) {
    case 'n':
        return cli_u32("run", "-n", value, 1, 1 << 20, &o->token_count);
    case EFFORT:
        if (!cli_u32("run", "--effort", value, 1, 100, &effort))
            return false;
        o->chat.effort = (int32_t)effort;
        return true;
    case TEMPERATURE:
        return cli_float("run", "--temperature", value, &o->sampling.temperature);
    case TOP_K:
        return cli_u32("run", "--top-k", value, 0, 1 << 24, &o->sampling.top_k);
    case TOP_P:
        return cli_float("run", "--top-p", value, &o->sampling.top_p);
    case MIN_P:
        return cli_float("run", "--min-p", value, &o->sampling.min_p);
    case SEED:
        return cli_u64("run", "--seed", value, &o->sampling.seed);
    case THREADS:
        return cli_u32("run", "--threads", value, 0, 1024, &o->engine.thread_count);
    case CTX:
        return cli_u32("run", "--ctx", value, 1, 1 << 20, &o->engine.context_tokens);
    default:
        return cli_u32("run", "--prefill-chunk", value, 1, 4096, &o->engine.step_tokens_max);
    }
}

/* False after an error line. */
static bool take(run_options *o, int option, const char *value)
{
    switch (option) {
    case 'm': o->model = value; return true;
    case 'p': o->prompt = value; return true;
    case PROMPT_FILE: o->prompt_file = value; return true;
    case IDS: o->ids = value; return true;
    case CHAT: o->is_chat = true; return true;
    case THINKING: o->is_chat = o->chat.thinking = true; return true;
    case SYSTEM: o->system = value; o->is_chat = true; return true;
    case IGNORE_EOS: o->ignore_eos = true; return true;
    case DEVICE: o->engine.device = value; return true;
    case LOGITS: o->logits_file = value; return true;
    case TRACE: o->trace_file = value; return true;
    case POISON: o->engine.poison = true; return true;
    case CPU: o->engine.cpu = value; return true;
    case LAYOUT: o->engine.layout = value; return true;
    case HUGE_PAGES: o->engine.huge_pages = true; return true;
    case INTERLEAVE: o->engine.numa_interleave = true; return true;
    case NO_FUSE: o->engine.no_fuse = true; return true;
    case REFERENCE: o->engine.reference_only = true; return true;
    case JSON: o->is_json = true; return true;
    case QUIET: o->is_quiet = true; return true;
    default: return parse_value(o, option, value);
    }
}

static int check(const run_options *o)
{
    if (o->model == NULL)
        return cli_usage("run", "no model: -m DIR is missing");
    if ((o->prompt != NULL) + (o->prompt_file != NULL) + (o->ids != NULL) > 1)
        return cli_usage("run", "give one of -p, --prompt-file, --ids");
    if (o->is_chat && o->ids != NULL)
        return cli_usage("run", "--ids does not go with --chat");
    return CLI_OK;
}

int cmd_run(int argc, char **argv)
{
    run_options o = {.token_count = 128, .sampling = {.top_p = 1.0f}};
    int option, bad;

    optind = 1;
    while ((option = getopt_long(argc, argv, "m:p:n:h", options, NULL)) != -1) {
        if (option == HELP || option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == '?')
            return CLI_BAD_INPUT;
        if (!take(&o, option, optarg))
            return CLI_BAD_INPUT;
    }
    if (optind < argc && strcmp(argv[optind], "-") == 0 && o.prompt_file == NULL) {
        o.prompt_file = "-";
        optind++;
    }
    if (optind < argc)
        return cli_usage("run", "unexpected argument \"%s\"", argv[optind]);
    bad = check(&o);
    if (bad != CLI_OK)
        return bad;
    if (o.prompt == NULL && o.prompt_file == NULL && o.ids == NULL)
        o.prompt_file = "-";
    cli_watch_interrupt();
    return run_generate(&o);
}
