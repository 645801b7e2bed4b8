/* router: the score of an expert and the weights of the chosen ones (numerics 9.5, 14). */
#ifndef ISO_OPS_ROUTER_H
#define ISO_OPS_ROUTER_H

#include "ggml-style-ops/lane/clean.h"
#include "ggml-style-ops/lane/log1p.h"

/* sqrt(softplus(logit)); a temperature of 1 means no division. The softplus is not cleaned. */
static inline float iso_router_score(float logit, float temperature, uint32_t *flags)
{
    const float l = temperature != 1.0f ? lane_div(logit, temperature) : logit;

    return lane_clean(lane_sqrt(lane_softplus(lane_clean(l, flags))), flags);
}

/* Scores of the chosen experts in ascending id, in w[0 .. count), become their weights. */
static inline void iso_router_weights(float *w, uint32_t count, float tiny, float scale,
                                      uint32_t *flags)
{
    float sum = w[0];

    for (uint32_t i = 1; i < count; i++)
        sum = sum + w[i];
    sum = sum + tiny;
    for (uint32_t i = 0; i < count; i++)
        w[i] = lane_clean(lane_div(w[i], sum) * scale, flags);
}

#endif
