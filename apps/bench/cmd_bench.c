/* cmd_bench: the table of operators. GB/s counts the weight bytes a step must read; the last
 * columns are what all threads read between the runs of the case, and the share of it. */
#include "apps/bench/bench_plot.h"
#include "apps/bench/bench_table.h"
#include "apps/cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: isobit bench [OPTIONS]          time operators at real shapes\n"
    "       isobit bench table [OPTIONS]    the measures that have a figure to reach\n"
    "       isobit bench plot FROM TO       FROM of isobit bench --json as a roofline, SVG\n"
    "      --filter TEXT  only cases or measures whose name contains TEXT\n"
    "      --threads N    0: all cores (default)\n"
    "      --runs N       runs per case, medians are printed (default 15)\n"
    "      --seconds N    stop a case after N seconds, at 3 runs or more (default 4);\n"
    "                     table: not used\n"
    "      --cycle-mb N   bytes of weights cycled through, in MB (default 1024); 0: one\n"
    "                     copy, which stays in the caches\n"
    "      --cpu ISA      strongest instruction set: portable, avx2, ... (default: native)\n"
    "      --layout L     of weights: auto (the better kernel's, default), plain, rows32\n"
    "      --reference    references only, no other kernel\n"
    "      --model DIR    table: a checkpoint of preset v41-slice for the row of whole layers\n"
    "      --json         one JSON object\n";

enum { FILTER = 256, THREADS, RUNS, SECONDS, CYCLE, REFERENCE, CPU, LAYOUT, MODEL, JSON, HELP };

