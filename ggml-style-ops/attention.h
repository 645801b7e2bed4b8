/* attention: one query row of one head over blocks of 64 key slots (numerics 12.2). Keys are their
 * own values. Where a key comes from is the caller's business: a slot holds a key or is empty. */
#ifndef ISO_OPS_ATTENTION_H
#define ISO_OPS_ATTENTION_H

#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/exp.h"
#include "ggml-style-ops/lane/div.h"
#include "ggml-style-ops/order.h"

enum { ISO_HEAD_DIM_MAX = 512 };

typedef struct iso_keys {
    /* Writes the exact key of a slot to row[0 .. dim), bf16 values as f32; false if it is empty. */
    bool (*row)(const void *context, uint64_t block, uint32_t slot, float *row);
    const void *context;
    uint64_t blocks;
    uint32_t dim;                /* <= ISO_HEAD_DIM_MAX */
} iso_keys;

typedef struct iso_key_weights {
    float exact[LANE_KEY_BLOCK];     /* p_j, +0 where the slot is empty */
    bool present[LANE_KEY_BLOCK];
    float max;                       /* of the block's scores */
} iso_key_weights;

/* Float class over dim: the product of two bf16 values is exact. */
static inline float iso_key_dot(const uint16_t *q, const float *k, uint32_t dim)
{
    iso_sum3 sum = {0};

    for (uint32_t begin = 0; begin < dim; begin += LANE_CHUNK) {
        const uint32_t end = dim - begin < LANE_CHUNK ? dim : begin + LANE_CHUNK;
        float chunk = 0.0f;

        for (uint32_t c = begin; c < end; c++)
            chunk = chunk + lane_bf16_f32(q[c]) * k[c];
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

/* Scores of one block into exact[], and their maximum; false if every slot is empty. */
static inline bool iso_key_scores(const iso_keys *keys, uint64_t block, const uint16_t *q,
                                  float scale, iso_key_weights *w, uint32_t *flags)
{
    float row[ISO_HEAD_DIM_MAX];
    bool any = false;

    for (uint32_t j = 0; j < LANE_KEY_BLOCK; j++) {
        w->exact[j] = 0.0f;
        w->present[j] = keys->row(keys->context, block, j, row);
        if (!w->present[j])
            continue;
        w->exact[j] = lane_clean(iso_key_dot(q, row, keys->dim) * scale, flags);
        if (!any || w->exact[j] > w->max)
            w->max = w->exact[j];
        any = true;
    }
    return any;
}

/* Scores -> weights relative to the block's maximum; returns their row sum. */
static inline float iso_key_exponentials(iso_key_weights *w, uint32_t *flags)
{
    iso_row_sum sum = {0};

    for (uint32_t j = 0; j < LANE_KEY_BLOCK; j++) {
        if (w->present[j])
            w->exact[j] = lane_clean(lane_exp(w->exact[j] - w->max), flags);
        iso_row_sum_add(&sum, w->exact[j]);
    }
    return iso_row_sum_end(&sum);
}

/* acc[c] += clean(f * sum over j ascending of bf16(p_j) * V_j[c]); both factors are bf16 values. */
static inline void iso_key_values(const iso_keys *keys, uint64_t block, const iso_key_weights *w,
                                  float f, float *acc, uint32_t *flags)
{
    float row[ISO_HEAD_DIM_MAX], sum[ISO_HEAD_DIM_MAX] = {0};

    for (uint32_t j = 0; j < LANE_KEY_BLOCK; j++) {
        const float p = lane_bf16_f32(lane_bf16(w->exact[j], flags));

        if (!w->present[j] || !keys->row(keys->context, block, j, row))
            continue;
        for (uint32_t c = 0; c < keys->dim; c++)
            sum[c] = sum[c] + p * row[c];
    }
    for (uint32_t c = 0; c < keys->dim; c++)
        acc[c] = acc[c] + lane_clean(sum[c] * f, flags);
}

/* Two passes: the maximum of all blocks and of the sink (NULL: none), then blocks ascending, the
 * sink last. Writes out[0 .. dim); +0 if there is no key. */
static inline void iso_attend_row(const iso_keys *keys, const uint16_t *q, float scale,
                                  const float *sink, uint16_t *out, uint32_t *flags)
{
    float acc[ISO_HEAD_DIM_MAX] = {0}, max = sink != NULL ? *sink : 0.0f, total = 0.0f;
    bool any = sink != NULL;
    iso_key_weights w = {0};

    for (uint64_t block = 0; block < keys->blocks; block++)
        if (iso_key_scores(keys, block, q, scale, &w, flags)) {
            max = !any || w.max > max ? w.max : max;
            any = true;
        }
    for (uint64_t block = 0; block < keys->blocks; block++) {
        float sum, f;

        if (!iso_key_scores(keys, block, q, scale, &w, flags))
            continue;
        sum = iso_key_exponentials(&w, flags);
        f = lane_clean(lane_exp(w.max - max), flags);
        sum = sum * f;
        total = total + sum;
        iso_key_values(keys, block, &w, f, acc, flags);
    }
    if (sink != NULL)
        total = total + lane_clean(lane_exp(*sink - max), flags);
    for (uint32_t c = 0; c < keys->dim; c++)
        out[c] = any ? (uint16_t)lane_bf16(lane_div(acc[c], total), flags) : 0;
}

#endif
