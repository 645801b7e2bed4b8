#include "apps/bench/bench_table.h"

#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A piece of the packed kernel is 128 features; a unit of the loops is 32. */
enum { PIECE_TILES = 4 };

/* The product of one program of the rig in free order, run as a program runs: a team, step after
 * step. */
typedef struct free_run {
    iso_team *team;
    const bench_rig *rig;
    bench_copies copies;
    iso_kernel_fn *kernel;
    bench_free_args args;
    void *y;
} free_run;

static void run_steps(void *context)
{
    const free_run *f = context;

    for (uint32_t i = 0; i < f->copies.count; i++) {
        void *at[3] = {(void *)(uintptr_t)bench_rig_input(f->rig, 0),
                       (void *)(uintptr_t)(f->copies.first + i * f->copies.stride), f->y};
        const iso_tensors tensors = {at, NULL, NULL};

        iso_team_run(f->team, f->args.n / 32, PIECE_TILES, f->kernel, &f->args, &tensors);
    }
}

static double run_free(const free_run *f)
{
    const double start = bench_now();
    free_run run = *f;

    iso_team_enter(f->team, true, run_steps, &run);
    return (bench_now() - start) / f->copies.count;
}

/* The loops of the kernel's own instruction set, or the strongest that is there. */
static const bench_loops *loops_of(const char *kernel)
{
    const char *isa = strrchr(kernel, '/') + 1;
    const bench_loops *loops, *found = bench_loops_at(0);

    for (uint32_t i = 0; (loops = bench_loops_at(i)) != NULL; i++) {
        found = loops;
        if (strcmp(loops->isa, isa) == 0)
            break;
    }
    return found;
}

/* Strict, then every free form, over copies that nobody read lately. */
static iso_status compare(const bench_options *options, bench_rig *rig, free_run *f,
                          const bench_loops *loops, double seconds[2], iso_error *error)
{
    double strict[BENCH_RUNS_MAX], free_order[BENCH_FREE_FORMS][BENCH_RUNS_MAX];
    uint32_t program = 0;

    ISO_TRY(bench_rig_run(rig, &strict[0], error));
    for (uint32_t run = 0; run < options->runs; run++) {
        ISO_TRY(bench_rig_run(rig, &strict[run], error));
        for (uint32_t i = 0; i < BENCH_FREE_FORMS; i++) {
            f->copies = bench_rig_copies(rig, 0);
            program = run + (i + 1) * f->copies.program_count / (BENCH_FREE_FORMS + 1);
            f->copies = bench_rig_copies(rig, program);
            f->kernel = loops->free_order[i];
            free_order[i][run] = run_free(f);
        }
    }
    seconds[0] = bench_median(strict, options->runs);
    for (uint32_t i = 0; i < BENCH_FREE_FORMS; i++) {
        const double median = bench_median(free_order[i], options->runs);

        seconds[1] = i == 0 || median < seconds[1] ? median : seconds[1];
    }
    return ISO_OK;
}

static iso_status score_order(const bench_options *options, const bench_shape *shape,
                              bench_score *score, iso_error *error)
{
    free_run f = {.args = {shape->k, shape->n}, .y = malloc(shape->n * sizeof(uint16_t)),
                  .team = iso_team_create(bench_threads(options))};
    bench_result r = {0};
    double seconds[2];
    bench_rig *rig = NULL;
    bench_case test;
    iso_status status = bench_case_make(shape, &test, error);

    if (status == ISO_OK && (f.y == NULL || f.team == NULL))
        status = iso_fail(error, ISO_NO_MEMORY, "bench: out of memory for %s", shape->name);
    if (status == ISO_OK)
        status = bench_rig_open(options, &test, &rig, error);
    if (status == ISO_OK) {
        f.rig = rig;
        bench_rig_describe(rig, &r);
        if (strcmp(r.layout, "rows32") != 0)
            status = iso_fail(error, ISO_UNSUPPORTED, "no packed kernel here to compare with");
    }
    if (status == ISO_OK)
        status = compare(options, rig, &f, loops_of(r.kernel), seconds, error);
    if (status == ISO_OK) {
        bench_part *part = bench_score_add(score, shape->name, seconds[1] / seconds[0]);

        snprintf(part->text, sizeof part->text, "%.1f us, free order %.1f us, %s",
                 seconds[0] * 1e6, seconds[1] * 1e6, r.kernel);
    }
    bench_rig_close(&rig);
    iso_team_destroy(&f.team);
    free(f.y);
    return status;
}

/* The last shape stays in the caches: its weights are not cycled. */
iso_status bench_score_order(const bench_table_options *options, const bench_row *row,
                             const bench_roof *roof, bench_score *score, iso_error *error)
{
    bench_options bench = options->bench;

    (void)roof;
    for (const bench_shape *s = row->shapes; s->rows != 0; s++) {
        if (s[1].rows == 0)
            bench.cycle_bytes = 0;
        ISO_TRY(score_order(&bench, s, score, error));
    }
    return ISO_OK;
}
