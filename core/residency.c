#include "core/residency.h"

#include "core/alloc.h"
#include "core/array.h"
#include "core/rows32.h"
#include "core/threads.h"

#include <string.h>

typedef struct weight {
    char *name;
    iso_weight_group group;
    iso_tensor_desc desc;
    uint64_t bytes;
    iso_buffer *buffer;              /* NULL: not filled, or ROWS */
    unsigned char *host;             /* where writes go; NULL when used in place */
    const unsigned char *mapped;     /* host memory used in place */
    uint64_t bytes_written;
} weight;

struct iso_residency {
    const iso_backend *backend;
    iso_device *device;
    weight *weights;
    uint32_t weight_count, weight_capacity;
    uint32_t lease_count;
    iso_residency_stats stats;
};

iso_status iso_residency_create(const iso_backend *backend, iso_device *device,
                                uint64_t budget_bytes, iso_residency **residency,
                                iso_error *error)
{
    iso_memory_info memory;
    iso_residency *made;

    ISO_TRY(backend->memory(device, ISO_MEMORY_SHARED, &memory, error));
    if (!memory.present)
        return iso_fail(error, ISO_UNSUPPORTED,
                        "residency: weights are written by the host, and %s has no shared memory",
                        backend->name);
    made = iso_alloc_zero(1, sizeof *made, "residency");
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "residency: out of memory");
    made->backend = backend;
    made->device = device;
    made->stats.budget_bytes = budget_bytes;
    *residency = made;
    return ISO_OK;
}

void iso_residency_destroy(iso_residency **residency)
{
    iso_residency *r = residency == NULL ? NULL : *residency;

    if (r == NULL)
        return;
    ISO_ASSERT(r->lease_count == 0);
    for (uint32_t i = 0; i < r->weight_count; i++) {
        r->backend->buffer_destroy(&r->weights[i].buffer);
        iso_release(r->weights[i].name, strlen(r->weights[i].name) + 1);
    }
    iso_array_free(&r->weights, &r->weight_capacity, sizeof *r->weights);
    iso_release(r, sizeof *r);
    *residency = NULL;
}

iso_status iso_residency_declare(iso_residency *residency, const iso_weight_decl *decl,
                                 uint32_t *id, iso_error *error)
{
    const size_t name_bytes = strlen(decl->name) + 1;
    weight made = {.group = decl->group, .desc = decl->desc};

    ISO_TRY(iso_desc_check(&decl->desc, decl->name, error));
    made.bytes = iso_desc_bytes(&decl->desc);
    if (made.bytes == 0)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: a weight without bytes", decl->name);
    if (decl->group == ISO_GROUP_ROWS && decl->desc.rank != 2)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: rank %u, a table of rows has 2", decl->name,
                        decl->desc.rank);
    if (decl->desc.live_scalar != 0)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: a weight is not counted by a step", decl->name);
    if (!iso_array_reserve(&residency->weights, &residency->weight_capacity,
                           residency->weight_count, 1, sizeof made, "weights"))
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory", decl->name);
    made.name = iso_alloc(name_bytes, 1, "weight name");
    if (made.name == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%s: out of memory", decl->name);
    memcpy(made.name, decl->name, name_bytes);
    residency->weights[residency->weight_count] = made;
    *id = residency->weight_count++;
    return ISO_OK;
}

/* NULL, with the error of ISO_BAD_ARGUMENT, for an id that was never given out. */
static weight *find(const iso_residency *residency, uint32_t id, iso_error *error)
{
    if (id < residency->weight_count)
        return &residency->weights[id];
    (void)iso_fail(error, ISO_BAD_ARGUMENT, "weight %u of %u", id, residency->weight_count);
    return NULL;
}

static bool is_filled(const weight *w)
{
    return w->mapped != NULL || w->bytes_written >= w->bytes;
}

