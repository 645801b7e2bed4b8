/* race: planted mistakes of memory and order must be found, and right plans pass. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/check.h"
#include "core/memplan.h"
#include "core/race.h"

static iso_error error;

static iso_race_step access_of(uint32_t stream, const char *name, uint32_t value, uint64_t begin,
                               uint64_t end, bool is_write)
{
    return (iso_race_step){.kind = ISO_RACE_ACCESS, .stream = stream, .name = name,
                           .value = value, .begin = begin, .end = end, .is_write = is_write};
}

static iso_race_step event_of(iso_race_kind kind, uint32_t stream, uint32_t event, uint64_t value)
{
    return (iso_race_step){.kind = kind, .stream = stream, .name = "event", .event = event,
                           .event_value = value};
}

static void race_accepts_reuse_after_last_read(void **state)
{
    const iso_race_step steps[] = {
        access_of(1, "a", 1, 0, 64, true),   access_of(1, "b", 1, 0, 64, false),
        access_of(1, "b", 2, 64, 128, true), access_of(1, "c", 2, 64, 128, false),
        access_of(1, "c", 3, 0, 32, true),   access_of(1, "d", 3, 0, 32, false),
    };

    (void)state;
    assert_ok(iso_race_check(steps, ISO_COUNT_OF(steps), 1, &error), error);
}

static void race_finds_overwritten_value(void **state)
{
    const iso_race_step steps[] = {
        access_of(1, "a", 1, 0, 64, true),
        access_of(1, "b", 2, 32, 96, true),            /* over the second half of value 1 */
        access_of(1, "c", 1, 0, 64, false),
    };

    (void)state;
    assert_fails(iso_race_check(steps, ISO_COUNT_OF(steps), 1, &error), ISO_BAD_ARGUMENT, error,
                 "c reads bytes 32.. that b has overwritten");
}

static void race_finds_unwritten_and_stale(void **state)
{
    const iso_race_step unwritten[] = {
        access_of(1, "a", 1, 0, 32, true),
        access_of(1, "b", 1, 0, 64, false),
    };
    /* Without is_kept a value of the last epoch does not count. */
    const iso_race_step stale[] = {
        access_of(1, "x", 8, 0, 64, false),
        access_of(1, "y", 8, 0, 64, true),
    };

    (void)state;
    assert_fails(iso_race_check(unwritten, 2, 1, &error), ISO_BAD_ARGUMENT, error,
                 "b reads bytes 32.. nobody has written");
    assert_fails(iso_race_check(stale, 2, 1, &error), ISO_BAD_ARGUMENT, error, "x reads");
}

static void race_keeps_state_across_epochs(void **state)
{
    iso_race_step steps[] = {
        access_of(1, "read", 4, 0, 64, false),
        access_of(1, "update", 4, 0, 64, true),
    };

    (void)state;
    assert_fails(iso_race_check(steps, 2, 1, &error), ISO_BAD_ARGUMENT, error, "read reads");
    steps[0].is_kept = steps[1].is_kept = true;
    assert_ok(iso_race_check(steps, 2, 1, &error), error);
}

static void race_needs_events_between_streams(void **state)
{
    const iso_race_step bare[] = {
        access_of(1, "w", 1, 0, 64, true),
        access_of(2, "r", 1, 0, 64, false),
    };
    const iso_race_step half[] = {                     /* ordered forward, but not back */
        access_of(1, "w", 1, 0, 64, true),
        event_of(ISO_RACE_SIGNAL, 1, 0, 1),
        event_of(ISO_RACE_WAIT, 2, 0, 1),
        access_of(2, "r", 1, 0, 64, false),
    };
    const iso_race_step whole[] = {
        access_of(1, "w", 1, 0, 64, true),
        event_of(ISO_RACE_SIGNAL, 1, 0, 1),
        event_of(ISO_RACE_WAIT, 2, 0, 1),
        access_of(2, "r", 1, 0, 64, false),
        event_of(ISO_RACE_SIGNAL, 2, 1, 1),
        event_of(ISO_RACE_WAIT, ISO_RACE_HOST, 1, 1),
    };

    (void)state;
    assert_fails(iso_race_check(bare, 2, 1, &error), ISO_BAD_ARGUMENT, error,
                 "r reads what w may still be writing");
    assert_fails(iso_race_check(half, 4, 1, &error), ISO_BAD_ARGUMENT, error,
                 "w writes bytes 0.. that stream 2 may still be reading");
    assert_ok(iso_race_check(whole, ISO_COUNT_OF(whole), 1, &error), error);
}

