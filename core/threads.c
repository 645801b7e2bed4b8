#include "core/threads.h"

#include "core/fpmode.h"
#include "core/os.h"

#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct job {
    iso_kernel_fn *kernel;
    const void *args;
    const iso_tensors *tensors;
    uint64_t units, grain;
} job;

uint32_t iso_threads_available(void) { return iso_os_cpu_count(); }

static void run_piece(const job *work, uint64_t piece)
{
    const uint64_t begin = piece * work->grain;
    const uint64_t left = work->units - begin;

    work->kernel(work->args, work->tensors,
                 (iso_range){begin, begin + (left < work->grain ? left : work->grain)});
}

static void run_here(const job *work, uint64_t pieces)
{
    const uint64_t mode = iso_fpmode_enter();

    for (uint64_t piece = 0; piece < pieces; piece++)
        run_piece(work, piece);
    iso_fpmode_leave(mode);
}

#ifdef _OPENMP
static void run_parallel(const job *work, uint64_t pieces, uint32_t workers)
{
#pragma omp parallel num_threads(workers)
    {
        const uint64_t mode = iso_fpmode_enter();

#pragma omp for schedule(dynamic, 1)
        for (uint64_t piece = 0; piece < pieces; piece++)
            run_piece(work, piece);
        iso_fpmode_leave(mode);
    }
}
#else
static void run_parallel(const job *work, uint64_t pieces, uint32_t workers)
{
    (void)workers;
    run_here(work, pieces);
}
#endif

void iso_threads_run(uint32_t thread_count, uint64_t units, uint64_t grain, iso_kernel_fn *kernel,
                     const void *args, const iso_tensors *tensors)
{
    const job work = {kernel, args, tensors, units, grain};
    uint64_t pieces;

    ISO_ASSERT(grain != 0);
    pieces = units / grain + (units % grain != 0);
    if (pieces > thread_count && thread_count > 1)
        run_parallel(&work, pieces, thread_count);
    else if (pieces > 1 && thread_count > 1)
        run_parallel(&work, pieces, (uint32_t)pieces);
    else
        run_here(&work, pieces);
}
