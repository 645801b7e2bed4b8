/* isobit-test: the operators against themselves, checkasm style. No tolerances: memcmp.
 *
 * Per case: the reference runs once over all units (the oracle); then the reference and every row
 * of kernels.def that accepts the case run directly (whole, split into ranges, two poisons, both
 * ends of protected pages, flush-to-zero) and through the backend (recorded once; launched once
 * with 1 thread, three times with 2), and the case before it runs again on the same buffers.
 * Always checked: flags, outputs, bytes past the live rows, inputs, guard zones.
 *
 *   isobit-test                            everything; exit code 0 when nothing failed
 *   isobit-test --op NAME --case NAME --kernel reference|FORM/ISA --threads N --device TEXT
 *   isobit-test --op NAME                  an operator or a fusion (fused == parts)
 *   isobit-test --list, --count-only       what there is, without running it
 *   isobit-test --replay OP/cpu/KERNEL/CASE    one failure again, as its line says, with details:
 *                                          isobit-test --replay rms_norm/cpu/reference/tiny_5x512
 *                                          isobit-test --replay matmul_fp8/cpu/m1/portable/equal_..
 *   isobit-test --golden FILE              everything, and the oracle's hashes against the table
 *   isobit-test --golden-only FILE         the hashes alone: another compiler, another level
 *   isobit-test --golden-write FILE        write it: only with a new contract version (numerics 21)
 *   isobit-test --self-check               plants faults and proves that each is reported
 *
 * A failure names the first differing index, both bit patterns, their distance in ulp and how many
 * differ. Values come from Philox seeded by hash(operator, case): there is no seed to pass. */
#include "ggml-style-ops/fusions.h"
#include "tests/check/check.h"

typedef int program_fn(const check_options *);

static int run_self_check(const check_options *options)
{
    (void)options;
    return check_self();
}

static int run_suite_and_golden(const check_options *options)
{
    const int suite = check_suite(options), golden = check_golden_compare(options);

    return suite != 0 || golden != 0;
}

static const struct {
    const char *name;
    program_fn *program;
    bool has_value;
} programs[] = {
    {"--list", check_list_all, false},
    {"--count-only", check_counts, false},
    {"--self-check", run_self_check, false},
    {"--golden", run_suite_and_golden, true},
    {"--golden-only", check_golden_compare, true},
    {"--golden-write", check_golden_write, true},
};

/* OP/DEVICE/KERNEL/CASE, KERNEL with or without a slash; cuts `text` into pieces. */
static bool parse_replay(char *text, check_options *options)
{
    char *device = strchr(text, '/'), *kernel, *test;

    if (device == NULL)
        return false;
    *device++ = '\0';
    kernel = strchr(device, '/');
    test = strrchr(device, '/');
    if (kernel == NULL || test == kernel)
        return false;
    *kernel++ = '\0';
    *test++ = '\0';
    options->op = text;
    options->device = device;
    options->kernel = kernel;
    options->test = test;
    options->is_verbose = true;
    return true;
}

static bool parse_value(const char *name, char *value, check_options *options)
{
    if (strcmp(name, "--op") == 0)
        options->op = value;
    else if (strcmp(name, "--case") == 0)
        options->test = value;
    else if (strcmp(name, "--kernel") == 0)
        options->kernel = value;
    else if (strcmp(name, "--device") == 0)
        options->device = value;
    else if (strcmp(name, "--threads") == 0)
        return sscanf(value, "%u", &options->threads) == 1 && options->threads != 0;
    else if (strcmp(name, "--replay") == 0)
        return parse_replay(value, options);
    else
        return false;
    return true;
}

static int usage(const char *word)
{
    printf("isobit-test: cannot use \"%s\"; options: --op NAME --case NAME --kernel NAME "
           "--device TEXT --threads N --list --count-only --replay OP/DEVICE/KERNEL/CASE "
           "--golden FILE --golden-only FILE --golden-write FILE --self-check\n", word);
    return 2;
}

static bool is_fusion(const char *name)
{
    const check_options options = {.op = name};

    for (uint32_t i = 0; i < ISO_FUSION_ID_COUNT; i++)
        if (check_fusion_wanted(&options, &iso_fusion_rows()[i]))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    check_options options = {.device = "cpu"};
    program_fn *program = check_suite;

    for (int i = 1; i < argc; i++) {
        const size_t count = ISO_COUNT_OF(programs);
        size_t p = 0;

        while (p < count && strcmp(programs[p].name, argv[i]) != 0)
            p++;
        if (p < count) {
            program = programs[p].program;
            if (programs[p].has_value && i + 1 == argc)
                return usage(argv[i]);
            if (programs[p].has_value)
                options.golden = argv[++i];
        } else if (i + 1 == argc || !parse_value(argv[i], argv[i + 1], &options)) {
            return usage(argv[i]);
        } else {
            i++;
        }
    }
    if (options.op != NULL && iso_op_find(options.op) == NULL && !is_fusion(options.op))
        return usage(options.op);
    return program(&options);
}
