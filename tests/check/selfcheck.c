/* Faults planted on purpose: each must be reported, in the words expected here. A plant is a kernel
 * that calls the reference and then does one thing wrong; it runs in a child process, because some
 * of them crash. */
#include "tests/check/check.h"

#include "backends/cpu/kernels.h"
#include "core/os.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_BYTES = 4096, PLANT_SECONDS = 60 };

/* The subject under test, for plants; set in the child. */
static const check_subject *planted;
static iso_kernel_fn *planted_reference;

static unsigned char *output(const iso_tensors *t)
{
    return t->at[planted->call.op->input_count];
}

static const check_operand *output_operand(void)
{
    return &planted->operand[planted->call.op->input_count];
}

static bool ends_page(const unsigned char *p) { return (uintptr_t)p % iso_os_page_bytes() == 0; }

/* ---- plants ---- */

static void write_past(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    output(t)[output_operand()->bytes] = 1;
}

static void write_past_margin(const void *args, const iso_tensors *t, iso_range units)
{
    unsigned char *end = output(t) + output_operand()->bytes;

    planted_reference(args, t, units);
    if (!ends_page(end))
        *end = 1;
}

static void write_before(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    output(t)[-1] = 1;
}

static void write_past_live(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    output(t)[output_operand()->live_bytes] = 0;
}

static void leave_unwritten(const void *args, const iso_tensors *t, iso_range units)
{
    const unsigned char old = output(t)[6];

    planted_reference(args, t, units);
    output(t)[6] = old;
}

static void change_input(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    ((unsigned char *)t->at[0])[5] ^= 1;
}

static void flip_bit(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    if (units.begin == 0)
        output(t)[8] ^= 1;
}

static void read_past(const void *args, const iso_tensors *t, iso_range units)
{
    const volatile unsigned char *x = t->at[0];

    planted_reference(args, t, units);
    (void)x[planted->operand[0].bytes];
}

static void read_before(const void *args, const iso_tensors *t, iso_range units)
{
    const volatile unsigned char *x = t->at[0];

    planted_reference(args, t, units);
    (void)x[-1];
}

static void raise_flag(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    iso_flags_raise(t->flags, ISO_FLAG_RANGE);
}

static void raise_nothing(const void *args, const iso_tensors *t, iso_range units)
{
    (void)args;
    (void)t;
    (void)units;
}

static uint64_t unit_bytes(void) { return output_operand()->live_bytes / planted->units; }

/* The first unit of a range is wrong unless the range begins at 0: a forgotten offset. */
static void depend_on_range(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    if (units.begin != 0)
        output(t)[units.begin * unit_bytes()] ^= 1;
}

static void write_past_range(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    if (units.end < planted->units)
        output(t)[units.end * unit_bytes()] ^= 1;
}

static void depend_on_flush(const void *args, const iso_tensors *t, iso_range units)
{
    const volatile float small = 0x1p-100f;
    const volatile float product = small * 0x1p-40f;

    planted_reference(args, t, units);
    if (product == 0.0f)
        output(t)[0] ^= 1;
}

static void depend_on_old_output(const void *args, const iso_tensors *t, iso_range units)
{
    const unsigned char old = output(t)[0];

    planted_reference(args, t, units);
    if (old != 0xff && old != 0xa0)
        output(t)[0] ^= 1;
}

static void depend_on_calls(const void *args, const iso_tensors *t, iso_range units)
{
    static uint32_t calls;

    planted_reference(args, t, units);
    if (calls++ == 1)
        output(t)[0] ^= 1;
}

static void write_past_scratch(const void *args, const iso_tensors *t, iso_range units)
{
    const uint32_t scratch = planted->operand_count - 1;

    planted_reference(args, t, units);
    ((unsigned char *)t->at[scratch])[planted->operand[scratch].bytes] = 0;
}

static void never_end(const void *args, const iso_tensors *t, iso_range units)
{
    (void)args;
    (void)t;
    (void)units;
    for (;;)
        pause();
}

/* Row 0 of the pool belongs to nobody in the case. */
static void change_other_state(const void *args, const iso_tensors *t, iso_range units)
{
    planted_reference(args, t, units);
    ((unsigned char *)t->at[0])[1] ^= 0x80;
}