static void race_finds_bad_events(void **state)
{
    const iso_race_step early[] = {
        event_of(ISO_RACE_WAIT, 1, 0, 1),
        event_of(ISO_RACE_SIGNAL, 2, 0, 1),
    };
    const iso_race_step twice[] = {
        event_of(ISO_RACE_SIGNAL, 1, 0, 2),
        event_of(ISO_RACE_SIGNAL, 1, 0, 2),
    };
    const iso_race_step once[] = {event_of(ISO_RACE_SIGNAL, 1, 0, 2)};

    (void)state;
    assert_fails(iso_race_check(early, 2, 1, &error), ISO_BAD_ARGUMENT, error, "nothing before");
    assert_fails(iso_race_check(twice, 2, 4, &error), ISO_BAD_ARGUMENT, error, "it was 2 before");
    assert_fails(iso_race_check(once, 1, 0, &error), ISO_BAD_ARGUMENT, error, "it was 2 before");
    assert_ok(iso_race_check(once, 1, 1, &error), error);
}

/* Random graphs: the memory plan of any lifetimes passes the check, and moving one item of it onto
 * another that lives at the same time does not. */
enum { ITEMS = 60 };

static uint32_t lcg(uint32_t *seed) { return (*seed = *seed * 1664525u + 1013904223u) >> 8; }

static uint32_t list_steps(const iso_memplan_item *items, iso_race_step *steps)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < ITEMS; at++)
        for (uint32_t pass = 0; pass < 2; pass++)
            for (uint32_t i = 0; i < ITEMS; i++) {
                const bool is_write = pass == 0;

                if ((is_write ? items[i].first : items[i].last) == at)
                    steps[count++] = access_of(1, "step", i, items[i].offset,
                                               items[i].offset + items[i].bytes, is_write);
            }
    return count;
}

static bool live_together(const iso_memplan_item *a, const iso_memplan_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static void check_plan(uint32_t seed)
{
    iso_memplan_item items[ITEMS];
    iso_race_step steps[2 * ITEMS];
    uint64_t total = 0, sum = 0;
    uint32_t count;

    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t first = lcg(&seed) % ITEMS, bytes = lcg(&seed) % 1000;

        items[i] = (iso_memplan_item){bytes, first, first + lcg(&seed) % (ITEMS - first), 0};
        sum += iso_align_up(bytes, ISO_MEMPLAN_ALIGN);
    }
    assert_ok(iso_memplan_assign(items, ITEMS, &total, &error), error);
    assert_true(total <= sum);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(items[i].offset % ISO_MEMPLAN_ALIGN, 0);
        assert_true(items[i].offset + items[i].bytes <= total);
        for (uint32_t j = 0; j < i; j++)
            assert_true(!live_together(&items[i], &items[j])
                        || items[i].offset >= items[j].offset + items[j].bytes
                        || items[j].offset >= items[i].offset + items[i].bytes);
    }
    count = list_steps(items, steps);
    assert_ok(iso_race_check(steps, count, 1, &error), error);
    for (uint32_t i = 1; i < ITEMS; i++) {
        const uint64_t offset = items[i].offset;

        /* Planted: item i begins inside item 0 or wherever a common life makes that wrong. */
        if (!live_together(&items[i], &items[0]) || items[i].bytes == 0 || items[0].bytes == 0
            || items[0].first == items[0].last || items[i].first == items[0].first)
            continue;
        items[i].offset = items[0].offset;
        count = list_steps(items, steps);
        assert_int_equal(iso_race_check(steps, count, 1, &error), ISO_BAD_ARGUMENT);
        items[i].offset = offset;
    }
}

static void memplan_passes_and_planted_overlap_fails(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 50; seed++)
        check_plan(seed);
}

static void memplan_reuses_memory(void **state)
{
    iso_memplan_item chain[100];
    uint64_t total = 0;

    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        chain[i] = (iso_memplan_item){1024, i, i + 1, 0};
    assert_ok(iso_memplan_assign(chain, 100, &total, &error), error);
    assert_int_equal(total, 2048);
    chain[0].bytes = UINT64_MAX;
    assert_fails(iso_memplan_assign(chain, 100, &total, &error), ISO_LIMIT, error, "2^63");
    assert_ok(iso_memplan_assign(NULL, 0, &total, &error), error);
    assert_int_equal(total, 0);
}

static void race_survives_no_memory(void **state)
{
    const iso_race_step steps[] = {
        access_of(1, "a", 1, 0, 64, true), event_of(ISO_RACE_SIGNAL, 1, 0, 1),
        access_of(1, "b", 1, 32, 48, false),
    };
    iso_status status;
    uint64_t n = 0;

    (void)state;
    do {
        iso_alloc_fail_at(++n);
        status = iso_race_check(steps, ISO_COUNT_OF(steps), 1, &error);
        iso_alloc_fail_at(0);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
    } while (status != ISO_OK);
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(race_accepts_reuse_after_last_read),
        cmocka_unit_test(race_finds_overwritten_value),
        cmocka_unit_test(race_finds_unwritten_and_stale),
        cmocka_unit_test(race_keeps_state_across_epochs),
        cmocka_unit_test(race_needs_events_between_streams),
        cmocka_unit_test(race_finds_bad_events),
        cmocka_unit_test(memplan_passes_and_planted_overlap_fails),
        cmocka_unit_test(memplan_reuses_memory),
        cmocka_unit_test(race_survives_no_memory),
    };

    return cmocka_run_group_tests_name("race", tests, NULL, NULL);
}
