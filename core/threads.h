/* threads: the only door to OpenMP. Work is cut on grains that depend on shape only, so no result
 * depends on the number of threads. */
#ifndef ISO_CORE_THREADS_H
#define ISO_CORE_THREADS_H

#include "core/op.h"

/* Cores this process may run on. */
uint32_t iso_threads_available(void);

/* Calls kernel(args, tensors, range) for consecutive ranges of at most `grain` units that cover
 * [0, units), on up to thread_count threads. Each worker runs with round-to-nearest, no flush
 * modes and masked exceptions (numerics 20.2) and restores the caller's mode afterwards. */
void iso_threads_run(uint32_t thread_count, uint64_t units, uint64_t grain, iso_kernel_fn *kernel,
                     const void *args, const iso_tensors *tensors);

#endif
