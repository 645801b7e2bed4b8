#include "apps/bench/bench_blas.h"
#include "apps/bench/bench_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bench_part *bench_score_add(bench_score *score, const char *name, double ratio)
{
    bench_part *part = &score->part[score->part_count++];

    ISO_ASSERT(score->part_count <= BENCH_PARTS_MAX);
    *part = (bench_part){.name = name, .ratio = ratio};
    return part;
}

/* ---- weights of one row ---- */

static iso_status score_weights(const bench_table_options *options, const bench_shape *shape,
                                const bench_roof *roof, bench_score *score, iso_error *error)
{
    bench_result r;
    bench_case test;
    bench_part *part;

    ISO_TRY(bench_case_make(shape, &test, error));
    ISO_TRY(bench_run(&options->bench, roof, &test, &r, error));
    part = bench_score_add(score, shape->name, r.gigabytes / r.read_gigabytes);
    snprintf(part->text, sizeof part->text, "%.2f of %.2f GB/s, %.1f us, %s", r.gigabytes,
             r.read_gigabytes, r.seconds * 1e6, r.kernel);
    return ISO_OK;
}

iso_status bench_score_weights(const bench_table_options *options, const bench_row *row,
                               const bench_roof *roof, bench_score *score, iso_error *error)
{
    for (const bench_shape *s = row->shapes; s->rows != 0; s++)
        ISO_TRY(score_weights(options, s, roof, score, error));
    return ISO_OK;
}

/* ---- few rows against one ---- */

static iso_status pair_runs(bench_rig *const rig[2], uint32_t runs, double seconds[2],
                            iso_error *error)
{
    double times[2][BENCH_RUNS_MAX], first;

    for (int i = 0; i < 2; i++)
        ISO_TRY(bench_rig_run(rig[i], &first, error));
    for (uint32_t run = 0; run < runs; run++)
        for (int i = 0; i < 2; i++)
            ISO_TRY(bench_rig_run(rig[i], &times[i][run], error));
    for (int i = 0; i < 2; i++)
        seconds[i] = bench_median(times[i], runs);
    return ISO_OK;
}

static iso_status score_verify(const bench_table_options *options, const bench_shape *shape,
                               bench_score *score, iso_error *error)
{
    bench_shape one = *shape;
    bench_case test[2];
    bench_rig *rig[2] = {NULL, NULL};
    double seconds[2];
    iso_status status;

    one.rows = 1;
    ISO_TRY(bench_case_make(shape, &test[0], error));
    ISO_TRY(bench_case_make(&one, &test[1], error));
    status = bench_rig_open(&options->bench, &test[0], &rig[0], error);
    if (status == ISO_OK)
        status = bench_rig_open(&options->bench, &test[1], &rig[1], error);
    if (status == ISO_OK)
        status = pair_runs(rig, options->bench.runs, seconds, error);
    if (status == ISO_OK) {
        bench_result r;
        bench_part *part = bench_score_add(score, shape->name,
                                           seconds[0] / (shape->rows * seconds[1]));

        bench_rig_describe(rig[0], &r);
        snprintf(part->text, sizeof part->text, "%.1f us of 6 x %.1f us, %s", seconds[0] * 1e6,
                 seconds[1] * 1e6, r.kernel);
    }
    bench_rig_close(&rig[1]);
    bench_rig_close(&rig[0]);
    return status;
}

iso_status bench_score_verify(const bench_table_options *options, const bench_row *row,
                              const bench_roof *roof, bench_score *score, iso_error *error)
{
    (void)roof;
    for (const bench_shape *s = row->shapes; s->rows != 0; s++)
        ISO_TRY(score_verify(options, s, score, error));
    return ISO_OK;
}

/* ---- many rows against sgemm ---- */

/* Threads of the library that ran last look for work for some milliseconds before they sleep. */
static void let_sleep(void)
{
    const struct timespec pause = {0, 100 * 1000 * 1000};

    nanosleep(&pause, NULL);
}

