/* The suite: every operator x case x kernel, directly and through the backend. */
#include "tests/check/check.h"

#include "backends/cpu/kernels.h"
#include "core/cpuinfo.h"
#include "core/os.h"

#include <signal.h>
#include <unistd.h>

enum { DEVICES_MAX = 2, KERNELS_MAX = 256, FAILURES_SHOWN = 40 };
enum { CASE_SECONDS = 300 };         /* a case that takes longer hangs: sanitizers need less */

typedef struct suite {
    const check_options *options;
    check_device *device[DEVICES_MAX];
    uint32_t device_count;
    bool is_cpu;                     /* kernels can be called and chosen by row */
    uint64_t ops, cases, kernels, comparisons, skipped, failures;
    uint64_t accepted[KERNELS_MAX];  /* cases that a row of the CPU took */
    check_subject previous;          /* test NULL: none */
} suite;

check_run check_now = {"", "", "", "", ""};

/* ---- reports ---- */

static void replay_line(char text[CHECK_TEXT])
{
    snprintf(text, CHECK_TEXT, "isobit-test --replay %s/%s/%s/%s", check_now.op, check_now.device,
             check_now.kernel, check_now.test);
}

static void report_failure(suite *s, const char *reason)
{
    char replay[CHECK_TEXT];

    s->failures++;
    replay_line(replay);
    if (s->failures <= FAILURES_SHOWN)
        printf("FAIL %s/%s/%s/%s: %s: %s; replay: %s\n", check_now.op,
               check_now.device, check_now.kernel, check_now.test, check_now.variant, reason,
               replay);
    fflush(stdout);
}

static const char *crash_name(int number)
{
    switch (number) {
    case SIGABRT:
        return "abort";
    case SIGALRM:
        return "does not end";
    case SIGFPE:
        return "bad integer division";
    case SIGILL:
        return "illegal instruction";
    default:
        return "access outside an operand";
    }
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    char place[CHECK_TEXT] = "", replay[CHECK_TEXT];

    (void)context;
    if (number == SIGSEGV || number == SIGBUS)
        check_where(info->si_addr, place);
    replay_line(replay);
    printf("FAIL %s/%s/%s/%s: %s: %s%s%s; replay: %s\n", check_now.op, check_now.device,
           check_now.kernel, check_now.test, check_now.variant,
           crash_name(number), place[0] != '\0' ? ": " : "", place, replay);
    fflush(stdout);
    _exit(3);
}

