#include "backends/cpu/simd.h"

#define BENCH_LOOPS bench_loops_avx512
#define BENCH_ISA "avx512"
#define BENCH_WIDTH 64
#define BENCH_ADD(sum, a, b) ((floats)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum)))
#define BENCH_FETCH(address) _mm_prefetch((const char *)(address), _MM_HINT_T0)
#include "apps/bench/bench_loops_body.h"
