/* order: the prescribed orders of summation, once (numerics 6.1, 7). C only: what the references
 * and the portable kernels use. */
#ifndef ISO_OPS_ORDER_H
#define ISO_OPS_ORDER_H

#include "ggml-style-ops/lane/lane.h"

/* 128 -> 1024 -> K: chunks of 128 k are pushed in ascending order; 8 chunks make a segment; each
 * level starts at its first term. */
typedef struct iso_sum3 {
    float segment, total;
    uint32_t chunks;
} iso_sum3;

static inline void iso_sum3_push(iso_sum3 *sum, float chunk)
{
    const uint32_t position = sum->chunks++ % (LANE_SEGMENT / LANE_CHUNK);

    sum->segment = position != 0 ? sum->segment + chunk : chunk;
    if (position == LANE_SEGMENT / LANE_CHUNK - 1)
        sum->total = sum->chunks > LANE_SEGMENT / LANE_CHUNK ? sum->total + sum->segment
                                                             : sum->segment;
}

/* The sum, not cleaned; +0 without chunks. */
static inline float iso_sum3_end(const iso_sum3 *sum)
{
    if (sum->chunks % (LANE_SEGMENT / LANE_CHUNK) == 0)
        return sum->total;
    return sum->chunks > LANE_SEGMENT / LANE_CHUNK ? sum->total + sum->segment : sum->segment;
}

/* 32 lanes, a halving tree, segments of 4096 added in ascending order. Values are added one by one
 * in index order; at most 2^31 of them. */
typedef struct iso_row_sum {
    float lane[32];
    float total;
    uint32_t count;
} iso_row_sum;

static inline float iso_row_sum_tree(iso_row_sum *sum)
{
    for (uint32_t half = 16; half != 0; half /= 2)
        for (uint32_t j = 0; j < half; j++)
            sum->lane[j] = sum->lane[j] + sum->lane[j + half];
    return sum->lane[0];
}

static inline void iso_row_sum_add(iso_row_sum *sum, float value)
{
    const uint32_t position = sum->count % LANE_ROW_SEGMENT;

    if (position == 0 && sum->count != 0) {
        const float segment = iso_row_sum_tree(sum);

        sum->total = sum->count > LANE_ROW_SEGMENT ? sum->total + segment : segment;
        memset(sum->lane, 0, sizeof sum->lane);
    }
    sum->lane[position % 32] = sum->lane[position % 32] + value;
    sum->count++;
}

/* The sum of everything added, not cleaned. The struct is used up. */
static inline float iso_row_sum_end(iso_row_sum *sum)
{
    const float segment = iso_row_sum_tree(sum);

    return sum->count > LANE_ROW_SEGMENT ? sum->total + segment : segment;
}

#endif
