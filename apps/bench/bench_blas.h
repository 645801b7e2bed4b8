/* bench_blas: the door to OpenBLAS, opened at run time where the library is there: what a free
 * order of sums and f32 weights reach on the same cores. Nothing but bench uses it. */
#ifndef ISO_APPS_BENCH_BLAS_H
#define ISO_APPS_BENCH_BLAS_H

#include "core/status.h"

typedef struct bench_sgemm {
    uint32_t m, n, k;
    const float *a, *b;                  /* [m, k], [n, k] */
    float *c;                            /* [m, n] = a b^T */
} bench_sgemm;

/* ISO_NO_DEVICE: no OpenBLAS here. `isa`: its kernels are those of that row of isa.def where it has
 * such ("avx2"); NULL: its own choice. The first call decides for the process. */
iso_status bench_blas_open(const char *isa, iso_error *error);
const char *bench_blas_name(void);       /* "OpenBLAS 0.3.21 SkylakeX"; after open */
void bench_blas_run(uint32_t threads, const bench_sgemm *call);

#endif
