#include "backends/cpu/cpu.h"

#include "core/alloc.h"

#include <string.h>

/* Why a kind is not offered; NULL: it is. */
static const char *absent_because(iso_memory_kind kind)
{
    switch (kind) {
    case ISO_MEMORY_HOST:
        return "the processor reaches all host memory: use shared";
    case ISO_MEMORY_PINNED:
    case ISO_MEMORY_DEVICE:
    case ISO_MEMORY_SHARED:
        return NULL;
    case ISO_MEMORY_MAPPED:
        return "by import only";
    default:
        return "no such kind";
    }
}

iso_status iso_cpu_memory(iso_device *device, iso_memory_kind kind, iso_memory_info *info,
                          iso_error *error)
{
    const char *why = absent_because(kind);

    (void)device;
    (void)error;
    *info = (iso_memory_info){.present = why == NULL, .alignment = ISO_CPU_ALIGN};
    if (why != NULL)
        snprintf(info->text, sizeof info->text, "%s", why);
    if (why != NULL)
        return ISO_OK;
    info->bytes_free = iso_os_memory_free();
    info->bytes_budget = info->bytes_free;
    info->buffer_max = SIZE_MAX / 2;
    return ISO_OK;
}

iso_status iso_cpu_buffer_create(iso_device *device, const iso_buffer_spec *spec,
                                 iso_buffer **buffer, iso_error *error)
{
    const uint64_t align = spec->alignment > ISO_CPU_ALIGN ? spec->alignment : ISO_CPU_ALIGN;
    const char *why = absent_because(spec->kind);
    iso_buffer *made;

    if (why != NULL)
        return iso_fail(error, ISO_UNSUPPORTED, "cpu: %s memory for %s: %s",
                        (unsigned)spec->kind < ISO_MEMORY_KIND_COUNT
                            ? iso_memory_kind_name(spec->kind) : "unknown", spec->tag, why);
    if (spec->bytes == 0 || (spec->alignment & (spec->alignment - 1)) != 0 || align > 4096)
        return iso_fail(error, ISO_BAD_ARGUMENT, "cpu: %s: %llu bytes aligned to %llu", spec->tag,
                        (unsigned long long)spec->bytes, (unsigned long long)spec->alignment);
    made = iso_alloc_zero(1, sizeof *made, "cpu buffer");
    if (made != NULL && spec->bytes <= SIZE_MAX / 2)
        made->data = iso_alloc((size_t)spec->bytes, (size_t)align, spec->tag);
    if (made == NULL || made->data == NULL) {
        iso_release(made, sizeof *made);
        return iso_fail(error, ISO_NO_MEMORY, "cpu: %llu bytes for %s",
                        (unsigned long long)spec->bytes, spec->tag);
    }
    iso_pages_apply(&device->pages, made->data, spec->bytes);
#ifndef NDEBUG
    memset(made->data, 0xff, (size_t)spec->bytes);     /* NaN: contents are undefined */
#endif
    made->kind = spec->kind;
    made->bytes = spec->bytes;
    iso_cpu_enlist(device, &made->object, "buffer", spec->tag);
    *buffer = made;
    return ISO_OK;
}

iso_status iso_cpu_buffer_import(iso_device *device, const iso_import_spec *spec,
                                 iso_buffer **buffer, iso_error *error)
{
    const uint64_t align = spec->alignment != 0 ? spec->alignment : 1;
    iso_buffer *made;

    if (spec->host == NULL || spec->bytes == 0 || (align & (align - 1)) != 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "cpu: import of %llu bytes aligned to %llu",
                        (unsigned long long)spec->bytes, (unsigned long long)align);
    if (((uintptr_t)spec->host & (align - 1)) != 0)
        return iso_fail(error, ISO_UNSUPPORTED, "cpu: import at an address that is no multiple of "
                        "%llu", (unsigned long long)align);
    made = iso_alloc_zero(1, sizeof *made, "cpu buffer");
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "cpu: out of memory for an import");
    made->kind = ISO_MEMORY_MAPPED;
    made->data = (unsigned char *)(uintptr_t)spec->host;
    made->bytes = spec->bytes;
    made->is_import = true;
    iso_cpu_enlist(device, &made->object, "import", spec->tag);
    *buffer = made;
    return ISO_OK;
}

iso_status iso_cpu_buffer_map(iso_buffer *buffer, void **host, iso_error *error)
{
    if (buffer->kind != ISO_MEMORY_PINNED && buffer->kind != ISO_MEMORY_SHARED)
        return iso_fail(error, ISO_UNSUPPORTED, "cpu: %s memory is not for the host: %s",
                        iso_memory_kind_name(buffer->kind), buffer->object.tag);
    *host = buffer->data;
    return ISO_OK;
}

void iso_cpu_buffer_destroy(iso_buffer **buffer)
{
    iso_buffer *b = buffer == NULL ? NULL : *buffer;

    if (b == NULL)
        return;
    iso_cpu_delist(&b->object);
    if (!b->is_import)
        iso_release(b->data, (size_t)b->bytes);
    iso_release(b, sizeof *b);
    *buffer = NULL;
}
