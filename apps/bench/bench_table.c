#include "apps/bench/bench_table.h"

#include "apps/cli/cli.h"

#include <stdio.h>
#include <string.h>

/* Shapes are k x n of the released V4.1-Flash. */
static const bench_shape experts[] = {
    {"w1, w3: 5120x2304", ISO_OP_ID_matmul_experts, 1, 5120, 2304},
    {"w2: 2304x5120", ISO_OP_ID_matmul_experts, 1, 2304, 5120},
    {0},
};
static const bench_shape dense[] = {
    {"wq_a: 5120x1280", ISO_OP_ID_matmul_fp8, 1, 5120, 1280},
    {"wq_b: 1280x32768", ISO_OP_ID_matmul_fp8, 1, 1280, 32768},
    {"wkv: 5120x512", ISO_OP_ID_matmul_fp8, 1, 5120, 512},
    {"wo_a: 8 x 4096x1024", ISO_OP_ID_matmul_groups, 1, 4096, 8192},
    {"wo_b: 8192x5120", ISO_OP_ID_matmul_fp8, 1, 8192, 5120},
    {0},
};
static const bench_shape head[] = {
    {"an eighth: 5120x16160", ISO_OP_ID_matmul_bf16, 1, 5120, 16160},
    {0},
};
static const bench_shape verify[] = {
    {"wq_a: 5120x1280", ISO_OP_ID_matmul_fp8, 6, 5120, 1280},
    {"wq_b: 1280x32768", ISO_OP_ID_matmul_fp8, 6, 1280, 32768},
    {"wkv: 5120x512", ISO_OP_ID_matmul_fp8, 6, 5120, 512},
    {"wo_a: 8 x 4096x1024", ISO_OP_ID_matmul_groups, 6, 4096, 8192},
    {"wo_b: 8192x5120", ISO_OP_ID_matmul_fp8, 6, 8192, 5120},
    {0},
};
static const bench_shape prefill[] = {
    {"FP8 wq_a: 5120x1280", ISO_OP_ID_matmul_fp8, 512, 5120, 1280},
    {"FP8 wo_b: 8192x5120", ISO_OP_ID_matmul_fp8, 512, 8192, 5120},
    {"bf16: 5120x2304", ISO_OP_ID_matmul_bf16, 512, 5120, 2304},
    {0},
};
static const bench_shape prefill_experts[] = {
    {"w1, w3: 5120x2304", ISO_OP_ID_matmul_experts, 512, 5120, 2304},
    {"w2: 2304x5120", ISO_OP_ID_matmul_experts, 512, 2304, 5120},
    {0},
};
/* The last stays in the caches. */
static const bench_shape order[] = {
    {"bf16 head from memory", ISO_OP_ID_matmul_bf16, 1, 5120, 16160},
    {"bf16 5120x256 from caches", ISO_OP_ID_matmul_bf16, 1, 5120, 256},
    {0},
};

static const bench_row rows[] = {
    {"FP4 experts, 1 row, of reading", 0.6, 0.8, false, bench_score_weights, experts},
    {"FP8 dense, 1 row, of reading", 0.7, 0.9, false, bench_score_weights, dense},
    {"bf16 head, 1 row, of reading", 0.9, 0.97, false, bench_score_weights, head},
    {"FP8 dense, 6 rows, of six passes", 0.35, 0.25, true, bench_score_verify, verify},
    {"dense, 512 rows, of sgemm", 0.9, 1.0, false, bench_score_prefill, prefill},
    {"FP4 experts, 512 rows, of sgemm", 0.8, 1.2, false, bench_score_prefill, prefill_experts},
    {"attention, of reading caches", 0.0, 0.0, false, bench_score_attention, NULL},
    {"strict order, of the free order", 0.95, 1.0, false, bench_score_order, order},
    {"whole layers, a token, of reading", 0.55, 0.8, false, bench_score_model, NULL},
};

/* The ratio that counts. */
static double worst(const bench_row *row, const bench_score *score)
{
    double ratio = score->part[0].ratio;

    for (uint32_t i = 1; i < score->part_count; i++) {
        const double other = score->part[i].ratio;

        if (row->is_below ? other > ratio : other < ratio)
            ratio = other;
    }
    return ratio;
}

