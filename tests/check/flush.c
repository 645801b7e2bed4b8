/* Flush modes of the processor: no result may depend on them (numerics 4). */
#include "tests/check/check.h"

#if defined(__SSE2__)
#include <xmmintrin.h>

enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x40 };

bool check_flush_enter(uint64_t *old)
{
    *old = _mm_getcsr();
    _mm_setcsr((uint32_t)*old | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return true;
}

void check_flush_leave(uint64_t old) { _mm_setcsr((uint32_t)old); }

#elif defined(__aarch64__)

bool check_flush_enter(uint64_t *old)
{
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    *old = fpcr;
    fpcr |= (uint64_t)1 << 24;                    /* FZ */
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
    return true;
}

void check_flush_leave(uint64_t old) { __asm__ volatile("msr fpcr, %0" : : "r"(old)); }

#else

bool check_flush_enter(uint64_t *old)
{
    *old = 0;
    return false;
}

void check_flush_leave(uint64_t old) { (void)old; }

#endif
