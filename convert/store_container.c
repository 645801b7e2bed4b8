#include "convert/store_container.h"

#include "core/alloc.h"
#include "core/hash.h"
#include "core/os.h"

#include <stdlib.h>
#include <string.h>

typedef struct container_store {
    iso_store base;
    char path[4096];
    const char *file;                /* the last part of the path */
    const void *data;
    uint64_t bytes;
    iso_container container;
    const iso_container_tensor **order;  /* by name */
} container_store;

static const container_store *of(const iso_store *store) { return (const container_store *)store; }

static void store_free(container_store *store)
{
    if (store == NULL)
        return;
    if (store->order != NULL)
        iso_release(store->order, store->container.tensor_count * sizeof *store->order);
    iso_container_free(&store->container);
    iso_os_unmap(store->data, store->bytes);
    iso_release(store, sizeof *store);
}

static void store_close(iso_store *store) { store_free((container_store *)store); }

static size_t store_count(const iso_store *store) { return of(store)->container.tensor_count; }

/* Two codes a byte have the checkpoint's dtype and shape: i8 [rows, columns / 2]. */
static void describe(const container_store *store, const iso_container_tensor *from,
                     iso_store_tensor *to)
{
    const bool is_fp4 = from->desc.dtype == ISO_DTYPE_E2M1;

    *to = (iso_store_tensor){
        .name = from->name, .file = store->file, .rank = from->desc.rank,
        .dtype = is_fp4 ? ISO_DTYPE_I8 : from->desc.dtype, .layout = from->desc.layout,
        .bytes = from->bytes, .data = (const uint8_t *)store->data + from->offset,
        .file_offset = from->offset, .is_clean = true, .cleaned = from->cleaned,
    };
    memcpy(to->extent, from->desc.extent, sizeof to->extent);
    if (is_fp4 && to->rank != 0)
        to->extent[to->rank - 1] /= 2;
}

static void store_at(const iso_store *store, size_t index, iso_store_tensor *tensor)
{
    describe(of(store), of(store)->order[index], tensor);
}

static bool store_find(const iso_store *store, const char *name, iso_store_tensor *tensor)
{
    size_t low = 0, high = of(store)->container.tensor_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const iso_container_tensor *at = of(store)->order[middle];
        const int order = strcmp(name, at->name);

        if (order == 0) {
            describe(of(store), at, tensor);
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

static const char *store_path(const iso_store *store) { return of(store)->path; }

static iso_status copy_text(const container_store *store, const iso_container_text *file,
                            char **text, size_t *bytes, iso_error *error)
{
    const uint8_t *data = (const uint8_t *)store->data + file->offset;
    uint64_t hash[2];
    char *copy;

    iso_hash(data, (size_t)file->bytes, hash);
    if (memcmp(hash, file->hash, sizeof hash) != 0)
        return iso_fail(error, ISO_BAD_FILE, "%s: %s does not have its hash: it was changed after "
                        "it was written", store->path, file->name);
    copy = iso_alloc_public((size_t)file->bytes + 1);
    if (copy == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "%s: %s: out of memory", store->path, file->name);
    memcpy(copy, data, (size_t)file->bytes);
    copy[file->bytes] = '\0';
    *text = copy;
    *bytes = (size_t)file->bytes;
    return ISO_OK;
}

static iso_status store_text(const iso_store *store, const char *name, size_t bytes_max,
                             char **text, size_t *bytes, iso_error *error)
{
    const iso_container *container = &of(store)->container;

    for (uint32_t i = 0; i < container->file_count; i++) {
        const iso_container_text *file = &container->files[i];

        if (strcmp(file->name, name) != 0)
            continue;
        if (file->bytes > bytes_max)
            return iso_fail(error, ISO_LIMIT, "%s: %s: %llu bytes, limit %zu", of(store)->path,
                            name, (unsigned long long)file->bytes, bytes_max);
        return copy_text(of(store), file, text, bytes, error);
    }
    return iso_fail(error, ISO_NOT_FOUND, "%s: has no file %s", of(store)->path, name);
}

static const iso_store_class container_class = {
    .close = store_close,
    .count = store_count,
    .at = store_at,
    .find = store_find,
    .path = store_path,
    .text = store_text,
};

const iso_container *iso_store_container(const iso_store *store)
{
    return store->type == &container_class ? &of(store)->container : NULL;
}

/* ---- open ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const iso_container_tensor *const *)a)->name,
                  (*(const iso_container_tensor *const *)b)->name);
}

static iso_status sort(container_store *store, iso_error *error)
{
    const uint32_t count = store->container.tensor_count;

    store->order = iso_alloc_zero(count, sizeof *store->order, "store.order");
    if (store->order == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for %u tensors", count);
    for (uint32_t i = 0; i < count; i++)
        store->order[i] = &store->container.tensors[i];
    qsort(store->order, count, sizeof *store->order, by_name);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(store->order[i - 1]->name, store->order[i]->name) == 0)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: tensor %s is there twice", store->path,
                            store->order[i]->name);
    return ISO_OK;
}

static iso_status open_path(container_store *store, const char *path, iso_error *error)
{
    const char *slash;

    if (snprintf(store->path, sizeof store->path, "%s", path) >= (int)sizeof store->path)
        return iso_fail(error, ISO_NOT_FOUND, "container path of %zu bytes", strlen(path));
    slash = strrchr(store->path, '/');
    store->file = slash == NULL ? store->path : slash + 1;
    ISO_TRY(iso_os_map_file(path, &store->data, &store->bytes, error));
    ISO_TRY(iso_container_read(store->data, store->bytes, path, &store->container, error));
    return sort(store, error);
}

iso_status iso_store_open_unnamed(const char *path, iso_store **store, iso_error *error)
{
    container_store *opened = iso_alloc_zero(1, sizeof *opened, "store");
    iso_status status;

    if (opened == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory opening %s", path);
    opened->base.type = &container_class;
    status = open_path(opened, path, error);
    if (status != ISO_OK) {
        store_free(opened);
        return status;
    }
    *store = &opened->base;
    return ISO_OK;
}

iso_status iso_store_open_container(const char *path, iso_store **store, iso_error *error)
{
    const size_t bytes = strlen(path), suffix = strlen(ISO_CONTAINER_SUFFIX);

    if (bytes >= suffix && strcmp(path + bytes - suffix, ISO_CONTAINER_SUFFIX) == 0)
        return iso_fail(error, ISO_BAD_FILE, "%s: a conversion that has not ended", path);
    return iso_store_open_unnamed(path, store, error);
}
