/* unit: what every cmocka test begins with. cmocka's header needs its own includes before it. */
#ifndef ISO_TESTS_UNIT_H
#define ISO_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/status.h"

#include <string.h>

/* The call succeeds; prints the error text if not. */
#define assert_ok(call, error)                                                                    \
    do {                                                                                          \
        const iso_status assert_ok_status = (call);                                               \
        if (assert_ok_status != ISO_OK)                                                           \
            fail_msg("%s: %s: %s", #call, iso_status_name(assert_ok_status), (error).text);       \
    } while (0)

/* The call fails with this status and its text contains `part`. */
#define assert_fails(call, status, error, part)                                                   \
    do {                                                                                          \
        const iso_status assert_fails_status = (call);                                            \
        if (assert_fails_status != (status))                                                      \
            fail_msg("%s: %s, expected %s", #call, iso_status_name(assert_fails_status),          \
                     iso_status_name(status));                                                    \
        if (strstr((error).text, part) == NULL)                                                   \
            fail_msg("%s: text is \"%s\", expected \"%s\" in it", #call, (error).text, part);      \
    } while (0)

#endif
