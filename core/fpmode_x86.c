#include "core/fpmode.h"

#include <xmmintrin.h>

/* MXCSR after reset: exceptions masked, round to nearest, FTZ and DAZ off. The low six bits are
 * sticky exception flags: they say what happened and change nothing. */
enum { MXCSR_WANTED = 0x1f80, MXCSR_STICKY = 0x3f };

uint64_t iso_fpmode_enter(void)
{
    const uint64_t old = _mm_getcsr();

    _mm_setcsr(MXCSR_WANTED);
    return old;
}

void iso_fpmode_leave(uint64_t old) { _mm_setcsr((uint32_t)old); }
uint64_t iso_fpmode_now(void) { return _mm_getcsr() & ~(uint32_t)MXCSR_STICKY; }
uint64_t iso_fpmode_wanted(void) { return MXCSR_WANTED; }
