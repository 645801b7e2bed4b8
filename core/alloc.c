#include "core/alloc.h"

#include "core/isobit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_least64_t bytes_now, bytes_peak, count_now, count_total, fail_at;
static atomic_int sealed;

static void count(size_t bytes)
{
    const uint64_t now = atomic_fetch_add(&bytes_now, bytes) + bytes;
    uint64_t peak = atomic_load(&bytes_peak);

    while (now > peak && !atomic_compare_exchange_weak(&bytes_peak, &peak, now))
        ;
    atomic_fetch_add(&count_now, 1);
    atomic_fetch_add(&count_total, 1);
}

void *iso_alloc(size_t bytes, size_t align, const char *tag)
{
    void *memory = NULL;

    (void)tag;
    ISO_ASSERT(atomic_load(&sealed) == 0);
    ISO_ASSERT(align != 0 && (align & (align - 1)) == 0 && align <= 4096);
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return NULL;
    if (atomic_load(&fail_at) != 0 && atomic_fetch_sub(&fail_at, 1) == 1)
        return NULL;
    if (align < sizeof(void *))
        align = sizeof(void *);
    if (posix_memalign(&memory, align, bytes) != 0)
        return NULL;
    count(bytes);
    return memory;
}

void *iso_alloc_zero(size_t elements, size_t bytes, const char *tag)
{
    uint64_t total;
    void *memory;

    if (!iso_mul_u64(elements, bytes, &total) || total > SIZE_MAX / 2)
        return NULL;
    memory = iso_alloc((size_t)total, 64, tag);
    if (memory != NULL)
        memset(memory, 0, (size_t)total);
    return memory;
}

void iso_release(void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
    atomic_fetch_sub(&bytes_now, bytes);
    atomic_fetch_sub(&count_now, 1);
    free(memory);
}

void *iso_alloc_public(size_t bytes)
{
    ISO_ASSERT(atomic_load(&sealed) == 0);
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return NULL;
    if (atomic_load(&fail_at) != 0 && atomic_fetch_sub(&fail_at, 1) == 1)
        return NULL;
    return malloc(bytes);
}

void iso_alloc_get_stats(iso_alloc_stats *stats)
{
    stats->bytes_now = atomic_load(&bytes_now);
    stats->bytes_peak = atomic_load(&bytes_peak);
    stats->count_now = atomic_load(&count_now);
    stats->count_total = atomic_load(&count_total);
}

void iso_alloc_fail_at(uint64_t n) { atomic_store(&fail_at, n); }
void iso_alloc_seal(void) { atomic_fetch_add(&sealed, 1); }
void iso_alloc_unseal(void)
{
    const int before = atomic_fetch_sub(&sealed, 1);

    ISO_ASSERT(before > 0);
}

void iso_free(void *memory) { free(memory); }
