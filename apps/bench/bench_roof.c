#include "apps/bench/bench.h"

#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR_BYTES = 1 << 19, NEAR_TIMES = 200, ROUNDS = 1 << 19 };
enum { ROOF_RUNS = 15, FAR_BYTES = 1 << 30 };

uint32_t bench_threads(const bench_options *options)
{
    return options->thread_count != 0 ? options->thread_count : iso_threads_available();
}

/* ---- reading ---- */

typedef struct read_args {
    bench_read_fn *read;
    uint64_t piece_bytes;
    uint32_t times;
} read_args;

/* A unit is a piece of the data, read so many times; its sum is stored so that the loads stay. */
static void read_units(const void *args, const iso_tensors *tensors, iso_range units)
{
    const read_args *a = args;
    const unsigned char *data = tensors->at[0];
    uint64_t *sums = tensors->at[1];

    for (uint64_t u = units.begin; u < units.end; u++)
        for (uint32_t i = 0; i < a->times; i++)
            sums[u] += a->read(data + u * a->piece_bytes, a->piece_bytes);
}

double bench_read_seconds(uint32_t threads, bench_read_fn *read, const void *data, uint64_t bytes)
{
    static uint64_t sums[1 << 18];
    const read_args args = {read, BENCH_READ_PIECE, 1};
    void *at[2] = {(void *)(uintptr_t)data, sums};
    const iso_tensors tensors = {at, NULL, NULL};
    const uint64_t pieces = bytes / BENCH_READ_PIECE;
    double start;

    ISO_ASSERT(bytes % BENCH_READ_PIECE == 0 && pieces <= ISO_COUNT_OF(sums));
    start = bench_now();
    iso_threads_run(threads, pieces, 1, read_units, &args, &tensors);
    return bench_now() - start;
}

/* Every thread reads a piece that stays in its own cache. */
static double near_seconds(uint32_t threads, bench_read_fn *read, const void *data)
{
    static uint64_t sums[1024];
    const read_args args = {read, NEAR_BYTES, NEAR_TIMES};
    void *at[2] = {(void *)(uintptr_t)data, sums};
    const iso_tensors tensors = {at, NULL, NULL};
    const double start = bench_now();

    iso_threads_run(threads, threads, 1, read_units, &args, &tensors);
    return bench_now() - start;
}

static void find_read(uint32_t runs, uint32_t threads, const void *data, uint64_t bytes,
                      bench_roof *roof)
{
    const bench_loops *loops;
    double far[ROOF_RUNS], near[ROOF_RUNS];

    for (uint32_t l = 0; (loops = bench_loops_at(l)) != NULL; l++)
        for (uint32_t i = 0; i < ISO_COUNT_OF(loops->read); i++) {
            double rate;

            for (uint32_t run = 0; run < runs; run++) {
                far[run] = bench_read_seconds(threads, loops->read[i], data, bytes);
                near[run] = near_seconds(threads, loops->read[i], data);
            }
            rate = (double)bytes / bench_median(far, runs);
            if (rate > roof->read) {
                roof->read = rate;
                roof->read_isa = loops->isa;
                roof->read_loop = loops->read[i];
            }
            rate = (double)threads * NEAR_BYTES * NEAR_TIMES / bench_median(near, runs);
            roof->near_read = rate > roof->near_read ? rate : roof->near_read;
        }
}

/* ---- multiply and add ---- */

typedef struct multiply_args {
    bench_multiply_fn *multiply;
} multiply_args;

static void multiply_units(const void *args, const iso_tensors *tensors, iso_range units)
{
    const multiply_args *a = args;
    double *operations = tensors->at[0];
    float *results = tensors->at[1];

    for (uint64_t u = units.begin; u < units.end; u++)
        operations[u] = a->multiply(ROUNDS, &results[u]);
}

static void find_multiply(uint32_t runs, uint32_t threads, bench_roof *roof)
{
    static double operations[1024];
    static float results[1024];
    void *at[2] = {operations, results};
    const iso_tensors tensors = {at, NULL, NULL};
    const bench_loops *loops;

    for (uint32_t l = 0; (loops = bench_loops_at(l)) != NULL; l++) {
        const multiply_args args = {loops->multiply};
        double times[ROOF_RUNS], rate;

        for (uint32_t run = 0; run < runs; run++) {
            const double start = bench_now();

            iso_threads_run(threads, threads, 1, multiply_units, &args, &tensors);
            times[run] = bench_now() - start;
        }
        rate = threads * operations[0] / bench_median(times, runs);
        if (rate > roof->multiply) {
            roof->multiply = rate;
            roof->multiply_isa = loops->isa;
        }
    }
}

iso_status bench_roof_measure(const bench_options *options, bench_roof *roof, iso_error *error)
{
    const uint32_t threads = bench_threads(options);
    const uint32_t runs = options->runs < ROOF_RUNS ? options->runs : ROOF_RUNS;
    const uint64_t cycle = options->cycle_bytes != 0 ? options->cycle_bytes : FAR_BYTES;
    const uint64_t far = cycle / BENCH_READ_PIECE * BENCH_READ_PIECE;
    const uint64_t near = (uint64_t)threads * NEAR_BYTES, bytes = far > near ? far : near;
    void *data = aligned_alloc(4096, bytes);

    if (data == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "bench: %llu bytes to read from",
                        (unsigned long long)bytes);
    memset(data, 1, bytes);
    *roof = (bench_roof){0};
    find_read(runs, threads, data, far, roof);
    find_multiply(runs, threads, roof);
    free(data);
    return ISO_OK;
}

void bench_roof_print(bool json, const char *when, const bench_roof *roof)
{
    if (json)
        printf("\"%s\":{\"read_gb_per_second\":%.3f,\"near_read_gb_per_second\":%.3f,"
               "\"gflop_per_second\":%.3f,\"read_loop\":\"%s\"}", when, roof->read * 1e-9,
               roof->near_read * 1e-9, roof->multiply * 1e-9, roof->read_isa);
    else
        printf("all threads, measured %s: reads %.2f GB/s from memory (%s), %.2f GB/s "
               "from their caches; %.1f GFLOP/s multiply-add (%s)\n", when, roof->read * 1e-9,
               roof->read_isa, roof->near_read * 1e-9, roof->multiply * 1e-9,
               roof->multiply_isa);
}