/* ---- running one ---- */

typedef struct plant {
    const char *name;
    iso_kernel_fn *kernel;
    iso_op_id op;
    const char *test;
    bool on_device;
    const char *expected;            /* part of the report */
} plant;

#define MOE ISO_OP_ID_moe_sum, "live_7x6x33"
#define RAW ISO_OP_ID_hc_split, "raw_3_i20"
#define SAMPLE ISO_OP_ID_sample, "top_k_31x61_k7_p0_m0"
#define APPEND ISO_OP_ID_state_append, "move_bf16_7x34_b15"

static const plant plants[] = {
    {"write_past", write_past, MOE, false, "whole: access outside an operand: byte 462 of"},
    {"write_past_margin", write_past_margin, MOE, false, "guard zone behind operand 2"},
    {"write_before", write_before, MOE, false, "guard zone before operand 2"},
    {"write_past_live", write_past_live, MOE, false, "written past its 132 live bytes"},
    {"leave_unwritten", leave_unwritten, MOE, false, "output 0 [3]"},
    {"change_input", change_input, MOE, false, "input 0 was changed at byte 5"},
    {"flip_bit", flip_bit, MOE, false, "1 ulp; 1 of 66 differ"},
    {"read_past", read_past, MOE, false, "whole: access outside an operand: byte 2772 of"},
    {"read_before", read_before, MOE, false, "access outside an operand: 1 bytes before"},
    {"raise_flag", raise_flag, MOE, false, "flags are 1, expected 0"},
    {"raise_nothing", raise_nothing, RAW, false, "flags are 0, expected 1"},
    {"depend_on_range", depend_on_range, MOE, false, "ranges of 1, descending: output 0 [33]"},
    {"write_past_range", write_past_range, MOE, false, "ranges of 1, descending: output 0 [33]"},
    {"depend_on_flush", depend_on_flush, MOE, false, "flush to zero: output 0 [0]"},
    {"write_past_scratch", write_past_scratch, SAMPLE, false, "access outside an operand"},
    {"change_other_state", change_other_state, APPEND, false, "state [0]"},
    {"never_end", never_end, MOE, false, "whole: does not end"},
    {"device_write_past", write_past_margin, MOE, true, "guard zone behind operand 2"},
    {"device_write_before", write_before, MOE, true, "guard zone before operand 2"},
    {"device_write_past_live", write_past_live, MOE, true, "written past its 132 live bytes"},
    {"device_unwritten", leave_unwritten, MOE, true, "launch 1: output 0 [3]"},
    {"device_change_input", change_input, MOE, true, "input 0 was changed at byte 5"},
    {"device_flip_bit", flip_bit, MOE, true, "1 ulp; 1 of 66 differ"},
    {"device_raise_flag", raise_flag, MOE, true, "flags are 1, expected 0"},
    {"device_raise_nothing", raise_nothing, RAW, true, "flags are 0, expected 1"},
    {"device_old_output", depend_on_old_output, MOE, true, "launch 3, old outputs: output 0 [0]"},
    {"device_calls", depend_on_calls, MOE, true, "launch 2: output 0 [0]"},
    {"device_other_state", change_other_state, APPEND, true, "launch 1: state [0]"},
};

static const iso_case *find_case(const check_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->cases[i].name, name) == 0)
            return &list->cases[i];
    ISO_ASSERT_SAYS(false, name);
    return NULL;
}

static bool run_on_device(check_subject *subject, iso_kernel_fn *kernel, char text[CHECK_TEXT])
{
    check_device *device = check_device_open("cpu", 1, text);
    iso_op op = *subject->call.op;
    uint64_t comparisons = 0;
    bool is_right;

    op.reference = kernel;
    subject->call.op = &op;
    is_right = device != NULL && check_on_device(device, subject, iso_cpu_kernel_count(), 3,
                                                 &comparisons, text);
    check_device_close(&device);
    return is_right;
}

