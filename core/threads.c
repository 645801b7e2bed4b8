#include "core/threads.h"

#include "core/alloc.h"
#include "core/fpmode.h"
#include "core/os.h"

#include <stdatomic.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* A helper that finds no job looks for about 50 us, which is longer than the owner needs between
 * two steps, and then sleeps. The owner waits for pieces that are being worked on: as long, before
 * it offers the processor to whoever keeps the helper from running. */
enum { LOOKS = 64, YIELDS = 100, OWNER_LOOKS = 1 << 16 };

typedef struct job {
    iso_kernel_fn *kernel;
    const void *args;
    const iso_tensors *tensors;
    uint64_t units, grain, pieces;
} job;

struct iso_team {
    uint32_t thread_count;
    bool is_open;                /* the owner is inside enter, with helpers */
    iso_os_monitor *monitor;
    /* The owner writes `work` while nobody can read it: it is closed and no helper is inside. */
    job work;
    atomic_bool is_job_open, is_over;
    atomic_uint generation;      /* of jobs; a change is what helpers look for */
    atomic_uint inside;          /* helpers that may read `work` */
    atomic_uint sleepers;
    atomic_uint_least64_t next;  /* piece */
};

uint32_t iso_threads_available(void) { return iso_os_cpu_count(); }

static job job_of(uint64_t units, uint64_t grain, iso_kernel_fn *kernel, const void *args,
                  const iso_tensors *tensors)
{
    ISO_ASSERT(grain != 0);
    return (job){kernel, args, tensors, units, grain, units / grain + (units % grain != 0)};
}

static void run_piece(const job *work, uint64_t piece)
{
    const uint64_t begin = piece * work->grain;
    const uint64_t left = work->units - begin;

    work->kernel(work->args, work->tensors,
                 (iso_range){begin, begin + (left < work->grain ? left : work->grain)});
}

static void run_all(const job *work)
{
    for (uint64_t piece = 0; piece < work->pieces; piece++)
        run_piece(work, piece);
}

/* ---- one job ---- */

#ifdef _OPENMP
static void run_parallel(const job *work, uint32_t workers)
{
#pragma omp parallel num_threads(workers)
    {
        const uint64_t mode = iso_fpmode_enter();

#pragma omp for schedule(dynamic, 1)
        for (uint64_t piece = 0; piece < work->pieces; piece++)
            run_piece(work, piece);
        iso_fpmode_leave(mode);
    }
}
#else
static void run_parallel(const job *work, uint32_t workers)
{
    const uint64_t mode = iso_fpmode_enter();

    (void)workers;
    run_all(work);
    iso_fpmode_leave(mode);
}
#endif

void iso_threads_run(uint32_t thread_count, uint64_t units, uint64_t grain, iso_kernel_fn *kernel,
                     const void *args, const iso_tensors *tensors)
{
    const job work = job_of(units, grain, kernel, args, tensors);
    const uint64_t mode = iso_fpmode_enter();

    if (work.pieces > 1 && thread_count > 1)
        run_parallel(&work, work.pieces < thread_count ? (uint32_t)work.pieces : thread_count);
    else
        run_all(&work);
    iso_fpmode_leave(mode);
}

/* ---- a team ---- */

iso_team *iso_team_create(uint32_t thread_count)
{
    iso_team *team = iso_alloc_zero(1, sizeof *team, "team");

    if (team == NULL)
        return NULL;
    team->thread_count = thread_count;
    team->monitor = iso_os_monitor_create();
    if (team->monitor == NULL)
        iso_team_destroy(&team);
    return team;
}

void iso_team_destroy(iso_team **team)
{
    if (team == NULL || *team == NULL)
        return;
    iso_os_monitor_destroy((*team)->monitor);
    iso_release(*team, sizeof **team);
    *team = NULL;
}

static void run_pieces(iso_team *team)
{
    for (;;) {
        const uint64_t piece = atomic_fetch_add(&team->next, 1);

        if (piece >= team->work.pieces)
            return;
        run_piece(&team->work, piece);
    }
}

/* All accesses are sequentially consistent: either a helper sees that the job is closed, or the
 * owner, who closes it and then looks at `inside`, sees the helper. */
void iso_team_run(iso_team *team, uint64_t units, uint64_t grain, iso_kernel_fn *kernel,
                  const void *args, const iso_tensors *tensors)
{
    const job work = job_of(units, grain, kernel, args, tensors);
    uint32_t looks = 0;

    if (work.pieces <= 1 || !team->is_open) {
        run_all(&work);
        return;
    }
    team->work = work;
    atomic_store(&team->next, 0);
    atomic_store(&team->is_job_open, true);
    atomic_fetch_add(&team->generation, 1);
    if (atomic_load(&team->sleepers) != 0) {
        iso_os_monitor_lock(team->monitor);
        iso_os_monitor_wake_all(team->monitor);
        iso_os_monitor_unlock(team->monitor);
    }
    run_pieces(team);
    atomic_store(&team->is_job_open, false);
    while (atomic_load(&team->inside) != 0)
        if (++looks % OWNER_LOOKS == 0)
            iso_os_yield();
}

#ifdef _OPENMP
static void sleep_until_news(iso_team *team, unsigned seen)
{
    iso_os_monitor_lock(team->monitor);
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->generation) == seen && !atomic_load(&team->is_over))
        (void)iso_os_monitor_wait(team->monitor, UINT64_MAX);
    atomic_fetch_sub(&team->sleepers, 1);
    iso_os_monitor_unlock(team->monitor);
}

static void help(iso_team *team, unsigned seen)
{
    uint32_t looks = 0;

    while (!atomic_load(&team->is_over)) {
        const unsigned generation = atomic_load(&team->generation);

        if (generation != seen) {
            seen = generation;
            looks = 0;
            atomic_fetch_add(&team->inside, 1);
            if (atomic_load(&team->is_job_open))
                run_pieces(team);
            atomic_fetch_sub(&team->inside, 1);
        } else if (++looks >= LOOKS * YIELDS) {
            sleep_until_news(team, seen);
            looks = 0;
        } else if (looks % LOOKS == 0) {
            iso_os_yield();
        }
    }
}

static void dismiss(iso_team *team)
{
    iso_os_monitor_lock(team->monitor);
    atomic_store(&team->is_over, true);
    iso_os_monitor_wake_all(team->monitor);
    iso_os_monitor_unlock(team->monitor);
    team->is_open = false;
}

static void enter_parallel(iso_team *team, void (*body)(void *context), void *context)
{
    const unsigned seen = atomic_load(&team->generation);

    atomic_store(&team->is_over, false);
    team->is_open = true;
#pragma omp parallel num_threads(team->thread_count)
    {
        const uint64_t mode = iso_fpmode_enter();

        if (omp_get_thread_num() == 0) {
            body(context);
            dismiss(team);
        } else {
            help(team, seen);
        }
        iso_fpmode_leave(mode);
    }
}
#else
static void enter_parallel(iso_team *team, void (*body)(void *context), void *context)
{
    (void)team;
    body(context);
}
#endif

void iso_team_enter(iso_team *team, bool with_helpers, void (*body)(void *context),
                    void *context)
{
    const uint64_t mode = iso_fpmode_enter();

    if (with_helpers && team->thread_count > 1)
        enter_parallel(team, body, context);
    else
        body(context);
    iso_fpmode_leave(mode);
}
