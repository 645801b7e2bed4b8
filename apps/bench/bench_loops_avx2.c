#include "backends/cpu/simd.h"

#define BENCH_LOOPS bench_loops_avx2
#define BENCH_ISA "avx2"
#define BENCH_WIDTH 32
#define BENCH_ADD(sum, a, b) ((floats)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(sum)))
#define BENCH_FETCH(address) _mm_prefetch((const char *)(address), _MM_HINT_T0)
#include "apps/bench/bench_loops_body.h"
