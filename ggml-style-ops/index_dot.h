/* index_dot: the score of one compressed entry for one token (numerics 6.5, 15.2). */
#ifndef ISO_OPS_INDEX_DOT_H
#define ISO_OPS_INDEX_DOT_H

#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/order.h"

enum { ISO_INDEX_GROUP = 32 };

/* Sum over one block of 32 as an integer number of quarters: |S| <= 4,608. */
static inline int32_t iso_index_block(const uint8_t *a, const uint8_t *b)
{
    int32_t sum = 0;

    for (uint32_t i = 0; i < ISO_INDEX_GROUP / 2; i++)
        sum += lane_e2m1_int(a[i]) * lane_e2m1_int(b[i])
             + lane_e2m1_int((uint32_t)a[i] >> 4) * lane_e2m1_int((uint32_t)b[i] >> 4);
    return sum;
}

/* Exact class: blocks of 32, four to a chunk. Scale bytes are those of the quantiser, [86, 175];
 * the exponent of others is clamped to what binary32 has. */
static inline float iso_index_dot(const uint8_t *a, const uint8_t *a_scale, const uint8_t *b,
                                  const uint8_t *b_scale, uint32_t dim)
{
    iso_sum3 sum = {0};
    float chunk = 0.0f;
    const uint32_t blocks = dim / ISO_INDEX_GROUP, per_chunk = LANE_CHUNK / ISO_INDEX_GROUP;

    for (uint32_t i = 0; i < blocks; i++) {
        const int32_t s = iso_index_block(a + i * (ISO_INDEX_GROUP / 2),
                                          b + i * (ISO_INDEX_GROUP / 2));
        const int32_t e = (int32_t)a_scale[i] + (int32_t)b_scale[i] - 254 - 2;
        const float block = (float)s * lane_pow2(e < -126 ? -126 : e > 127 ? 127 : e);

        chunk = i % per_chunk != 0 ? chunk + block : block;
        if (i % per_chunk == per_chunk - 1 || i == blocks - 1)
            iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

/* sum + to_bf16(max(to_bf16(dot), 0) * weight), for heads ascending from +0. */
static inline float iso_index_add(float sum, float dot, float weight, uint32_t *flags)
{
    const float d = lane_bf16_f32(lane_bf16(dot, flags));
    const float positive = d > 0.0f ? d : 0.0f;

    return sum + lane_bf16_f32(lane_bf16(positive * weight, flags));
}

#endif