static const struct option long_options[] = {
    {"filter", required_argument, NULL, FILTER}, {"threads", required_argument, NULL, THREADS},
    {"runs", required_argument, NULL, RUNS},     {"seconds", required_argument, NULL, SECONDS},
    {"cycle-mb", required_argument, NULL, CYCLE}, {"reference", no_argument, NULL, REFERENCE},
    {"cpu", required_argument, NULL, CPU},       {"layout", required_argument, NULL, LAYOUT},
    {"model", required_argument, NULL, MODEL},
    {"json", no_argument, NULL, JSON},           {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

typedef struct settings {
    bench_options bench;
    const char *filter, *model;
    bool json;
} settings;

static bool take_layout(settings *s, const char *value)
{
    s->bench.layout = value;
    if (strcmp(value, "auto") == 0 || strcmp(value, "plain") == 0 || strcmp(value, "rows32") == 0)
        return true;
    cli_usage("bench", "--layout \"%s\": expected auto, plain or rows32", value);
    return false;
}

static bool take(settings *s, int option, const char *value)
{
    uint32_t number;

    switch (option) {
    case FILTER: s->filter = value; return true;
    case REFERENCE: s->bench.reference_only = true; return true;
    case CPU: s->bench.isa = value; return true;
    case LAYOUT: return take_layout(s, value);
    case MODEL: s->model = value; return true;
    case JSON: s->json = true; return true;
    case THREADS:
        return cli_u32("bench", "--threads", value, 0, 1024, &s->bench.thread_count);
    case RUNS:
        return cli_u32("bench", "--runs", value, 3, 256, &s->bench.runs);
    case SECONDS:
        if (!cli_u32("bench", "--seconds", value, 0, 3600, &number))
            return false;
        s->bench.seconds_max = number;
        return true;
    case CYCLE:
        if (!cli_u32("bench", "--cycle-mb", value, 0, 1 << 16, &number))
            return false;
        s->bench.cycle_bytes = (uint64_t)number << 20;
        return true;
    default:
        return false;
    }
}

static double share(const bench_result *r)
{
    return r->read_gigabytes > 0.0 ? 100.0 * r->gigabytes / r->read_gigabytes : 0.0;
}

static void print(const settings *s, const bench_result *r, bool is_first)
{
    if (s->json)
        printf("%s{\"case\":\"%s\",\"kernel\":\"%s\",\"layout\":\"%s\","
               "\"seconds\":%.9f,\"runs\":%u,\"bytes\":%llu,\"operations\":%.0f,"
               "\"gb_per_second\":%.4f,\"gflop_per_second\":%.4f,"
               "\"read_gb_per_second\":%.4f,\"percent_of_read\":%.2f}",
               is_first ? "" : ",", r->name, r->kernel, r->layout, r->seconds, r->runs,
               (unsigned long long)r->bytes, r->operations, r->gigabytes, r->gigaflops,
               r->read_gigabytes, share(r));
    else
        printf("%-32s %-30s %-6s %10.1f us %3u %9.3f GB/s %9.2f GFLOP/s %8.2f GB/s %6.1f %%\n",
               r->name, r->kernel, r->layout, r->seconds * 1e6, r->runs, r->gigabytes,
               r->gigaflops, r->read_gigabytes, share(r));
    fflush(stdout);
}

static void print_refusal(const settings *s, const char *name, const iso_error *error,
                          bool is_first)
{
    if (!s->json) {
        printf("%-32s not measured: %s\n", name, error->text);
        return;
    }
    printf("%s{\"case\":\"%s\",\"not_measured\":", is_first ? "" : ",", name);
    cli_json_string(error->text, strlen(error->text));
    printf("}");
}

static iso_status run_cases(const settings *s, const bench_roof *roof, iso_error *error)
{
    bool is_first = true;

    for (size_t i = 0; i < bench_case_count(); i++) {
        bench_result result;
        bench_case test;
        iso_status status;

        ISO_TRY(bench_case_at(i, &test, error));
        if (s->filter != NULL && strstr(test.name, s->filter) == NULL)
            continue;
        status = bench_run(&s->bench, roof, &test, &result, error);
        if (status != ISO_OK && status != ISO_UNSUPPORTED)
            return status;
        if (status == ISO_UNSUPPORTED)
            print_refusal(s, test.name, error, is_first);
        else
            print(s, &result, is_first);
        is_first = false;
    }
    return ISO_OK;
}

static iso_status run_all(const settings *s, iso_error *error)
{
    bench_roof roof, after;

    ISO_TRY(bench_roof_measure(&s->bench, &roof, error));
    if (s->json)
        printf("{\"threads\":%u,", bench_threads(&s->bench));
    bench_roof_print(s->json, "before", &roof);
    if (s->json)
        printf(",\"cases\":[");
    else
        printf("%-32s %-30s %-6s %13s %3s %14s %17s %13s\n", "case", "kernel", "layout", "median",
               "n", "weights", "", "reading, between");
    ISO_TRY(run_cases(s, &roof, error));
    ISO_TRY(bench_roof_measure(&s->bench, &after, error));
    if (s->json)
        printf("],");
    bench_roof_print(s->json, "after", &after);
    if (s->json)
        printf("}\n");
    return ISO_OK;
}

static iso_status run_table(const settings *s, iso_error *error)
{
    const bench_table_options options = {.bench = s->bench, .filter = s->filter,
                                         .model = s->model, .json = s->json};

    return bench_table(&options, error);
}

int cmd_bench(int argc, char **argv)
{
    settings s = {.bench = {.runs = 15, .cycle_bytes = 1ull << 30, .seconds_max = 4.0,
                            .layout = "auto"}};
    iso_status status;
    iso_error error;
    const char *command;
    int option;

    optind = 1;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == HELP || option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (!take(&s, option, optarg))
            return CLI_BAD_INPUT;
    }
    command = optind < argc ? argv[optind++] : "";
    if (strcmp(command, "plot") == 0 && argc - optind == 2)
        status = bench_plot_file(argv[optind], argv[optind + 1], &error);
    else if (strcmp(command, "plot") == 0)
        return cli_usage("bench", "plot takes two files: FROM.json TO.svg");
    else if (optind < argc)
        return cli_usage("bench", "unexpected argument \"%s\"", argv[optind]);
    else if (strcmp(command, "table") == 0)
        status = run_table(&s, &error);
    else if (command[0] == '\0')
        status = run_all(&s, &error);
    else
        return cli_usage("bench", "unexpected argument \"%s\"", command);
    return status == ISO_OK ? CLI_OK : cli_fail(status, &error);
}