void check_catch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    struct sigaction action = {0};

    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | (int)SA_RESETHAND;
    for (size_t i = 0; i < ISO_COUNT_OF(numbers); i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- selection ---- */

bool check_op_wanted(const check_options *options, const iso_op *op)
{
    return options->op == NULL || strcmp(options->op, op->name) == 0;
}

bool check_test_wanted(const check_options *options, const iso_case *test)
{
    return options->test == NULL || strcmp(options->test, test->name) == 0;
}

bool check_kernel_wanted(const check_options *options, const char *form_isa)
{
    return options->kernel == NULL || strcmp(options->kernel, form_isa) == 0;
}

/* Of a subject whose weights have the row's layout. */
static bool row_accepts(const iso_select_row *row, const check_subject *subject)
{
    return strcmp(row->op, subject->call.op->name) == 0 && row->accepts(&subject->call);
}

/* ---- one case ---- */

static bool run_kernel(suite *s, const check_subject *subject, uint32_t index,
                       iso_kernel_fn *function)
{
    char text[CHECK_TEXT] = "";

    if (function != NULL && !check_direct(subject, function, &s->comparisons, text)) {
        report_failure(s, text);
        return false;
    }
    for (uint32_t i = 0; i < s->device_count; i++)
        if (!check_on_device(s->device[i], subject, index, i + 1 == s->device_count ? 3 : 1,
                             &s->comparisons, text)) {
            report_failure(s, text);
            return false;
        }
    if (s->options->is_verbose)
        printf("ok   %s/%s/%s/%s\n", check_now.op, check_now.device, check_now.kernel,
               check_now.test);
    return true;
}

/* The choice of the backend is the first row that accepts. */
static void check_choice(suite *s, const check_subject *subject, uint32_t expected)
{
    iso_support support;
    char text[CHECK_TEXT];

    for (uint32_t i = 0; i < s->device_count; i++)
        if (!check_device_query(s->device[i], subject, &support, text))
            report_failure(s, text);
        else if (support.kernel_index != expected) {
            snprintf(text, sizeof text, "the backend chooses %s", support.kernel);
            report_failure(s, text);
        }
}

/* Whether this processor can run the row's code. */
static bool is_offered(const iso_select_row *row)
{
    return (iso_isa_available() & 1u << row->isa) != 0;
}

/* Rows of one layout; returns the first that accepts the subject, `none` if there is none. */
static uint32_t run_cpu_rows(suite *s, const check_subject *subject, iso_layout layout,
                             uint32_t none)
{
    const iso_select_row *rows = iso_cpu_kernel_rows();
    uint32_t first = none;

    for (uint32_t i = 0; i < iso_cpu_kernel_count(); i++) {
        if (rows[i].layout != layout || !row_accepts(&rows[i], subject) || !is_offered(&rows[i]))
            continue;
        first = first == none ? i : first;
        s->accepted[i]++;            /* < KERNELS_MAX, asserted */
        check_now.kernel = rows[i].form_isa;
        if (check_kernel_wanted(s->options, rows[i].form_isa))
            run_kernel(s, subject, i, iso_cpu_kernel_function(i));
    }
    return first;
}

static void run_cpu_kernels(suite *s, const check_subject *subject)
{
    const uint32_t count = iso_cpu_kernel_count();
    check_subject packed;
    uint32_t first;

    check_now.kernel = "reference";
    if (check_kernel_wanted(s->options, "reference"))
        run_kernel(s, subject, count, subject->call.op->reference);
    first = run_cpu_rows(s, subject, ISO_LAYOUT_PLAIN, count);
    check_now.kernel = "reference";
    check_choice(s, subject, first);
    for (iso_layout layout = ISO_LAYOUT_PLAIN + 1; layout < ISO_LAYOUT_COUNT; layout++) {
        if (!check_subject_pack(subject, layout, &packed))
            continue;
        first = run_cpu_rows(s, &packed, layout, count);
        check_now.kernel = iso_layout_name(layout);
        if (first != count)
            check_choice(s, &packed, first);
        check_subject_deinit(&packed);
    }
}

/* What another backend chooses by itself; a refusal is a skip. */
static void run_chosen_kernel(suite *s, const check_subject *subject)
{
    iso_support support;
    char text[CHECK_TEXT];

    check_now.kernel = "chosen";
    if (!check_device_query(s->device[0], subject, &support, text)) {
        printf("skip %s/%s/%s: %s\n", check_now.op, check_now.device, check_now.test, text);
        s->skipped++;
        return;
    }
    check_now.kernel = support.kernel;
    run_kernel(s, subject, support.kernel_index, NULL);
}

/* The case before this one, again, on the buffers that this one has used. */
static void run_previous(suite *s)
{
    const check_run now = check_now;
    char text[CHECK_TEXT];
    iso_support support;

    if (s->previous.test == NULL || s->device_count == 0)
        return;
    check_now.test = s->previous.test->name;
    check_now.op = s->previous.call.op->name;
    if (check_device_query(s->device[s->device_count - 1], &s->previous, &support, text)
        && !check_on_device(s->device[s->device_count - 1], &s->previous, support.kernel_index, 1,
                            &s->comparisons, text)) {
        check_now.variant = "again, after another case";
        report_failure(s, text);
    }
    check_now = now;
}

static void run_case(suite *s, const iso_case *test)
{
    check_subject subject;
    char text[CHECK_TEXT];

    check_now = (check_run){test->call.op->name, s->options->device, "reference", test->name,
                            "prepare"};
    s->cases++;
    alarm(CASE_SECONDS);
    if (!check_subject_init(&subject, test, text)) {
        report_failure(s, text);
        check_subject_deinit(&subject);
        return;
    }
    s->comparisons++;
    if (!check_oracle(&subject, text)) {
        report_failure(s, text);
        check_subject_deinit(&subject);
        return;
    }
    if (s->is_cpu)
        run_cpu_kernels(s, &subject);
    else
        run_chosen_kernel(s, &subject);
    run_previous(s);
    check_subject_deinit(&s->previous);
    s->previous = subject;
}

/* ---- all ---- */

static void run_op(suite *s, const iso_op *op)
{
    const uint64_t begin = iso_os_clock_ns(), cases = s->cases, failures = s->failures;
    check_list list;

    check_list_init(&list, op);
    if (list.count == 0) {
        check_now = (check_run){op->name, s->options->device, "reference", "", "list"};
        report_failure(s, "the operator has no case");
    }
    for (uint32_t i = 0; i < list.count; i++)
        if (check_test_wanted(s->options, &list.cases[i]))
            run_case(s, &list.cases[i]);
    s->ops++;
    printf("%-4s %-17s %3llu cases  %6.2f s\n", s->failures == failures ? "ok" : "FAIL", op->name,
           (unsigned long long)(s->cases - cases), (double)(iso_os_clock_ns() - begin) * 1e-9);
    fflush(stdout);
    check_subject_deinit(&s->previous);
    check_list_deinit(&list);
}

static bool open_devices(suite *s)
{
    const uint32_t threads = s->options->threads;
    char text[CHECK_TEXT];

    s->is_cpu = strcmp(s->options->device, "cpu") == 0 || strcmp(s->options->device, "cpu:0") == 0;
    for (uint32_t i = 0; i < (s->is_cpu && threads == 0 ? 2u : 1u); i++) {
        s->device[i] = check_device_open(s->options->device, threads != 0 ? threads : i + 1, text);
        if (s->device[i] == NULL) {
            printf("isobit-test: %s\n", text);
            return false;
        }
        s->device_count++;
    }
    return true;
}

/* A row that no case reaches is not tested. */
static void check_rows_reached(suite *s)
{
    const iso_select_row *rows = iso_cpu_kernel_rows();

    for (uint32_t i = 0; i < iso_cpu_kernel_count(); i++) {
        if (!check_kernel_wanted(s->options, rows[i].form_isa)
            || (s->options->op != NULL && strcmp(s->options->op, rows[i].op) != 0))
            continue;
        if (!is_offered(&rows[i])) {
            printf("skip %s: this processor lacks %s\n", rows[i].kernel,
                   iso_isa_needs(rows[i].isa));
            s->skipped++;
            continue;
        }
        s->kernels++;
        if (s->options->op != NULL || s->options->test != NULL || s->accepted[i] != 0)
            continue;
        check_now = (check_run){rows[i].op, "cpu", rows[i].form_isa, "", "rows"};
        report_failure(s, "no case is accepted by this row");
    }
}

int check_suite(const check_options *options)
{
    static suite s;
    const uint64_t begin = iso_os_clock_ns();
    check_totals fused = {0};

    ISO_ASSERT(iso_cpu_kernel_count() <= KERNELS_MAX);
    s = (suite){.options = options};
    check_catch_crashes();
    if (open_devices(&s)) {
        for (unsigned id = 0; id < ISO_OP_ID_COUNT; id++)
            if (check_op_wanted(options, iso_op_get((iso_op_id)id)))
                run_op(&s, iso_op_get((iso_op_id)id));
        if (s.is_cpu)
            check_rows_reached(&s);
    } else {
        s.failures++;
    }
    alarm(0);
    for (uint32_t i = 0; i < DEVICES_MAX; i++)
        check_device_close(&s.device[i]);
    check_fusions(options, &fused);
    s.failures += fused.failures;
    if (s.cases + fused.cases == 0 && s.failures == 0) {
        printf("isobit-test: nothing matches\n");
        s.failures++;
    }
    printf("%s: %llu operators, %llu cases, %llu kernels and the references, %llu fusions, "
           "%llu cases, %llu comparisons, %llu skipped, %llu failures, %.1f s\n",
           options->device, (unsigned long long)s.ops,
           (unsigned long long)s.cases, (unsigned long long)s.kernels,
           (unsigned long long)fused.fusions, (unsigned long long)fused.cases,
           (unsigned long long)(s.comparisons + fused.comparisons), (unsigned long long)s.skipped,
           (unsigned long long)s.failures, (double)(iso_os_clock_ns() - begin) * 1e-9);
    return s.failures != 0 || (s.is_cpu && s.skipped != 0);
}
