/* pool: softmax-weighted sum over the members of a compressor group, by channel (numerics 15.1) */
#ifndef ISO_OPS_POOL_H
#define ISO_OPS_POOL_H

#include "ggml-style-ops/lane/clean.h"
#include "ggml-style-ops/lane/div.h"
#include "ggml-style-ops/lane/exp.h"

enum { ISO_POOL_MAX = 128 };     /* members of a group */

/* v[i][c], g[i][c] for members i ascending. M = max g; e = clean(exp(g - M)); w = clean(e / l). */
static inline float iso_pool_channel(const float *const *v, const float *const *g,
                                     uint32_t members, uint32_t c, uint32_t *flags)
{
    float max = g[0][c], total = 0.0f, sum = 0.0f;

    for (uint32_t i = 1; i < members; i++)
        max = g[i][c] > max ? g[i][c] : max;
    for (uint32_t i = 0; i < members; i++)
        total = total + lane_clean(lane_exp(g[i][c] - max), flags);
    for (uint32_t i = 0; i < members; i++) {
        const float e = lane_clean(lane_exp(g[i][c] - max), flags);
        const float w = lane_clean(lane_div(e, total), flags);
        const float term = v[i][c] * w;

        sum = sum + term;
    }
    return sum;
}

#endif
