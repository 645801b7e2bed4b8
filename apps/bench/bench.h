/* bench: times operators on the CPU backend at real V4.1 shapes. Every figure is printed beside
 * what the same memory and the same cores gave in the same run; nothing here asserts a time.
 *
 * A weight is read as decoding reads it: a program has several steps over successive copies, and
 * the copies together are larger than any cache. */
#ifndef ISO_APPS_BENCH_H
#define ISO_APPS_BENCH_H

#include "apps/bench/bench_loops.h"
#include "core/backend.h"
#include "ggml-style-ops/cases.h"

enum { BENCH_RUNS_MAX = 256, BENCH_READ_PIECE = 1 << 18 };

/* One operator at one shape. `weight` is the input whose copies are cycled, so that caches do not
 * help; its bytes are the bytes a run must read from memory. */
typedef struct bench_case {
    const char *name;
    iso_op_call call;
    int32_t weight, weight_scale;        /* input indices; -1: none */
    uint32_t index_inputs;               /* bit i: input i holds ids: 0, 1, 2, ... */
    uint32_t index_count;                /* ids end there and begin again */
    double operations;                   /* multiply-adds x 2 of one run; 0: not counted */
    const iso_case *source;              /* makes the inputs; NULL: plausible bytes */
} bench_case;

/* A product: `rows` rows of k values with weights [n, k] (matmul_groups: [n, k] of 8 groups). */
typedef struct bench_shape {
    const char *name;
    iso_op_id op;
    uint32_t rows, k, n;
} bench_shape;

typedef struct bench_options {
    uint32_t thread_count, runs;
    uint64_t cycle_bytes;                /* of weights; 0: one copy, which stays in the caches */
    double seconds_max;                  /* per case */
    bool reference_only;
    const char *isa;
    const char *layout;                  /* of weights: "plain", "rows32"; "auto": the better */
} bench_options;

/* What all threads can do, by the best of the loops; medians. */
typedef struct bench_roof {
    double read, near_read;              /* bytes per second: cycle_bytes of memory; 512 KiB each */
    double multiply;                     /* operations per second */
    const char *read_isa, *multiply_isa;
    bench_read_fn *read_loop;            /* of `read` */
} bench_roof;

typedef struct bench_result {
    const char *name, *kernel, *layout;  /* layout of the weights; "-": the operator has none */
    double seconds;                      /* median */
    double gigabytes, gigaflops;         /* per second */
    double read_gigabytes;               /* per second of reading, between the runs; 0: none */
    uint64_t bytes;
    double operations;
    uint32_t runs;
} bench_result;

uint32_t bench_threads(const bench_options *options);
double bench_now(void);                                  /* seconds */
double bench_median(double *times, uint32_t count);      /* sorts */

/* Cases 0 .. count - 1 are those of the list. */
size_t bench_case_count(void);
iso_status bench_case_at(size_t index, bench_case *out, iso_error *error);
iso_status bench_case_named(const char *name, bench_case *out, iso_error *error);
iso_status bench_case_make(const bench_shape *shape, bench_case *out, iso_error *error);

iso_status bench_roof_measure(const bench_options *options, bench_roof *roof, iso_error *error);
/* `when`: "before" or "after"; a line of text, or a member of a JSON object. */
void bench_roof_print(bool json, const char *when, const bench_roof *roof);
/* Of reading `bytes` bytes once, by all threads; a multiple of BENCH_READ_PIECE. */
double bench_read_seconds(uint32_t threads, bench_read_fn *read, const void *data,
                          uint64_t bytes);

/* A case with its device, memory and programs. ISO_UNSUPPORTED: the device has no kernel for the
 * case in the layout asked for. The case stays valid while the rig is open. */
typedef struct bench_rig bench_rig;
iso_status bench_rig_open(const bench_options *options, const bench_case *test, bench_rig **rig,
                          iso_error *error);
void bench_rig_close(bench_rig **rig);
/* Runs the next program; seconds per step. */
iso_status bench_rig_run(bench_rig *rig, double *seconds, iso_error *error);
/* The copies of the weight that program `program` reads, for a product that runs beside the rig;
 * and an input's values. */
typedef struct bench_copies {
    const unsigned char *first;
    uint64_t stride;                     /* bytes */
    uint32_t count, program_count;
} bench_copies;
bench_copies bench_rig_copies(const bench_rig *rig, uint32_t program);
const void *bench_rig_input(const bench_rig *rig, uint32_t input);
/* Reads weights that the next runs do not use; bytes per second, 0 without weights. */
double bench_rig_read(bench_rig *rig, bench_read_fn *read);
/* Fills all of the result that is no time. */
void bench_rig_describe(const bench_rig *rig, bench_result *result);

/* Runs a case, reading between the runs; errors as those of bench_rig_open. */
iso_status bench_run(const bench_options *options, const bench_roof *roof, const bench_case *test,
                     bench_result *result, iso_error *error);

#endif
