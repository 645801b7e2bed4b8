/* bench_loops: what kernels are set against: loops that do nothing but read memory or multiply and
 * add, and a product whose sums have a free order. Plain C with vectors of the compiler, built once
 * per instruction set. No kernel and no part of the library uses them. */
#ifndef ISO_APPS_BENCH_LOOPS_H
#define ISO_APPS_BENCH_LOOPS_H

#include "core/op.h"

enum { BENCH_READ_LINE = 512, BENCH_FREE_FORMS = 3, BENCH_FREE_K_MAX = 8192 };

/* A sum of `bytes` bytes (a multiple of BENCH_READ_LINE) at a multiple of 64. */
typedef uint64_t bench_read_fn(const void *data, size_t bytes);
/* Multiply-adds without memory; returns operations done (an add and a multiply count 2). */
typedef double bench_multiply_fn(uint32_t rounds, float *result);

typedef struct bench_free_args { uint32_t k, n; } bench_free_args;

typedef struct bench_loops {
    const char *isa;                     /* row of isa.def */
    bench_read_fn *read[2];              /* as the processor fetches; with prefetches */
    bench_multiply_fn *multiply;
    /* y [N] bf16 = W x: tensors x [K] bf16, W [N, K] bf16 in layout ROWS32, y; a unit is 32
     * features; K is even. Form i sums with 2, 4, 8 independent accumulators per feature. */
    iso_kernel_fn *free_order[BENCH_FREE_FORMS];
} bench_loops;

/* bench_loops_<set>.c */
extern const bench_loops bench_loops_base, bench_loops_avx2, bench_loops_avx512;

/* Those that this processor runs, weakest first; NULL past the last. */
const bench_loops *bench_loops_at(uint32_t index);

#endif