iso_status iso_residency_import(iso_residency *residency, uint32_t id, const void *data,
                                iso_error *error)
{
    weight *w = find(residency, id, error);
    iso_import_spec spec = {.host = data};
    iso_status status;

    if (w == NULL)
        return ISO_BAD_ARGUMENT;
    if (data == NULL || w->mapped != NULL || w->buffer != NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: %s", w->name,
                        data == NULL ? "import of no data" : "filled already");
    if (w->group != ISO_GROUP_ROWS) {
        spec.bytes = w->bytes;
        spec.alignment = iso_dtype_align(w->desc.dtype);
        spec.tag = "imported weight";
        status = residency->backend->buffer_import(residency->device, &spec, &w->buffer, error);
        if (status != ISO_OK)
            return iso_fail_in(error, status, "%s", w->name);
        residency->stats.mapped_bytes += w->bytes;
    }
    w->mapped = data;
    return ISO_OK;
}

/* The budget bounds bytes that were taken, so it is tested before memory is asked for. */
static iso_status take_memory(iso_residency *residency, weight *w, iso_error *error)
{
    const iso_buffer_spec spec = {.kind = ISO_MEMORY_SHARED, .bytes = w->bytes, .tag = "weight"};
    const uint64_t budget = residency->stats.budget_bytes;
    const uint64_t used = residency->stats.resident_bytes;
    iso_buffer *buffer = NULL;
    iso_status status;
    void *host;

    if (budget != 0 && (used > budget || w->bytes > budget - used))
        return iso_fail(error, ISO_OVER_BUDGET,
                        "%s: %llu bytes needed, %llu of %llu are in use", w->name,
                        (unsigned long long)w->bytes, (unsigned long long)used,
                        (unsigned long long)budget);
    status = residency->backend->buffer_create(residency->device, &spec, &buffer, error);
    if (status == ISO_OK)
        status = residency->backend->buffer_map(buffer, &host, error);
    if (status != ISO_OK) {
        residency->backend->buffer_destroy(&buffer);
        return iso_fail_in(error, status, "%s", w->name);
    }
    w->buffer = buffer;
    w->host = host;
    residency->stats.resident_bytes += w->bytes;
    return ISO_OK;
}

iso_status iso_residency_write(iso_residency *residency, uint32_t id, uint64_t offset,
                               const void *data, uint64_t bytes, iso_error *error)
{
    weight *w = find(residency, id, error);

    if (w == NULL)
        return ISO_BAD_ARGUMENT;
    if (w->group == ISO_GROUP_ROWS || w->mapped != NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: used in place, it cannot be written",
                        w->name);
    if (offset > w->bytes || bytes > w->bytes - offset)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: write of [%llu, +%llu) of %llu bytes",
                        w->name, (unsigned long long)offset, (unsigned long long)bytes,
                        (unsigned long long)w->bytes);
    if (bytes == 0)
        return ISO_OK;
    if (w->buffer == NULL)
        ISO_TRY(take_memory(residency, w, error));
    memcpy(w->host + offset, data, (size_t)bytes);
    w->bytes_written += bytes;
    return ISO_OK;
}

/* ---- layouts ---- */

enum { PIECE_BYTES = 1 << 18 };      /* that a thread arranges at a time */

typedef struct arrangement {
    iso_tensor_desc desc;
    iso_layout layout;               /* to bring it into */
    const void *from;
    void *to;
} arrangement;

static void arrange_tiles(const void *args, const iso_tensors *tensors, iso_range tiles)
{
    const arrangement *a = args;

    (void)tensors;
    if (a->layout == ISO_LAYOUT_ROWS32)
        iso_rows32_pack(&a->desc, tiles.begin, tiles.end, a->from, a->to);
    else
        iso_rows32_unpack(&a->desc, tiles.begin, tiles.end, a->from, a->to);
}

