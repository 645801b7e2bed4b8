#include "core/hash.h"

#include "core/check.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

ISO_STATIC_ASSERT(sizeof(XXH3_state_t) <= sizeof(iso_hasher), "iso_hasher is too small");
ISO_STATIC_ASSERT(_Alignof(XXH3_state_t) <= 64, "iso_hasher is not aligned enough");

void iso_hash(const void *data, size_t bytes, uint64_t hash[2])
{
    const XXH128_hash_t h = XXH3_128bits(data, bytes);

    hash[0] = h.low64;
    hash[1] = h.high64;
}

void iso_hasher_init(iso_hasher *hasher)
{
    XXH3_state_t *state = (XXH3_state_t *)(void *)hasher->state;

    XXH3_INITSTATE(state);
    XXH3_128bits_reset(state);
}

void iso_hasher_add(iso_hasher *hasher, const void *data, size_t bytes)
{
    if (bytes != 0)
        XXH3_128bits_update((XXH3_state_t *)(void *)hasher->state, data, bytes);
}

void iso_hasher_end(const iso_hasher *hasher, uint64_t hash[2])
{
    const XXH128_hash_t h =
        XXH3_128bits_digest((const XXH3_state_t *)(const void *)hasher->state);

    hash[0] = h.low64;
    hash[1] = h.high64;
}
