#include "apps/bench/bench_blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of cblas.h. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k,
                      float alpha, const float *a, int stride_a, const float *b, int stride_b,
                      float beta, float *c, int stride_c);
typedef void threads_fn(int count);
typedef char *text_fn(void);

static struct {
    sgemm_fn *sgemm;
    threads_fn *set_threads;
    char name[96];
} blas;

/* ISO C has no cast from an object pointer to a function pointer. */
static void find(void *library, const char *symbol, void *function)
{
    void *at = dlsym(library, symbol);

    memcpy(function, &at, sizeof at);
}

iso_status bench_blas_open(const char *isa, iso_error *error)
{
    text_fn *config = NULL, *core = NULL;
    void *library;

    if (blas.sgemm != NULL)
        return ISO_OK;
    if (isa != NULL && strcmp(isa, "avx2") == 0)
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
    library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return iso_fail(error, ISO_NO_DEVICE, "no OpenBLAS here");
    find(library, "cblas_sgemm", &blas.sgemm);
    find(library, "openblas_set_num_threads", &blas.set_threads);
    find(library, "openblas_get_config", &config);
    find(library, "openblas_get_corename", &core);
    if (blas.sgemm == NULL || blas.set_threads == NULL) {
        blas.sgemm = NULL;
        return iso_fail(error, ISO_NO_DEVICE, "libopenblas.so.0 lacks cblas_sgemm");
    }
    snprintf(blas.name, sizeof blas.name, "%.15s%s%.32s", config != NULL ? config() : "OpenBLAS",
             core != NULL ? " on " : "", core != NULL ? core() : "");
    return ISO_OK;
}

const char *bench_blas_name(void) { return blas.name; }

void bench_blas_run(uint32_t threads, const bench_sgemm *call)
{
    blas.set_threads((int)threads);
    blas.sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, (int)call->m, (int)call->n, (int)call->k, 1.0f,
               call->a, (int)call->k, call->b, (int)call->k, 0.0f, call->c, (int)call->n);
}
