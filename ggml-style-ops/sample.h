/* sample: integer weights of tokens and the pick of one of them (numerics 18). */
#ifndef ISO_OPS_SAMPLE_H
#define ISO_OPS_SAMPLE_H

#include "ggml-style-ops/lane/exp.h"
#include "ggml-style-ops/lane/philox.h"

/* Words of a row of sampling parameters. */
enum {
    ISO_SAMPLE_INV_T,        /* bits of the f32 1 / temperature */
    ISO_SAMPLE_TOP_K,        /* 0: off */
    ISO_SAMPLE_TOP_P,        /* round(top_p * 2^32) modulo 2^32; 0: off */
    ISO_SAMPLE_MIN_P,        /* least weight kept: trunc(min_p * 2^31); 0: off */
    ISO_SAMPLE_SEED_LOW,
    ISO_SAMPLE_SEED_HIGH,
    ISO_SAMPLE_POSITION,
    ISO_SAMPLE_FLAGS,        /* ISO_SAMPLE_GREEDY */
    ISO_SAMPLE_WORDS
};
enum { ISO_SAMPLE_GREEDY = 1 };

/* trunc(exp((logit - max) * inv) * 2^31); the largest logit gives 2^31. 0 if that is no number. */
static inline uint32_t iso_sample_weight(float logit, float max, float inv)
{
    const float difference = logit - max;
    const float p = lane_exp(difference * inv);

    return p <= 1.0f ? (uint32_t)(p * 0x1p31f) : 0;
}

/* High half of the 128-bit product. */
static inline uint64_t iso_mul_high_u64(uint64_t a, uint64_t b)
{
    const uint64_t al = a & UINT32_MAX, ah = a >> 32, bl = b & UINT32_MAX, bh = b >> 32;
    const uint64_t middle = ah * bl + (al * bl >> 32);           /* < 2^64 */
    const uint64_t other = al * bh + (middle & UINT32_MAX);      /* < 2^64 */

    return ah * bh + (middle >> 32) + (other >> 32);
}

/* The first token whose inclusive prefix sum of weights exceeds floor(random * total / 2^64); the
 * last one if all weights are zero. count >= 1. */
static inline uint32_t iso_sample_pick(const uint32_t *weight, uint32_t count, uint64_t random)
{
    uint64_t total = 0, sum = 0, bound;

    for (uint32_t i = 0; i < count; i++)
        total += weight[i];
    bound = iso_mul_high_u64(random, total);
    for (uint32_t i = 0; i < count; i++) {
        sum += weight[i];
        if (sum > bound)
            return i;
    }
    return count - 1;
}

/* The 64 random bits of (seed, position, draw, stream). */
static inline uint64_t iso_sample_random(uint32_t seed_low, uint32_t seed_high, uint32_t position,
                                         uint32_t draw, uint32_t stream)
{
    const struct lane_philox counter = {position, 0, draw, stream};
    const struct lane_philox out = lane_philox4x32(counter, seed_low, seed_high);

    return (uint64_t)out.c1 << 32 | out.c0;
}

#endif