static iso_status blas_runs(const bench_options *options, bench_rig *rig,
                            const bench_sgemm *call, double seconds[2], iso_error *error)
{
    const uint32_t threads = bench_threads(options);
    double times[2][BENCH_RUNS_MAX], first;

    ISO_TRY(bench_rig_run(rig, &first, error));
    bench_blas_run(threads, call);
    for (uint32_t run = 0; run < options->runs; run++) {
        double start;

        let_sleep();
        ISO_TRY(bench_rig_run(rig, &times[0][run], error));
        let_sleep();
        start = bench_now();
        bench_blas_run(threads, call);
        times[1][run] = bench_now() - start;
    }
    for (int i = 0; i < 2; i++)
        seconds[i] = bench_median(times[i], options->runs);
    return ISO_OK;
}

static float *floats(uint64_t count, uint32_t seed)
{
    float *values = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);

    for (uint64_t i = 0; values != NULL && i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 24) / 128.0f - 1.0f;
    }
    return values;
}

static iso_status score_prefill(const bench_table_options *options, const bench_shape *s,
                                bench_score *score, iso_error *error)
{
    float *a = floats((uint64_t)s->rows * s->k, 1), *b = floats((uint64_t)s->n * s->k, 2);
    float *c = floats((uint64_t)s->rows * s->n, 3);
    const bench_sgemm call = {s->rows, s->n, s->k, a, b, c};
    bench_rig *rig = NULL;
    double seconds[2];
    bench_case test;
    iso_status status = bench_case_make(s, &test, error);

    if (status == ISO_OK && (a == NULL || b == NULL || c == NULL))
        status = iso_fail(error, ISO_NO_MEMORY, "bench: out of memory for sgemm");
    if (status == ISO_OK)
        status = bench_rig_open(&options->bench, &test, &rig, error);
    if (status == ISO_OK)
        status = blas_runs(&options->bench, rig, &call, seconds, error);
    if (status == ISO_OK) {
        bench_result r;
        bench_part *part = bench_score_add(score, s->name, seconds[1] / seconds[0]);

        bench_rig_describe(rig, &r);
        snprintf(part->text, sizeof part->text, "%.1f of %.1f GFLOP/s, %s; %s",
                 r.operations / seconds[0] * 1e-9, r.operations / seconds[1] * 1e-9, r.kernel,
                 bench_blas_name());
    }
    bench_rig_close(&rig);
    free(a);
    free(b);
    free(c);
    return status;
}

iso_status bench_score_prefill(const bench_table_options *options, const bench_row *row,
                               const bench_roof *roof, bench_score *score, iso_error *error)
{
    (void)roof;
    ISO_TRY(bench_blas_open(options->bench.isa, error));
    for (const bench_shape *s = row->shapes; s->rows != 0; s++)
        ISO_TRY(score_prefill(options, s, score, error));
    return ISO_OK;
}

/* ---- attention ---- */

iso_status bench_score_attention(const bench_table_options *options, const bench_row *row,
                                 const bench_roof *roof, bench_score *score, iso_error *error)
{
    const double key_bytes = 64.0 * 640 * 512 * 2;       /* heads, keys, values, bf16 */
    bench_result r;
    bench_case test;
    bench_part *part;

    ISO_TRY(bench_case_named("attend 64 heads, 640 keys, 1 row", &test, error));
    ISO_TRY(bench_run(&options->bench, roof, &test, &r, error));
    part = bench_score_add(score, row->measure, key_bytes / r.seconds / roof->near_read);
    snprintf(part->text, sizeof part->text, "%.2f of %.2f GB/s, %.1f us, %.1f of %.1f GFLOP/s, %s",
             key_bytes / r.seconds * 1e-9, roof->near_read * 1e-9, r.seconds * 1e6, r.gigaflops,
             roof->multiply * 1e-9, r.kernel);
    return ISO_OK;
}
