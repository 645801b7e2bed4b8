/* threads: the only door to OpenMP. Work is cut on grains that depend on shape only, so no result
 * depends on the number of threads.
 *
 * Every thread that runs a kernel does so with round-to-nearest, no flush modes and masked
 * exceptions (numerics 20.2) and gets its own mode back afterwards. */
#ifndef ISO_CORE_THREADS_H
#define ISO_CORE_THREADS_H

#include "core/op.h"

/* Cores this process may run on. */
uint32_t iso_threads_available(void);

/* Calls kernel(args, tensors, range) for consecutive ranges of at most `grain` units that cover
 * [0, units), on up to thread_count threads. */
void iso_threads_run(uint32_t thread_count, uint64_t units, uint64_t grain, iso_kernel_fn *kernel,
                     const void *args, const iso_tensors *tensors);

/* A team stands by while its owner runs many short jobs one after the other. The owner waits for
 * pieces that somebody works on, never for a helper that has not begun: on a machine shared with
 * other programs a helper may not run for milliseconds. One owner at a time. */
typedef struct iso_team iso_team;
iso_team *iso_team_create(uint32_t thread_count);        /* NULL: no memory */
void iso_team_destroy(iso_team **team);
/* Calls body(context) in this thread, with the helpers standing by until it returns, or without
 * them. */
void iso_team_enter(iso_team *team, bool with_helpers, void (*body)(void *context),
                    void *context);
/* As iso_threads_run, by the owner and the helpers; inside body only. Allocates nothing. */
void iso_team_run(iso_team *team, uint64_t units, uint64_t grain, iso_kernel_fn *kernel,
                  const void *args, const iso_tensors *tensors);

#endif