/* In the child: prints what the harness says; status 0: nothing was found. */
static int run_plant(const plant *p)
{
    const iso_op *op = iso_op_get(p->op);
    char text[CHECK_TEXT] = "";
    check_subject subject;
    uint64_t comparisons = 0;
    check_list list;
    bool is_right;

    check_list_init(&list, op);
    check_now = (check_run){op->name, "cpu", p->name, p->test, "prepare"};
    check_catch_crashes();
    if (!check_subject_init(&subject, find_case(&list, p->test), text)
        || !check_oracle(&subject, text)) {
        printf("the oracle failed: %s\n", text);
        return 0;
    }
    planted = &subject;
    planted_reference = op->reference;
    alarm(p->kernel == never_end ? 1 : PLANT_SECONDS);
    is_right = p->on_device ? run_on_device(&subject, p->kernel, text)
                            : check_direct(&subject, p->kernel, &comparisons, text);
    printf("%s: %s\n", check_now.variant, text);
    fflush(stdout);
    return is_right ? 0 : 1;
}

/* Runs `p` in a child whose output is `report`; returns its exit status, or -1. */
static int fork_plant(const plant *p, char report[REPORT_BYTES])
{
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got;
    pid_t child;

    ISO_ASSERT(pipe(ends) == 0);
    fflush(stdout);
    child = fork();
    ISO_ASSERT(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(run_plant(p));
    }
    close(ends[1]);
    while ((got = read(ends[0], report + used, REPORT_BYTES - 1 - used)) > 0)
        used += (size_t)got;
    report[used] = '\0';
    close(ends[0]);
    ISO_ASSERT(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool try_plant(const plant *p)
{
    char report[REPORT_BYTES];
    const int status = fork_plant(p, report);
    const bool is_found = (status == 1 || status == 3) && strstr(report, p->expected) != NULL;

    printf("%s %s: status %d: %s", is_found ? "ok  " : "FAIL", p->name, status, report);
    if (!is_found)
        printf("     expected: %s\n", p->expected);
    return is_found;
}

/* ---- the golden table ---- */

enum { TABLE_BYTES = 1 << 16 };

/* Puts `text` into the file and compares the table; true if that failed as it should. */
static bool try_table(int file, const check_options *options, const char *text, bool is_right)
{
    const size_t bytes = strlen(text);

    ISO_ASSERT(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    ISO_ASSERT(write(file, text, bytes) == (ssize_t)bytes);
    return (check_golden_compare(options) == 0) == is_right;
}

/* A table as written, with a digit changed, with a line less, with a line more. */
static bool try_golden(void)
{
    static char text[TABLE_BYTES], changed[TABLE_BYTES];
    const int file = memfd_create("golden", 0);
    char name[64], *last;
    check_options options = {.op = "argmax", .device = "cpu", .golden = name};
    ssize_t got;
    bool is_right;

    ISO_ASSERT(file >= 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ISO_ASSERT(check_golden_write(&options) == 0);
    got = pread(file, text, TABLE_BYTES - 64, 0);
    ISO_ASSERT(got > 0 && got < TABLE_BYTES - 64);
    is_right = try_table(file, &options, text, true);
    strcpy(changed, text);
    changed[got - 2] = changed[got - 2] == '0' ? '1' : '0';
    is_right = try_table(file, &options, changed, false) && is_right;
    strcpy(changed, text);
    changed[got - 1] = '\0';
    last = strrchr(changed, '\n');
    last[1] = '\0';
    is_right = try_table(file, &options, changed, false) && is_right;
    strcpy(changed, text);
    strcat(changed, "argmax/no_such_case 0\n");
    is_right = try_table(file, &options, changed, false) && is_right;
    close(file);
    printf("%s golden table: changed, missing and extra lines\n", is_right ? "ok  " : "FAIL");
    return is_right;
}

int check_self(void)
{
    uint32_t found = 0;
    bool is_golden_right;

    for (size_t i = 0; i < ISO_COUNT_OF(plants); i++)
        found += try_plant(&plants[i]);
    is_golden_right = try_golden();
    printf("self-check: %u of %zu planted faults reported\n", found, ISO_COUNT_OF(plants));
    return found != ISO_COUNT_OF(plants) || !is_golden_right;
}
