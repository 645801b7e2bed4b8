#include "apps/bench/bench.h"

#include <stdlib.h>
#include <time.h>

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_median(double *times, uint32_t count)
{
    qsort(times, count, sizeof *times, by_time);
    return times[count / 2];
}

static iso_status measure(bench_rig *rig, const bench_options *options, const bench_roof *roof,
                          bench_result *result, iso_error *error)
{
    double times[BENCH_RUNS_MAX], reads[BENCH_RUNS_MAX];
    const double start = bench_now();
    uint32_t runs = 0;

    ISO_TRY(bench_rig_run(rig, &times[0], error));       /* first touch of the outputs */
    while (runs < options->runs && runs < BENCH_RUNS_MAX
           && (runs < 3 || bench_now() - start < options->seconds_max)) {
        reads[runs] = bench_rig_read(rig, roof->read_loop);
        ISO_TRY(bench_rig_run(rig, &times[runs++], error));
    }
    result->runs = runs;
    result->seconds = bench_median(times, runs);
    result->read_gigabytes = bench_median(reads, runs) * 1e-9;
    result->gigabytes = (double)result->bytes / result->seconds * 1e-9;
    result->gigaflops = result->operations / result->seconds * 1e-9;
    return ISO_OK;
}

iso_status bench_run(const bench_options *options, const bench_roof *roof, const bench_case *test,
                     bench_result *result, iso_error *error)
{
    bench_rig *rig = NULL;
    iso_status status = bench_rig_open(options, test, &rig, error);

    if (status == ISO_OK) {
        bench_rig_describe(rig, result);
        status = measure(rig, options, roof, result, error);
    }
    bench_rig_close(&rig);
    return status;
}
