/* hash: XXH3-128; the only door to xxHash. Hashes are two 64-bit words, low word first. */
#ifndef ISO_CORE_HASH_H
#define ISO_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

void iso_hash(const void *data, size_t bytes, uint64_t hash[2]);

/* Streaming form. init allocates nothing; the struct is the caller's. */
typedef struct iso_hasher {
    _Alignas(64) unsigned char state[640];
} iso_hasher;
void iso_hasher_init(iso_hasher *hasher);
void iso_hasher_add(iso_hasher *hasher, const void *data, size_t bytes);
void iso_hasher_end(const iso_hasher *hasher, uint64_t hash[2]);

#endif
