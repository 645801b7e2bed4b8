/* golden: the data and the hash that the golden values of numerics A.1 are defined with. Integers
 * only, so the inputs are the same on every machine. */
#ifndef ISO_TESTS_GOLDEN_H
#define ISO_TESTS_GOLDEN_H

#include "ggml-style-ops/lane/bf16.h"

#include <stddef.h>

enum golden_dist { GOLDEN_MILD, GOLDEN_TINY, GOLDEN_WIDE };      /* about 1; near 2^-50; all */

/* A stream of test data and the FNV-1a hash of the words put so far. */
typedef struct golden {
    uint64_t state, hash;
} golden;

static inline golden golden_begin(uint64_t seed)
{
    return (golden){seed, 0xcbf29ce484222325u};
}

static inline uint32_t golden_u32(golden *g)                     /* splitmix64, upper half */
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static inline float golden_f32(golden *g, enum golden_dist dist)
{
    const uint32_t r = golden_u32(g), m = golden_u32(g) & 0x7fffffu;
    uint32_t e = (r >> 4) & 0xffffu;

    if ((r & 15u) == 0)
        return 0.0f;
    e = dist == GOLDEN_MILD ? 120 + e % 9 : dist == GOLDEN_TINY ? 77 + e % 12 : 77 + e % 70;
    return lane_float((r & 0x80000000u) | e << 23 | m);
}

static inline uint16_t golden_bf16(golden *g, enum golden_dist dist)
{
    uint32_t flags = 0;

    return (uint16_t)lane_bf16(golden_f32(g, dist), &flags);
}

static inline uint8_t golden_e4m3(golden *g)                     /* any code but NaN */
{
    uint8_t code;

    do
        code = (uint8_t)golden_u32(g);
    while ((code & 0x7f) == 0x7f);
    return code;
}

static inline void golden_fill_bf16(golden *g, uint16_t *to, size_t count, enum golden_dist dist)
{
    for (size_t i = 0; i < count; i++)
        to[i] = golden_bf16(g, dist);
}

static inline void golden_fill_f32(golden *g, float *to, size_t count, enum golden_dist dist)
{
    for (size_t i = 0; i < count; i++)
        to[i] = golden_f32(g, dist);
}

static inline void golden_put(golden *g, uint32_t word)          /* little-endian bytes */
{
    for (int i = 0; i < 4; i++)
        g->hash = (g->hash ^ (word >> (8 * i) & 255u)) * 0x100000001b3u;
}

static inline void golden_put_f32(golden *g, float value) { golden_put(g, lane_bits(value)); }

#endif
