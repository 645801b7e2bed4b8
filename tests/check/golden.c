/* The golden table: one line "op/case hash" per case, of the oracle's live output bytes. Outputs of
 * a case that expects a flag are undefined: its line says the flag. */
#include "tests/check/check.h"

#include "backends/cpu/kernels.h"
#include "core/alloc.h"

typedef struct line {
    char name[96], hash[40];
    bool is_seen;
} line;

typedef struct golden {
    const check_options *options;
    FILE *out;                       /* writing */
    line *lines;                     /* comparing */
    uint32_t count, capacity;
    uint64_t cases, failures;
} golden;

/* ---- lines ---- */

static bool make_line(const iso_case *test, line *made, char text[CHECK_TEXT])
{
    check_subject subject;
    uint64_t hash[2];
    bool is_made;

    check_now = (check_run){test->call.op->name, "cpu", "reference", test->name, "golden"};
    is_made = check_subject_init(&subject, test, text) && check_oracle(&subject, text);
    snprintf(made->name, sizeof made->name, "%s/%s", test->call.op->name, test->name);
    if (is_made && test->flags_expected != 0) {
        snprintf(made->hash, sizeof made->hash, "flags-%u", test->flags_expected);
    } else if (is_made) {
        check_subject_hash(&subject, hash);
        snprintf(made->hash, sizeof made->hash, "%016llx%016llx", (unsigned long long)hash[1],
                 (unsigned long long)hash[0]);
    }
    check_subject_deinit(&subject);
    return is_made;
}

static void write_line(golden *g, const line *made)
{
    fprintf(g->out, "%s %s\n", made->name, made->hash);
}

static void compare_line(golden *g, const line *made)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (strcmp(g->lines[i].name, made->name) == 0) {
            g->lines[i].is_seen = true;
            if (strcmp(g->lines[i].hash, made->hash) == 0)
                return;
            printf("FAIL %s: %s, golden %s; replay: isobit-test --golden-only %s --op %s "
                   "--case %s\n", made->name, made->hash, g->lines[i].hash, g->options->golden,
                   check_now.op, check_now.test);
            g->failures++;
            return;
        }
    printf("FAIL %s: no line in %s\n", made->name, g->options->golden);
    g->failures++;
}

static void walk(golden *g)
{
    char text[CHECK_TEXT];
    check_list list;

    for (unsigned id = 0; id < ISO_OP_ID_COUNT; id++) {
        if (!check_op_wanted(g->options, iso_op_get((iso_op_id)id)))
            continue;
        check_list_init(&list, iso_op_get((iso_op_id)id));
        for (uint32_t i = 0; i < list.count; i++) {
            line made = {0};

            if (!check_test_wanted(g->options, &list.cases[i]))
                continue;
            g->cases++;
            if (!make_line(&list.cases[i], &made, text)) {
                printf("FAIL %s: %s\n", made.name, text);
                g->failures++;
            } else if (g->out != NULL) {
                write_line(g, &made);
            } else {
                compare_line(g, &made);
            }
        }
        check_list_deinit(&list);
    }
}

/* Lines of wanted operators that no case has. */
static void report_extra(golden *g)
{
    const char *op = g->options->op;
    const size_t bytes = op == NULL ? 0 : strlen(op);

    for (uint32_t i = 0; i < g->count && g->options->test == NULL; i++) {
        const char *name = g->lines[i].name;

        if (g->lines[i].is_seen
            || (op != NULL && (strncmp(name, op, bytes) != 0 || name[bytes] != '/')))
            continue;
        printf("FAIL %s: in %s, but no case\n", name, g->options->golden);
        g->failures++;
    }
}

/* ---- files ---- */

static void keep_line(golden *g, const line *read)
{
    if (g->count == g->capacity) {
        const uint32_t more = g->capacity * 2 + 1024;
        line *grown = iso_alloc_zero(more, sizeof *grown, "golden lines");

        ISO_ASSERT(grown != NULL);
        if (g->count != 0)
            memcpy(grown, g->lines, g->count * sizeof *grown);
        iso_release(g->lines, g->capacity * sizeof *grown);
        g->lines = grown;
        g->capacity = more;
    }
    g->lines[g->count++] = *read;
}

/* Lines that begin with '#' are comments. */
static bool read_lines(golden *g)
{
    FILE *file = fopen(g->options->golden, "r");
    char text[256];

    if (file == NULL) {
        printf("isobit-test: cannot read %s\n", g->options->golden);
        return false;
    }
    while (fgets(text, sizeof text, file) != NULL) {
        line read = {0};

        if (text[0] == '#' || text[0] == '\n')
            continue;
        if (sscanf(text, "%95s %39s", read.name, read.hash) == 2) {
            keep_line(g, &read);
        } else {
            printf("FAIL %s: not a line: %s", g->options->golden, text);
            g->failures++;
        }
    }
    fclose(file);
    return true;
}

int check_golden_compare(const check_options *options)
{
    golden g = {.options = options};

    check_catch_crashes();
    if (!read_lines(&g))
        return 1;
    walk(&g);
    report_extra(&g);
    iso_release(g.lines, g.capacity * sizeof *g.lines);
    printf("golden: %llu cases, %u lines, %llu failures\n", (unsigned long long)g.cases, g.count,
           (unsigned long long)g.failures);
    return g.failures != 0;
}

int check_golden_write(const check_options *options)
{
    golden g = {.options = options};
    bool is_written;

    check_catch_crashes();
    g.out = fopen(options->golden, "w");
    if (g.out == NULL) {
        printf("isobit-test: cannot write %s\n", options->golden);
        return 1;
    }
    fprintf(g.out, "# isobit-numerics/1: XXH3-128 of all live output bytes of a case, outputs in\n"
                   "# order, high word first; flags-N: the flags that the case raises.\n"
                   "# Written by isobit-test --golden-write, compared by --golden.\n");
    walk(&g);
    is_written = fclose(g.out) == 0;
    printf("golden: %llu lines written to %s, %llu failures\n", (unsigned long long)g.cases,
           options->golden, (unsigned long long)g.failures);
    return g.failures != 0 || !is_written;
}

/* ---- counting and listing ---- */

static uint32_t count_kernels(const iso_op *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < iso_cpu_kernel_count(); i++)
        count += strcmp(iso_cpu_kernel_rows()[i].op, op->name) == 0;
    return count;
}

static int print_ops(const check_options *options, bool with_cases)
{
    uint32_t ops = 0, cases = 0;
    check_list list;

    for (unsigned id = 0; id < ISO_OP_ID_COUNT; id++) {
        const iso_op *op = iso_op_get((iso_op_id)id);

        if (!check_op_wanted(options, op))
            continue;
        check_list_init(&list, op);
        printf("%-17s %3u cases, %u kernels\n", op->name, list.count, count_kernels(op));
        for (uint32_t i = 0; i < list.count && with_cases; i++)
            printf("    %s/cpu/reference/%s%s\n", op->name, list.cases[i].name,
                   list.cases[i].flags_expected != 0 ? "  (raises a flag)" : "");
        ops++;
        cases += list.count;
        check_list_deinit(&list);
    }
    printf("%u operators, %u cases, %u kernels and the references\n", ops, cases,
           iso_cpu_kernel_count());
    return 0;
}

int check_counts(const check_options *options) { return print_ops(options, false); }
int check_list_all(const check_options *options) { return print_ops(options, true); }
