/* fpmode: the floating-point mode of a thread. CMake picks one fpmode_<architecture>.c. */
#ifndef ISO_CORE_FPMODE_H
#define ISO_CORE_FPMODE_H

#include <stdint.h>

/* Nearest even, no flush modes, exceptions masked (numerics 20.2). Returns the old mode. */
uint64_t iso_fpmode_enter(void);
void iso_fpmode_leave(uint64_t old);
/* The thread's mode as the hardware's bits; what enter sets; for the probe and for tests. */
uint64_t iso_fpmode_now(void);
uint64_t iso_fpmode_wanted(void);

#endif
