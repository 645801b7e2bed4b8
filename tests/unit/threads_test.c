/* threads: every unit once, in ranges of a grain, for any thread count; the floating-point mode
 * inside a worker and after it. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/fpmode.h"
#include "core/os.h"
#include "core/threads.h"

#include <fenv.h>

enum { UNITS_MAX = 3000 };

typedef struct probe_args {
    uint64_t grain;
} probe_args;

static void count_units(const void *args, const iso_tensors *tensors, iso_range units)
{
    const probe_args *a = args;
    uint32_t *seen = tensors->at[0];

    if (units.end - units.begin > a->grain || units.begin % a->grain != 0
        || units.begin >= units.end || iso_fpmode_now() != iso_fpmode_wanted())
        iso_flags_raise(tensors->flags, ISO_FLAG_INDEX);
    for (uint64_t i = units.begin; i < units.end; i++) {
        seen[i]++;
        if (i == 1234)
            iso_flags_raise(tensors->flags, ISO_FLAG_RANGE);
    }
}

static void threads_cover_every_unit_once(void **state)
{
    static const uint64_t units[] = {0, 1, 2, 63, 64, 65, 1000, UNITS_MAX};
    static const uint64_t grains[] = {1, 7, 64, 5000};
    static uint32_t seen[UNITS_MAX];

    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++)
        for (size_t u = 0; u < ISO_COUNT_OF(units); u++)
            for (size_t g = 0; g < ISO_COUNT_OF(grains); g++) {
                const probe_args args = {grains[g]};
                void *at[1] = {seen};
                uint32_t flags = 0;
                const iso_tensors tensors = {at, NULL, &flags};

                memset(seen, 0, sizeof seen);
                iso_threads_run(threads, units[u], grains[g], count_units, &args, &tensors);
                for (uint64_t i = 0; i < UNITS_MAX; i++)
                    assert_int_equal(seen[i], i < units[u]);
                assert_int_equal(flags, units[u] > 1234 ? ISO_FLAG_RANGE : 0);
            }
}

static void threads_restore_the_mode(void **state)
{
    static uint32_t seen[UNITS_MAX];
    const probe_args args = {1};
    void *at[1] = {seen};
    uint32_t flags = 0;
    const iso_tensors tensors = {at, NULL, &flags};

    (void)state;
    assert_int_equal(fesetround(FE_UPWARD), 0);              /* as a foreign library might */
    for (uint32_t threads = 1; threads <= 3; threads++) {
        iso_threads_run(threads, 100, 1, count_units, &args, &tensors);
        assert_int_equal(fegetround(), FE_UPWARD);
    }
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_int_equal(flags, 0);
}

static void threads_allocate_nothing(void **state)
{
    static uint32_t seen[UNITS_MAX];
    const probe_args args = {10};
    void *at[1] = {seen};
    uint32_t flags = 0;
    const iso_tensors tensors = {at, NULL, &flags};

    (void)state;
    iso_alloc_seal();
    iso_threads_run(4, 1000, 10, count_units, &args, &tensors);
    iso_alloc_unseal();
    assert_true(iso_threads_available() >= 1);
}

typedef struct team_work {
    iso_team *team;
    uint32_t seen[UNITS_MAX];
    uint32_t flags;
} team_work;

/* Thousands of jobs, most of them so short that helpers come too late. */
static void run_jobs(void *context)
{
    team_work *w = context;
    void *at[1] = {w->seen};
    const iso_tensors tensors = {at, NULL, &w->flags};

    for (uint32_t i = 0; i < 3000; i++) {
        const probe_args args = {1 + i % 7};

        iso_team_run(w->team, i % 200, args.grain, count_units, &args, &tensors);
    }
}

static void team_covers_every_unit_once(void **state)
{
    static team_work w;

    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        w.team = iso_team_create(threads);
        assert_non_null(w.team);
        iso_alloc_seal();
        for (uint32_t round = 0; round < 4; round++) {
            memset(w.seen, 0, sizeof w.seen);
            iso_team_enter(w.team, round % 4 != 3, run_jobs, &w);
            for (uint32_t i = 0; i < UNITS_MAX; i++)     /* jobs of more than i units */
                assert_int_equal(w.seen[i], i < 199 ? (199 - i) * 15 : 0);
        }
        iso_alloc_unseal();
        assert_int_equal(w.flags, 0);
        iso_team_destroy(&w.team);
        assert_null(w.team);
    }
    iso_team_destroy(&w.team);
}

static void sleep_through(void *context)
{
    team_work *w = context;
    const uint64_t begin = iso_os_clock_ns();

    while (iso_os_clock_ns() - begin < 5000000)          /* helpers fall asleep */
        ;
    run_jobs(w);
}

static void team_wakes_sleepers(void **state)
{
    static team_work w;

    (void)state;
    w.team = iso_team_create(3);
    assert_non_null(w.team);
    iso_team_enter(w.team, true, sleep_through, &w);
    assert_int_equal(w.seen[0], 199 * 15);
    assert_int_equal(w.flags, 0);
    iso_team_destroy(&w.team);
}

static void os_answers(void **state)
{
    const uint64_t before = iso_os_clock_ns();

    (void)state;
    assert_true(iso_os_clock_ns() >= before);
    assert_true(iso_os_page_bytes() >= 4096);
    assert_true(iso_os_cpu_count() >= 1);
    assert_true(iso_os_peak_rss() > 100000);
    assert_true(iso_os_memory_bytes() >= iso_os_memory_free());
}

static void os_maps_files(void **state)
{
    char path[] = "/tmp/isobit_test_XXXXXX";
    const void *data = NULL;
    uint64_t bytes = 99;
    iso_error error;
    const int fd = mkstemp(path);
    FILE *file = fdopen(fd, "wb");

    (void)state;
    assert_non_null(file);
    assert_ok(iso_os_map_file(path, &data, &bytes, &error), error);
    assert_null(data);
    assert_int_equal(bytes, 0);
    iso_os_unmap(data, bytes);
    assert_int_equal(fwrite("hello", 1, 5, file), 5);
    assert_int_equal(fclose(file), 0);
    assert_ok(iso_os_map_file(path, &data, &bytes, &error), error);
    assert_int_equal(bytes, 5);
    assert_int_equal(remove(path), 0);
    assert_memory_equal(data, "hello", 5);
    iso_os_unmap(data, bytes);
    assert_fails(iso_os_map_file(path, &data, &bytes, &error), ISO_NOT_FOUND, error, path);
    assert_fails(iso_os_map_file("/tmp", &data, &bytes, &error), ISO_BAD_FILE, error,
                 "a directory");
    assert_fails(iso_os_map_file("/dev/null", &data, &bytes, &error), ISO_BAD_FILE, error,
                 "not a file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_cover_every_unit_once),
        cmocka_unit_test(threads_restore_the_mode),
        cmocka_unit_test(threads_allocate_nothing),
        cmocka_unit_test(team_covers_every_unit_once),
        cmocka_unit_test(team_wakes_sleepers),
        cmocka_unit_test(os_answers),
        cmocka_unit_test(os_maps_files),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