iso_status iso_residency_arrange(iso_residency *residency, uint32_t id, iso_layout layout,
                                 uint32_t thread_count, iso_error *error)
{
    weight *w = find(residency, id, error);
    const iso_tensors none = {0};
    weight made;
    arrangement a;
    uint64_t grain;

    ISO_ASSERT(residency->lease_count == 0);
    if (w == NULL)
        return ISO_BAD_ARGUMENT;
    if (w->group == ISO_GROUP_ROWS || !is_filled(w))
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: %s", w->name,
                        w->group == ISO_GROUP_ROWS ? "a table of rows has no other layout"
                                                   : "not filled");
    if (w->desc.layout == layout)
        return ISO_OK;
    made = (weight){.name = w->name, .group = w->group, .desc = w->desc};
    made.desc.layout = layout;
    ISO_TRY(iso_desc_check(&made.desc, w->name, error));
    made.bytes = made.bytes_written = iso_desc_bytes(&made.desc);
    ISO_TRY(take_memory(residency, &made, error));
    a = (arrangement){w->desc, layout, w->mapped != NULL ? w->mapped : w->host, made.host};
    grain = PIECE_BYTES / (iso_rows32_tile_bytes(&a.desc) + 1) + 1;
    iso_threads_run(thread_count, iso_rows32_tiles(&a.desc), grain, arrange_tiles, &a, &none);
    *(w->mapped != NULL ? &residency->stats.mapped_bytes : &residency->stats.resident_bytes) -=
        w->bytes;
    residency->backend->buffer_destroy(&w->buffer);
    *w = made;
    return ISO_OK;
}

/* ---- leases ---- */

iso_status iso_residency_acquire(iso_residency *residency, const uint32_t *ids, uint32_t count,
                                 iso_lease *lease, iso_error *error)
{
    ISO_ASSERT(lease->open == 0);
    for (uint32_t i = 0; i < count; i++) {
        const weight *w = find(residency, ids[i], error);

        if (w == NULL)
            return ISO_BAD_ARGUMENT;
        if (w->group == ISO_GROUP_ROWS)
            return iso_fail(error, ISO_BAD_ARGUMENT, "%s: rows are fetched, not leased", w->name);
        if (!is_filled(w))
            return iso_fail(error, ISO_BAD_TENSOR, "%s: %llu of %llu bytes filled", w->name,
                            (unsigned long long)w->bytes_written, (unsigned long long)w->bytes);
    }
    residency->lease_count++;
    lease->open = 1;
    return ISO_OK;
}

iso_slice iso_residency_slice(const iso_residency *residency, uint32_t id)
{
    ISO_ASSERT(residency->lease_count != 0 && id < residency->weight_count);
    return (iso_slice){residency->weights[id].buffer, 0};
}

void iso_residency_release(iso_residency *residency, iso_lease *lease)
{
    if (lease->open == 0)
        return;
    ISO_ASSERT(residency->lease_count != 0);
    residency->lease_count--;
    lease->open = 0;
}

iso_status iso_residency_rows(iso_residency *residency, uint32_t id, const uint32_t *rows,
                              uint32_t count, void *dst, iso_error *error)
{
    const weight *w = find(residency, id, error);
    unsigned char *out = dst;
    uint64_t row_bytes;

    if (w == NULL)
        return ISO_BAD_ARGUMENT;
    if (w->group != ISO_GROUP_ROWS || w->mapped == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: %s", w->name,
                        w->group != ISO_GROUP_ROWS ? "no table of rows" : "not filled");
    row_bytes = w->bytes / (uint64_t)w->desc.extent[0];
    for (uint32_t i = 0; i < count; i++)
        if (rows[i] >= (uint64_t)w->desc.extent[0])
            return iso_fail(error, ISO_BAD_INDEX, "%s: row %u of %lld", w->name, rows[i],
                            (long long)w->desc.extent[0]);
    for (uint32_t i = 0; i < count; i++)
        memcpy(out + i * row_bytes, w->mapped + rows[i] * row_bytes, (size_t)row_bytes);
    residency->stats.rows_read += count;
    residency->stats.row_bytes_read += count * row_bytes;
    return ISO_OK;
}

void iso_residency_get_stats(const iso_residency *residency, iso_residency_stats *stats)
{
    *stats = residency->stats;
}
