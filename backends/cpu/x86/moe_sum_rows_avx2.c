/* moe_sum, token by token, channels as lanes; experts are added in their order (numerics 14). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/x86/lane_avx2.h"
#include "ggml-style-ops/args.h"

enum { ROUTED, SHARED, OUT };

typedef struct token {
    const uint16_t *routed, *shared;
    uint16_t *out;
    uint32_t picks, dim;
} token;

static inline void sum16(const token *t, uint32_t d, uint32_t count, __m256i *bad)
{
    lane16 sum = lane16_set1(0.0f);

    for (uint32_t i = 0; i < t->picks; i++)
        sum = lane16_add(sum, lane16_load_bf16_n(t->routed + (uint64_t)i * t->dim + d, count));
    sum = lane16_add(sum, lane16_load_bf16_n(t->shared + d, count));
    lane16_store_bf16_n(t->out + d, count, sum, bad);
}

void iso_cpu_moe_sum_rows_avx2(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_moe_sum_args *a = args;
    __m256i bad = _mm256_setzero_si256();

    for (uint64_t row = units.begin; row < units.end; row++) {
        const token t = {
            .routed = (const uint16_t *)tensors->at[ROUTED] + row * a->picks * a->dim,
            .shared = (const uint16_t *)tensors->at[SHARED] + row * a->dim,
            .out = (uint16_t *)tensors->at[OUT] + row * a->dim,
            .picks = a->picks,
            .dim = a->dim,
        };
        uint32_t d = 0;

        for (; d + 16 <= a->dim; d += 16)
            sum16(&t, d, 16, &bad);
        if (d < a->dim)
            sum16(&t, d, a->dim - d, &bad);
    }
    iso_flags_raise(tensors->flags, lane8_flags(bad));
}
