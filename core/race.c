#include "core/race.h"

#include "core/array.h"

#include <string.h>

typedef struct vector_clock {
    uint32_t at[ISO_RACE_STREAMS_MAX];
} vector_clock;

/* Bytes with one history: the last write, and the last read of each stream since. */
typedef struct segment {
    uint32_t buffer;
    uint64_t begin, end;
    uint32_t value, epoch;
    bool is_kept;
    uint32_t write_stream, write_clock;      /* clock 0: never written */
    uint32_t writer;                         /* step index */
    vector_clock reads;
} segment;

typedef struct signal {
    uint32_t event;
    uint64_t value;
    vector_clock clock;
} signal;

typedef struct checker {
    const iso_race_step *steps;
    uint32_t epoch;
    vector_clock now[ISO_RACE_STREAMS_MAX];
    segment *segments;                       /* by buffer, then begin; disjoint */
    uint32_t segment_count, segment_capacity;
    signal *signals;
    uint32_t signal_count, signal_capacity;
} checker;

static void join(vector_clock *into, const vector_clock *from)
{
    for (uint32_t s = 0; s < ISO_RACE_STREAMS_MAX; s++)
        if (from->at[s] > into->at[s])
            into->at[s] = from->at[s];
}

/* First segment that ends behind `begin` of `buffer`. */
static uint32_t lower_bound(const checker *c, uint32_t buffer, uint64_t begin)
{
    uint32_t low = 0, high = c->segment_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const segment *s = &c->segments[middle];

        if (s->buffer < buffer || (s->buffer == buffer && s->end <= begin))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(checker *c, uint32_t at, const segment *made)
{
    if (!iso_array_reserve(&c->segments, &c->segment_capacity, c->segment_count, 1, sizeof *made,
                           "race check"))
        return false;
    memmove(&c->segments[at + 1], &c->segments[at], (c->segment_count - at) * sizeof *made);
    c->segments[at] = *made;
    c->segment_count++;
    return true;
}

/* Cuts segments at the borders of the access and fills its holes, so that it covers whole
 * segments; returns the first of them in *first. */
static bool cover(checker *c, const iso_race_step *step, uint32_t *first)
{
    uint64_t at = step->begin;
    uint32_t i = lower_bound(c, step->buffer, step->begin);

    *first = i;
    while (at < step->end) {
        segment made = {.buffer = step->buffer, .begin = at, .end = step->end};
        const bool is_there = i < c->segment_count && c->segments[i].buffer == step->buffer;

        if (is_there && c->segments[i].begin < at) {           /* cut in front */
            made = c->segments[i];
            made.end = at;
            c->segments[i].begin = at;
            if (!insert(c, i, &made))
                return false;
            *first = ++i;
        } else if (is_there && c->segments[i].begin == at) {
            if (c->segments[i].end > step->end) {              /* cut behind */
                made = c->segments[i];
                made.end = step->end;
                c->segments[i].begin = step->end;
                if (!insert(c, i, &made))
                    return false;
            }
            at = c->segments[i++].end;
        } else {                                               /* a hole: never written */
            if (is_there && c->segments[i].begin < step->end)
                made.end = c->segments[i].begin;
            if (!insert(c, i, &made))
                return false;
            at = c->segments[i++].end;
        }
    }
    return true;
}

static iso_status check_read(const checker *c, const iso_race_step *step, const segment *s,
                             iso_error *error)
{
    const bool is_same = s->write_clock != 0 && s->value == step->value
                      && (step->is_kept || s->epoch == c->epoch);

    if (s->write_clock == 0 && step->is_kept)
        return ISO_OK;
    if (s->write_clock == 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "race: %s reads bytes %llu.. nobody has written",
                        step->name, (unsigned long long)s->begin);
    if (!is_same)
        return iso_fail(error, ISO_BAD_ARGUMENT,
                        "race: %s reads bytes %llu.. that %s has overwritten", step->name,
                        (unsigned long long)s->begin, c->steps[s->writer].name);
    if (c->now[step->stream].at[s->write_stream] < s->write_clock)
        return iso_fail(error, ISO_BAD_ARGUMENT, "race: %s reads what %s may still be writing",
                        step->name, c->steps[s->writer].name);
    return ISO_OK;
}

static iso_status check_write(const checker *c, const iso_race_step *step, const segment *s,
                              iso_error *error)
{
    const vector_clock *now = &c->now[step->stream];

    if (s->write_clock != 0 && now->at[s->write_stream] < s->write_clock)
        return iso_fail(error, ISO_BAD_ARGUMENT, "race: %s writes what %s may still be writing",
                        step->name, c->steps[s->writer].name);
    for (uint32_t r = 0; r < ISO_RACE_STREAMS_MAX; r++)
        if (now->at[r] < s->reads.at[r])
            return iso_fail(error, ISO_BAD_ARGUMENT,
                            "race: %s writes bytes %llu.. that stream %u may still be reading",
                            step->name, (unsigned long long)s->begin, r);
    return ISO_OK;
}

static iso_status walk_access(checker *c, uint32_t index, iso_error *error)
{
    const iso_race_step *step = &c->steps[index];
    const uint32_t clock = c->now[step->stream].at[step->stream];
    uint32_t first;

    if (step->begin == step->end)
        return ISO_OK;
    if (!cover(c, step, &first))
        return iso_fail(error, ISO_NO_MEMORY, "race: out of memory");
    for (uint32_t i = first; i < c->segment_count && c->segments[i].buffer == step->buffer
                             && c->segments[i].begin < step->end; i++) {
        segment *s = &c->segments[i];

        if (!step->is_write) {
            ISO_TRY(check_read(c, step, s, error));
            s->reads.at[step->stream] = clock;
            continue;
        }
        ISO_TRY(check_write(c, step, s, error));
        s->value = step->value;
        s->epoch = c->epoch;
        s->write_stream = step->stream;
        s->write_clock = clock;
        s->writer = index;
        memset(&s->reads, 0, sizeof s->reads);
    }
    return ISO_OK;
}

/* Neighbours with the same history are one segment again: a whole write leaves one. */
static void merge(checker *c, const iso_race_step *step)
{
    uint32_t i = lower_bound(c, step->buffer, step->begin), kept = i;

    for (i++; i < c->segment_count && c->segments[i].buffer == step->buffer
              && c->segments[i].begin < step->end; i++)
        c->segments[kept].end = c->segments[i].end;
    if (i > kept + 1) {
        memmove(&c->segments[kept + 1], &c->segments[i],
                (c->segment_count - i) * sizeof *c->segments);
        c->segment_count -= i - kept - 1;
    }
}

/* e >= v holds at the latest when the smallest signalled value >= v is there. */
static iso_status walk_wait(checker *c, const iso_race_step *step, uint64_t value,
                            iso_error *error)
{
    const signal *found = NULL;

    for (uint32_t i = 0; i < c->signal_count; i++) {
        const signal *s = &c->signals[i];

        if (s->event == step->event && s->value >= value
            && (found == NULL || s->value < found->value))
            found = s;
    }
    if (found == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT,
                        "race: %s waits for event %u = %llu, which nothing before signals",
                        step->name, step->event, (unsigned long long)value);
    join(&c->now[step->stream], &found->clock);
    return ISO_OK;
}

static iso_status walk_signal(checker *c, const iso_race_step *step, uint64_t value,
                              iso_error *error)
{
    for (uint32_t i = 0; i < c->signal_count; i++)
        if (c->signals[i].event == step->event && c->signals[i].value >= value)
            return iso_fail(error, ISO_BAD_ARGUMENT,
                            "race: %s sets event %u to %llu, it was %llu before", step->name,
                            step->event, (unsigned long long)value,
                            (unsigned long long)c->signals[i].value);
    if (!iso_array_reserve(&c->signals, &c->signal_capacity, c->signal_count, 1,
                           sizeof *c->signals, "race check"))
        return iso_fail(error, ISO_NO_MEMORY, "race: out of memory");
    c->signals[c->signal_count++] = (signal){step->event, value, c->now[step->stream]};
    return ISO_OK;
}

static iso_status walk(checker *c, uint32_t index, uint64_t epoch_value, iso_error *error)
{
    const iso_race_step *step = &c->steps[index];

    ISO_ASSERT(step->stream < ISO_RACE_STREAMS_MAX);
    /* The host submits in list order, so whatever it knows is known to later submissions. */
    if (step->stream != ISO_RACE_HOST)
        join(&c->now[step->stream], &c->now[ISO_RACE_HOST]);
    c->now[step->stream].at[step->stream]++;
    switch (step->kind) {
    case ISO_RACE_WAIT:
        return walk_wait(c, step, step->event_value + epoch_value, error);
    case ISO_RACE_SIGNAL:
        return walk_signal(c, step, step->event_value + epoch_value, error);
    default:
        ISO_TRY(walk_access(c, index, error));
        if (step->is_write && step->begin != step->end)
            merge(c, step);
        return ISO_OK;
    }
}

iso_status iso_race_check(const iso_race_step *steps, uint32_t count, uint64_t event_stride,
                          iso_error *error)
{
    checker c = {.steps = steps};
    iso_status status = ISO_OK;

    for (; c.epoch < 2 && status == ISO_OK; c.epoch++)
        for (uint32_t i = 0; i < count && status == ISO_OK; i++)
            status = walk(&c, i, c.epoch * event_stride, error);
    iso_array_free(&c.segments, &c.segment_capacity, sizeof *c.segments);
    iso_array_free(&c.signals, &c.signal_capacity, sizeof *c.signals);
    return status;
}
