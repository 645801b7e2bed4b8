#include "core/op.h"

#include <stdatomic.h>

ISO_STATIC_ASSERT(sizeof(atomic_uint_least32_t) == sizeof(uint32_t), "flag word must be 4 bytes");

void iso_flags_raise(uint32_t *flags, uint32_t bits)
{
    if (bits != 0)
        atomic_fetch_or((atomic_uint_least32_t *)(void *)flags, bits);
}

iso_live iso_live_of(const iso_tensor_desc *desc)
{
    ISO_ASSERT(desc->extent[0] <= UINT32_MAX);
    return (iso_live){(uint32_t)desc->extent[0], desc->live_scalar, desc->live_mult};
}

void iso_live_copy(iso_tensor_desc *out, const iso_tensor_desc *in, uint32_t mult)
{
    out->live_scalar = in->live_scalar;
    out->live_mult = in->live_mult * mult;
}

uint32_t iso_live_resolve(iso_live live, const uint32_t *block)
{
    uint64_t rows;

    if (live.word == 0)
        return live.count;
    rows = (uint64_t)block[live.word - 1] * live.mult;
    return rows < live.count ? (uint32_t)rows : live.count;
}
