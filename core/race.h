/* race: proves that a plan reads what it means to read. A plan is given as the list of its steps in
 * the order of submission; the check walks it for two consecutive epochs and fails on
 *   - a read of bytes whose last writer wrote another value (a wrong memory plan), or nobody did;
 *   - a conflicting pair of accesses without a happens-before edge (vector clocks over streams,
 *     WAIT and SIGNAL; submission orders the host before what it submits);
 *   - a WAIT that no earlier SIGNAL can satisfy, or an event that does not grow. */
#ifndef ISO_CORE_RACE_H
#define ISO_CORE_RACE_H

#include "core/status.h"

/* Stream 0 is the host: its WAIT is an event_wait, and what is submitted later in the list, or in
 * the next epoch, comes after it. */
enum { ISO_RACE_HOST = 0, ISO_RACE_STREAMS_MAX = 8 };

typedef enum iso_race_kind { ISO_RACE_ACCESS, ISO_RACE_WAIT, ISO_RACE_SIGNAL } iso_race_kind;

typedef struct iso_race_step {
    iso_race_kind kind;
    uint32_t stream;
    const char *name;            /* of the step, for the error */
    /* ACCESS of [begin, end) of a buffer. `value` says what the bytes mean; a value that lives
     * across epochs (state) is `kept`: it is there before the first write. An operator's accesses
     * are several steps of one `node`; its reads come before its writes. */
    uint32_t buffer, value;
    uint64_t begin, end;
    bool is_write, is_kept;
    /* WAIT, SIGNAL: relative values */
    uint32_t event;
    uint64_t event_value;
} iso_race_step;

/* event_stride: what the epoch grows by from one run to the next. ISO_BAD_ARGUMENT says which step
 * and why; ISO_NO_MEMORY. */
iso_status iso_race_check(const iso_race_step *steps, uint32_t count, uint64_t event_stride,
                          iso_error *error);

#endif
