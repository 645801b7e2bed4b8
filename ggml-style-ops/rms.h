/* rms: the statistic that rms_norm, row_rms and engram_gate share (numerics 8.1). */
#ifndef ISO_OPS_RMS_H
#define ISO_OPS_RMS_H

#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/sqrt.h"
#include "ggml-style-ops/order.h"

/* 1 / sqrt(mean(x^2) + eps) over n bf16 values; the mean multiplies by the f32 nearest to 1/n. */
static inline float iso_mean_rsqrt(const uint16_t *x, uint32_t n, float eps)
{
    iso_row_sum sum = {0};
    float mean;

    for (uint32_t i = 0; i < n; i++)
        iso_row_sum_add(&sum, lane_bf16_f32(x[i]) * lane_bf16_f32(x[i]));    /* exact */
    mean = iso_row_sum_end(&sum) * lane_div(1.0f, (float)(int32_t)n);
    return lane_rsqrt(mean + eps);
}

#endif
