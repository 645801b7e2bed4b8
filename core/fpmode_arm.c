#include "core/fpmode.h"

/* FPCR 0: round to nearest, FZ, FZ16, AH and DN off, no traps. */
static uint64_t get(void)
{
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}

static void set(uint64_t fpcr) { __asm__ volatile("msr fpcr, %0" : : "r"(fpcr)); }

uint64_t iso_fpmode_enter(void)
{
    const uint64_t old = get();

    set(0);
    return old;
}

void iso_fpmode_leave(uint64_t old) { set(old); }
uint64_t iso_fpmode_now(void) { return get(); }
uint64_t iso_fpmode_wanted(void) { return 0; }
