#include "core/fpmode.h"

#include <fenv.h>

/* C11 can set the rounding direction; flush modes are left to the probe to find. */
uint64_t iso_fpmode_enter(void)
{
    const int old = fegetround();

    fesetround(FE_TONEAREST);
    return (uint64_t)old;
}

void iso_fpmode_leave(uint64_t old) { fesetround((int)old); }
uint64_t iso_fpmode_now(void) { return (uint64_t)fegetround(); }
uint64_t iso_fpmode_wanted(void) { return FE_TONEAREST; }
