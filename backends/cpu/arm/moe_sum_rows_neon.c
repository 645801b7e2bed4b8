/* moe_sum, token by token, channels as lanes; experts are added in their order (numerics 14). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/arm/lane_neon.h"
#include "ggml-style-ops/args.h"

enum { ROUTED, SHARED, OUT };

typedef struct token {
    const uint16_t *routed, *shared;
    uint16_t *out;
    uint32_t picks, dim;
} token;

static inline void sum8(const token *t, uint32_t d, uint32_t count, uint32x4_t *bad)
{
    lane8 sum = lane8_set1(0.0f);

    for (uint32_t i = 0; i < t->picks; i++)
        sum = lane8_add(sum, lane8_load_bf16_n(t->routed + (uint64_t)i * t->dim + d, count));
    sum = lane8_add(sum, lane8_load_bf16_n(t->shared + d, count));
    lane8_store_bf16_n(t->out + d, count, sum, bad);
}

void iso_cpu_moe_sum_rows_neon(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_moe_sum_args *a = args;
    uint32x4_t bad = vdupq_n_u32(0);

    for (uint64_t row = units.begin; row < units.end; row++) {
        const token t = {
            .routed = (const uint16_t *)tensors->at[ROUTED] + row * a->picks * a->dim,
            .shared = (const uint16_t *)tensors->at[SHARED] + row * a->dim,
            .out = (uint16_t *)tensors->at[OUT] + row * a->dim,
            .picks = a->picks,
            .dim = a->dim,
        };
        uint32_t d = 0;

        for (; d + 8 <= a->dim; d += 8)
            sum8(&t, d, 8, &bad);
        if (d < a->dim)
            sum8(&t, d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, lane4_flags(bad));
}
