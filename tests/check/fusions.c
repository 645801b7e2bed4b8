/* fused == parts, for every row of fusions.def that a backend offers. There is nothing to write for
 * a new row: its cases are those of its first operator (matmuls with more output features as well),
 * and the operators behind it are completed by tests/check/parts.c. The expected bytes are those of
 * the references, run one after the other. */
#include "tests/check/fusions.h"

#include "backends/cpu/fused.h"
#include "backends/cpu/kernels.h"
#include "core/alloc.h"
#include "core/os.h"

#include <unistd.h>

enum { DEVICES = 3, CASES_MIN = 8, CASE_SECONDS = 300, FAILURES_SHOWN = 40 };

typedef struct run {
    const check_options *options;
    check_device *device[DEVICES];       /* of 1, 2, 3 threads */
    uint32_t device_count;
    bool is_cpu;
    uint64_t *comparisons;
    uint64_t cases, failures;
} run;

static bool report(run *r, const char *reason)
{
    if (r->failures++ < FAILURES_SHOWN)
        printf("FAIL %s/%s/%s/%s: %s: %s; replay: isobit-test --replay %s/%s/%s/%s\n",
               check_now.op, check_now.device, check_now.kernel, check_now.test,
               check_now.variant, reason, check_now.op, check_now.device, check_now.kernel,
               check_now.test);
    fflush(stdout);
    return false;
}

/* ---- ranges of units in any order, without a device ---- */

static bool take_memory(check_fused *f, uint32_t pattern, void *at[][CHECK_OPERANDS_MAX])
{
    for (uint32_t p = 0; p < f->group.part_count; p++)
        for (uint32_t i = 0; i < f->part[p].operand_count; i++) {
            const check_operand *operand = &f->part[p].operand[i];
            const iso_fused_link link = i < ISO_OP_INPUTS_MAX ? f->group.link[p][i]
                                                              : (iso_fused_link){0, 0};

            at[p][i] = NULL;
            if (operand->role == CHECK_INPUT)
                at[p][i] = operand->value;
            else if (operand->role == CHECK_LINK)
                at[p][i] = at[link.part - 1][f->part[link.part - 1].call.op->input_count
                                             + link.output];
            else if (operand->role == CHECK_ALIAS)
                at[p][i] = at[p][0];
            else if (operand->role != CHECK_ABSENT) {
                at[p][i] = iso_alloc((size_t)operand->bytes + 1, 64, "check fused");
                ISO_ASSERT(at[p][i] != NULL);
                check_poison(at[p][i], operand->bytes, pattern);
                if (operand->role == CHECK_STATE)
                    memcpy(at[p][i], operand->value, (size_t)operand->bytes);
            }
        }
    return true;
}

static void release_memory(const check_fused *f, void *at[][CHECK_OPERANDS_MAX])
{
    for (uint32_t p = 0; p < f->group.part_count; p++)
        for (uint32_t i = 0; i < f->part[p].operand_count; i++) {
            const check_role role = f->part[p].operand[i].role;

            if (role == CHECK_OUTPUT || role == CHECK_INNER || role == CHECK_STATE)
                iso_release(at[p][i], (size_t)f->part[p].operand[i].bytes + 1);
        }
}

static void call_form(const check_fused *f, void *at[][CHECK_OPERANDS_MAX], uint64_t step,
                      bool is_descending, uint32_t flags[ISO_FUSION_PARTS_MAX])
{
    const iso_cpu_form *form = iso_cpu_fused_form(f->group.fused_kernel);
    iso_cpu_fused fused = {.part_count = f->group.part_count};
    uint64_t units, pieces;

    for (uint32_t p = 0; p < fused.part_count; p++) {
        const check_subject *s = &f->part[p];
        iso_cpu_part *part = &fused.part[p];
        iso_live live;

        memcpy(part->args, s->resolved, sizeof part->args);
        memcpy(&live, s->resolved, sizeof live);
        part->kernel = f->group.kernel[p] < iso_cpu_kernel_count()
                           ? iso_cpu_kernel_function(f->group.kernel[p]) : s->call.op->reference;
        part->tensors = (iso_tensors){at[p], s->block, &flags[p]};
        part->units = s->units;
        part->live = live.count;
    }
    units = form->units(&fused);
    pieces = (units + step - 1) / step;
    for (uint64_t i = 0; i < pieces; i++) {
        const uint64_t begin = (is_descending ? pieces - 1 - i : i) * step;

        form->run(&fused, NULL, (iso_range){begin, units - begin < step ? units : begin + step});
    }
}

static bool run_ranges(run *r, check_fused *f)
{
    static const struct {
        const char *name;
        uint64_t step;
        bool is_descending;
    } variant[] = {{"ranges of 1, descending", 1, true}, {"ranges of 3", 3, false},
                   {"whole", UINT64_C(1) << 62, false}, {"ranges of 7, descending", 7, true}};
    char text[CHECK_TEXT];
    bool is_right = true;

    for (uint32_t v = 0; v < ISO_COUNT_OF(variant) && is_right; v++) {
        static void *at[ISO_FUSION_PARTS_MAX][CHECK_OPERANDS_MAX];
        uint32_t flags[ISO_FUSION_PARTS_MAX] = {0};
        check_trial trial = {.pattern = v % 2};

        check_now.variant = variant[v].name;
        ++*r->comparisons;
        take_memory(f, v % 2, at);
        call_form(f, at, variant[v].step, variant[v].is_descending, flags);
        for (uint32_t p = 0; p < f->group.part_count; p++)
            trial.flags = trial.flags != 0 ? trial.flags : flags[p];
        for (uint32_t p = 0; p < f->group.part_count && is_right; p++) {
            for (uint32_t i = 0; i < f->part[p].operand_count; i++)
                trial.at[i] = at[p][i];
            is_right = check_verify(&f->part[p], &trial, text) || report(r, text);
        }
        release_memory(f, at);
    }
    return is_right;
}

