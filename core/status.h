/* status: what a function that can fail returns, and the one-line text that goes with it.
 * The codes are rows of status.def. The enum and iso_error are public: see isobit.h. */
#ifndef ISO_CORE_STATUS_H
#define ISO_CORE_STATUS_H

#include "core/isobit.h"

#include <stdarg.h>

#if defined(__GNUC__)
#define ISO_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define ISO_PRINTF(fmt, args)
#endif

/* Forwards a failure of `expr` to the caller. */
#define ISO_TRY(expr)                                                                             \
    do {                                                                                          \
        const iso_status iso_try_status_ = (expr);                                                \
        if (iso_try_status_ != ISO_OK)                                                            \
            return iso_try_status_;                                                               \
    } while (0)

/* Jumps to `done` with `status` set when `expr` fails; both names live in the caller. */
#define ISO_GOTO(expr)                                                                            \
    do {                                                                                          \
        status = (expr);                                                                          \
        if (status != ISO_OK)                                                                     \
            goto done;                                                                            \
    } while (0)

/* Writes the formatted sentence to error->text (cut at its size, control characters become '?';
 * error may be NULL) and returns `status`. Never returns ISO_OK. */
iso_status iso_fail(iso_error *error, iso_status status, const char *format, ...) ISO_PRINTF(3, 4);

/* Puts "prefix: " in front of the text that is already there, and returns `status`. */
iso_status iso_fail_in(iso_error *error, iso_status status, const char *format, ...)
    ISO_PRINTF(3, 4);

#endif
