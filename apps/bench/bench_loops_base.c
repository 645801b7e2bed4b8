#define BENCH_LOOPS bench_loops_base
#define BENCH_ISA "portable"
#define BENCH_WIDTH 16
#define BENCH_ADD(sum, a, b) ((sum) + (a) * (b))
#define BENCH_FETCH(address) ((void)(address))
#include "apps/bench/bench_loops_body.h"