/* ---- one case ---- */

static bool run_devices(run *r, const check_fused *f)
{
    char text[CHECK_TEXT];

    for (uint32_t i = 0; i < r->device_count; i++)
        if (!check_group_on_device(r->device[i], &f->group, i == 1 ? 3 : 1, r->comparisons, text))
            return report(r, text);
    return true;
}

/* With the kernels that would run the parts alone. False: the device refuses a part. */
static bool choose_kernels(const run *r, check_fused *f)
{
    char text[CHECK_TEXT];
    iso_support support;

    for (uint32_t p = 0; p < f->group.part_count; p++) {
        if (!check_device_query(r->device[0], &f->part[p], &support, text))
            return false;
        f->group.kernel[p] = support.kernel_index;
    }
    return true;
}

static uint64_t stored_count(const check_fused *f)
{
    uint64_t count = 0;

    for (uint32_t p = 0; p < f->group.part_count; p++)
        for (uint32_t bits = f->call.stored[p]; bits != 0; bits &= bits - 1)
            count++;
    return count;
}

/* Inner values kept inside, and read outside as well. */
static bool run_stored(run *r, check_fused *f)
{
    for (uint32_t all = 0; all < 2; all++) {
        iso_support support;

        const uint64_t before = stored_count(f);

        check_fused_store(f, all != 0, true);
        if (all != 0 && stored_count(f) == before)
            break;                       /* nothing lives inside */
        if (!check_device_query_fused(r->device[0], &f->call, &support)) {
            if (all == 0)
                return false;
            return report(r, "refused when all values are stored");
        }
        check_fused_store(f, all != 0, support.stores_inner);
        f->group.fused_kernel = support.kernel_index;
        check_now.kernel = support.kernel;
        if (!run_devices(r, f) || (r->is_cpu && !run_ranges(r, f)))
            return true;
    }
    return true;
}

/* False: not offered. */
static bool run_kernels(run *r, check_fused *f)
{
    if (!choose_kernels(r, f) || !run_stored(r, f))
        return false;
    if (r->is_cpu && f->number % 4 == 0) {
        for (uint32_t p = 0; p < f->group.part_count; p++)
            f->group.kernel[p] = iso_cpu_kernel_count();
        run_stored(r, f);
    }
    if (check_fused_pack(f) && choose_kernels(r, f))
        run_stored(r, f);
    return true;
}

static void run_case(run *r, const iso_fusion *fusion, const iso_case *test, uint32_t number)
{
    static check_fused f;

    check_now = (check_run){fusion->name, r->options->device, "parts", test->name, "prepare"};
    if (!check_test_wanted(r->options, test))
        return;
    alarm(CASE_SECONDS);
    if (check_fused_init(&f, fusion, test, number) && run_kernels(r, &f))
        r->cases++;
    check_fused_deinit(&f);
}

static void run_fusion(run *r, const iso_fusion *fusion)
{
    const uint64_t begin = iso_os_clock_ns(), before = r->cases, failures = r->failures;
    const char *missing = check_fused_missing(fusion);
    check_list list;

    check_now = (check_run){fusion->name, r->options->device, "parts", "", "list"};
    if (missing != NULL) {
        char text[CHECK_TEXT];

        snprintf(text, sizeof text, "tests/check/parts.c does not know %s as a later part",
                 missing);
        report(r, text);
        return;
    }
    check_list_init(&list, iso_op_find(fusion->part[0]));
    check_fused_widen(&list, fusion);
    for (uint32_t i = 0; i < list.count; i++)
        run_case(r, fusion, &list.cases[i], i);
    check_list_deinit(&list);
    check_now = (check_run){fusion->name, r->options->device, "parts", "", "list"};
    if (r->cases - before < CASES_MIN && r->options->test == NULL && r->is_cpu)
        report(r, "the device runs too few of the cases as one step");
    printf("%-4s %-19s %3llu cases  %6.2f s\n", r->failures == failures ? "ok" : "FAIL",
           fusion->name, (unsigned long long)(r->cases - before),
           (double)(iso_os_clock_ns() - begin) * 1e-9);
    fflush(stdout);
}

/* ---- all ---- */

bool check_fusion_wanted(const check_options *options, const iso_fusion *fusion)
{
    return options->op == NULL || strcmp(options->op, fusion->name) == 0;
}

void check_fusions(const check_options *options, check_totals *totals)
{
    run r = {.options = options, .comparisons = &totals->comparisons};
    char text[CHECK_TEXT];

    r.is_cpu = strcmp(options->device, "cpu") == 0 || strcmp(options->device, "cpu:0") == 0;
    for (uint32_t i = 0; i < (r.is_cpu ? DEVICES : 1u); i++) {
        r.device[i] = check_device_open(options->device,
                                        options->threads != 0 ? options->threads : i + 1, text);
        if (r.device[i] == NULL) {
            printf("isobit-test: %s\n", text);
            r.failures++;
            break;
        }
        r.device_count++;
    }
    for (uint32_t i = 0; i < ISO_FUSION_ID_COUNT && r.failures == 0; i++)
        if (check_fusion_wanted(options, &iso_fusion_rows()[i])) {
            run_fusion(&r, &iso_fusion_rows()[i]);
            totals->fusions++;
        }
    alarm(0);
    for (uint32_t i = 0; i < r.device_count; i++)
        check_device_close(&r.device[i]);
    totals->cases += r.cases;
    totals->failures += r.failures;
}
