/* bench: times single operators on the CPU backend at real V4.1 shapes. Every figure is printed
 * beside a bandwidth measured in the same run; nothing here asserts a time. */
#ifndef ISO_APPS_BENCH_H
#define ISO_APPS_BENCH_H

#include "core/backend.h"
#include "ggml-style-ops/cases.h"

/* One operator at one shape. `weight` is the input whose copies are cycled, so that caches do not
 * help; its bytes are the bytes a run must read from memory. */
typedef struct bench_case {
    const char *name;
    iso_op_call call;
    int32_t weight, weight_scale;        /* input indices; -1: none */
    uint32_t index_inputs;               /* bit i: input i holds ids, filled with 0, 1, 2, ... */
    double operations;                   /* multiply-adds x 2 of one run; 0: not counted */
    const iso_case *source;              /* makes the inputs; NULL: plausible bytes */
} bench_case;

typedef struct bench_result {
    const char *name, *kernel, *layout;  /* layout of the weights; "-": the operator has none */
    double seconds;                      /* median */
    double gigabytes, gigaflops;         /* per second */
    uint64_t bytes;
    uint32_t runs;
} bench_result;

typedef struct bench_options {
    uint32_t thread_count, runs;
    uint64_t cycle_bytes;
    double seconds_max;                  /* per case */
    bool reference_only;
    const char *isa;
    const char *layout;                  /* of weights: "plain", "rows32"; "auto": the better */
} bench_options;

size_t bench_case_count(void);
iso_status bench_case_at(size_t index, bench_case *out, iso_error *error);

/* Runs a case and fills result; name stays the case's. ISO_UNSUPPORTED: the device has no kernel
 * for the case in the layout asked for. */
iso_status bench_run(const bench_options *options, const bench_case *test, bench_result *result,
                     iso_error *error);

/* Bytes per second of reading memory with all threads, and of one thread's copy; medians. */
double bench_read_bandwidth(const bench_options *options);

#endif