static const char *verdict(const bench_row *row, double ratio)
{
    if (row->to_reach == 0.0)
        return "-";
    return (row->is_below ? ratio <= row->to_reach : ratio >= row->to_reach) ? "yes" : "no";
}

static void print_figure(char out[16], const char *sign, double figure)
{
    if (figure == 0.0)
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, "%s%.2f", sign, figure);
}

static void print_text(const bench_row *row, const bench_score *score, const char *refusal)
{
    const double ratio = refusal == NULL ? worst(row, score) : 0.0;
    char to_reach[16], aim[16];

    print_figure(to_reach, row->is_below ? "<= " : ">= ", row->to_reach);
    print_figure(aim, "", row->aim);
    if (refusal != NULL)
        printf("%-34s %8s %5s  not measured: %s\n", row->measure, to_reach, aim, refusal);
    else
        printf("%-34s %8s %5s %9.3f  %s\n", row->measure, to_reach, aim, ratio,
               verdict(row, ratio));
    for (uint32_t i = 0; i < score->part_count; i++)
        printf("    %-46s %8.3f  %s\n", score->part[i].name, score->part[i].ratio,
               score->part[i].text);
    fflush(stdout);
}

static void print_json(const bench_row *row, const bench_score *score, const char *refusal,
                       bool is_first)
{
    printf("%s{\"measure\":\"%s\",\"to_reach\":%.2f,\"aim\":%.2f,\"smaller_is_better\":%s,",
           is_first ? "" : ",", row->measure, row->to_reach, row->aim,
           row->is_below ? "true" : "false");
    if (refusal != NULL) {
        printf("\"not_measured\":");
        cli_json_string(refusal, strlen(refusal));
    } else {
        printf("\"measured\":%.4f,\"reached\":\"%s\"", worst(row, score),
               verdict(row, worst(row, score)));
    }
    printf(",\"parts\":[");
    for (uint32_t i = 0; i < score->part_count; i++) {
        printf("%s{\"name\":\"%s\",\"ratio\":%.4f,\"figures\":", i == 0 ? "" : ",",
               score->part[i].name, score->part[i].ratio);
        cli_json_string(score->part[i].text, strlen(score->part[i].text));
        printf("}");
    }
    printf("]}");
    fflush(stdout);
}

static iso_status run_row(const bench_table_options *options, const bench_row *row,
                          const bench_roof *roof, bool is_first, iso_error *error)
{
    bench_score score = {.part_count = 0};
    const iso_status status = row->run(options, row, roof, &score, error);
    const bool is_refused = status == ISO_UNSUPPORTED || status == ISO_NO_DEVICE;
    const char *refusal = is_refused ? error->text : NULL;

    if (status != ISO_OK && !is_refused)
        return status;
    if (options->json)
        print_json(row, &score, refusal, is_first);
    else
        print_text(row, &score, refusal);
    return ISO_OK;
}

static iso_status run_rows(const bench_table_options *options, const bench_roof *roof,
                           iso_error *error)
{
    bool is_first = true;

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++) {
        if (options->filter != NULL && strstr(rows[i].measure, options->filter) == NULL)
            continue;
        ISO_TRY(run_row(options, &rows[i], roof, is_first, error));
        is_first = false;
    }
    return ISO_OK;
}

iso_status bench_table(const bench_table_options *options, iso_error *error)
{
    bench_roof roof, after;
    uint64_t bytes;

    if (options->model != NULL)          /* a wrong directory is an error before minutes of work */
        ISO_TRY(bench_model_bytes(options->model, &bytes, error));
    ISO_TRY(bench_roof_measure(&options->bench, &roof, error));
    if (options->json)
        printf("{\"threads\":%u,\"runs\":%u,", bench_threads(&options->bench),
               options->bench.runs);
    bench_roof_print(options->json, "before", &roof);
    if (options->json)
        printf(",\"rows\":[");
    else
        printf("%u threads, medians of %u runs; ratios of runs taken alternately; the worst part "
               "counts\n%-34s %8s %5s %9s  %s\n", bench_threads(&options->bench),
               options->bench.runs, "measure", "to reach", "aim", "measured", "reached");
    ISO_TRY(run_rows(options, &roof, error));
    ISO_TRY(bench_roof_measure(&options->bench, &after, error));
    if (options->json)
        printf("],");
    bench_roof_print(options->json, "after", &after);
    if (options->json)
        printf("}\n");
    return ISO_OK;
}
