/* check: assertions for our own bugs, static asserts, overflow-checked arithmetic for sizes that
 * come from outside. ISO_ASSERT stays in release builds: it guards cheap invariants only. */
#ifndef ISO_CORE_CHECK_H
#define ISO_CORE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ISO_STATIC_ASSERT(cond, text) _Static_assert(cond, text)

/* A failed assertion is a bug of isobit: it prints where and aborts. */
#define ISO_ASSERT(cond)                                                                          \
    do {                                                                                          \
        if (!(cond)) {                                                                            \
            fprintf(stderr, "isobit: bug at %s:%d: %s\n", __FILE__, __LINE__, #cond);             \
            abort();                                                                              \
        }                                                                                         \
    } while (0)

/* The same, with a sentence known at run time. */
#define ISO_ASSERT_SAYS(cond, text)                                                               \
    do {                                                                                          \
        if (!(cond)) {                                                                            \
            fprintf(stderr, "isobit: bug at %s:%d: %s: %s\n", __FILE__, __LINE__, #cond, text);   \
            abort();                                                                              \
        }                                                                                         \
    } while (0)

#define ISO_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* *out = a + b (a * b); false and *out untouched when the result does not fit. */
static inline bool iso_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

static inline bool iso_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

/* Smallest multiple of `align` (a power of two) that is >= x; x is far from the end of the type. */
static inline uint64_t iso_align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) & ~(align - 1);
}

#endif
