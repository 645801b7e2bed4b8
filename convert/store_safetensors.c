#include "convert/store_safetensors.h"

#include "convert/shard.h"
#include "core/alloc.h"
#include "core/json.h"
#include "core/os.h"

#include <stdlib.h>
#include <string.h>

typedef struct safetensors_store {
    iso_store base;
    char directory[4096];
    iso_shard *shards;               /* shard_count opened so far, of shard_room */
    size_t shard_count, shard_room;
    const iso_shard_tensor **order;  /* all tensors, by name */
    size_t tensor_count;
} safetensors_store;

/* ---- the class ---- */

static const safetensors_store *of(const iso_store *store)
{
    return (const safetensors_store *)store;
}

static void store_free(safetensors_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->shard_count; i++)
        iso_shard_close(&store->shards[i]);
    iso_release(store->shards, store->shard_room * sizeof *store->shards);
    iso_release(store->order, store->tensor_count * sizeof *store->order);
    iso_release(store, sizeof *store);
}

static void store_close(iso_store *store) { store_free((safetensors_store *)store); }

static size_t store_count(const iso_store *store) { return of(store)->tensor_count; }

static void describe(const iso_shard_tensor *from, iso_store_tensor *to)
{
    const iso_shard *shard = from->shard;

    to->name = from->name;
    to->file = shard->file;
    to->dtype = from->dtype;
    to->rank = from->rank;
    memcpy(to->extent, from->extent, sizeof to->extent);
    to->bytes = from->end - from->begin;
    to->layout = ISO_LAYOUT_PLAIN;
    to->is_clean = false;
    to->cleaned = 0;
    to->file_offset = shard->payload + from->begin;
    to->data = shard->data + to->file_offset;
}

static void store_at(const iso_store *store, size_t index, iso_store_tensor *tensor)
{
    describe(of(store)->order[index], tensor);
}

static const iso_shard_tensor *find(const safetensors_store *store, const char *name)
{
    size_t low = 0, high = store->tensor_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, store->order[middle]->name);

        if (order == 0)
            return store->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool store_find(const iso_store *store, const char *name, iso_store_tensor *tensor)
{
    const iso_shard_tensor *found = find(of(store), name);

    if (found != NULL)
        describe(found, tensor);
    return found != NULL;
}

static const char *store_path(const iso_store *store) { return of(store)->directory; }

static iso_status store_text(const iso_store *store, const char *name, size_t bytes_max,
                             char **text, size_t *bytes, iso_error *error)
{
    char path[2 * sizeof of(store)->directory];

    snprintf(path, sizeof path, "%s/%s", of(store)->directory, name);
    return iso_json_read_text(path, bytes_max, text, bytes, error);
}

static const iso_store_class safetensors_class = {
    .close = store_close,
    .count = store_count,
    .at = store_at,
    .find = store_find,
    .path = store_path,
    .text = store_text,
};

/* ---- shards ---- */

static iso_status reserve_shards(safetensors_store *store, size_t count, iso_error *error)
{
    if (count > ISO_STORE_SHARDS_MAX)
        return iso_fail(error, ISO_LIMIT, "%s: %zu shards, limit %d", store->directory, count,
                        ISO_STORE_SHARDS_MAX);
    store->shards = iso_alloc_zero(count, sizeof *store->shards, "store.shards");
    if (store->shards == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for %zu shards", count);
    store->shard_room = count;
    return ISO_OK;
}

static iso_status open_shard(safetensors_store *store, const char *file, iso_error *error)
{
    ISO_ASSERT(store->shard_count < store->shard_room);
    ISO_TRY(iso_shard_open(store->directory, file, &store->shards[store->shard_count], error));
    store->shard_count++;
    return ISO_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const iso_shard_tensor *const *)a)->name,
                  (*(const iso_shard_tensor *const *)b)->name);
}

/* Puts the tensors of all shards in name order; a name in two shards is refused. */
static iso_status merge(safetensors_store *store, iso_error *error)
{
    size_t count = 0, used = 0;

    for (size_t i = 0; i < store->shard_count; i++)
        count += store->shards[i].tensor_count;
    if (count == 0)
        return iso_fail(error, ISO_BAD_FILE, "%s: no tensors", store->directory);
    store->order = iso_alloc_zero(count, sizeof *store->order, "store.order");
    if (store->order == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for %zu tensors", count);
    store->tensor_count = count;
    for (size_t i = 0; i < store->shard_count; i++)
        for (size_t k = 0; k < store->shards[i].tensor_count; k++)
            store->order[used++] = &store->shards[i].tensors[k];
    qsort(store->order, count, sizeof *store->order, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(store->order[i - 1]->name, store->order[i]->name) == 0)
            return iso_fail(error, ISO_BAD_TENSOR, "tensor %s is in two shards: %s and %s",
                            store->order[i]->name, store->order[i - 1]->shard->file,
                            store->order[i]->shard->file);
    return ISO_OK;
}

/* ---- the index ---- */

typedef struct index_file {
    iso_json_doc *doc;
    const iso_json *weight_map;      /* name -> file */
    const char **files;              /* distinct, sorted */
    size_t file_count, file_room;
} index_file;

static void index_free(index_file *index)
{
    iso_release(index->files, index->file_room * sizeof *index->files);
    iso_json_free(&index->doc);
}

static iso_status check_file_name(const char *file, const char *tensor, iso_error *error)
{
    const size_t length = file == NULL ? 0 : strlen(file);

    if (file == NULL)
        return iso_fail(error, ISO_BAD_FILE, "%s: weight_map: %s: its file is no string",
                        ISO_STORE_INDEX_FILE, tensor);
    if (length == 0 || length > ISO_SHARD_NAME_MAX || strpbrk(file, "/\\") != NULL
        || file[0] == '.')
        return iso_fail(error, ISO_BAD_FILE, "%s: weight_map: %s: \"%.100s\" is not a plain file "
                        "name", ISO_STORE_INDEX_FILE, tensor, file);
    return ISO_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct file names of the weight_map. */
static iso_status list_files(index_file *index, iso_error *error)
{
    const size_t count = iso_json_size(index->weight_map);
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *key;
    size_t used = 0;

    index->files = iso_alloc_zero(count, sizeof *index->files, "store.files");
    if (index->files == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for %zu index entries", count);
    index->file_room = count;
    while (iso_json_next(index->weight_map, &cursor, &key, &value)) {
        const char *file = iso_json_string(value, NULL);

        ISO_TRY(check_file_name(file, key, error));
        index->files[used++] = file;
    }
    qsort(index->files, used, sizeof *index->files, by_text);
    for (size_t i = 0; i < used; i++)
        if (i == 0 || strcmp(index->files[i], index->files[index->file_count - 1]) != 0)
            index->files[index->file_count++] = index->files[i];
    return ISO_OK;
}

static iso_status index_parse(const char *text, size_t bytes, index_file *index, iso_error *error)
{
    const iso_json *root;

    ISO_TRY(iso_json_parse(text, bytes, ISO_STORE_INDEX_FILE, &index->doc, error));
    root = iso_json_root(index->doc);
    if (iso_json_type_of(root) != ISO_JSON_OBJECT)
        return iso_fail(error, ISO_BAD_FILE, "%s: expected an object", ISO_STORE_INDEX_FILE);
    index->weight_map = iso_json_get(root, "weight_map");
    if (index->weight_map == NULL)
        return iso_fail(error, ISO_BAD_FILE, "%s: key weight_map is missing",
                        ISO_STORE_INDEX_FILE);
    if (iso_json_type_of(index->weight_map) != ISO_JSON_OBJECT
        || iso_json_size(index->weight_map) == 0)
        return iso_fail(error, ISO_BAD_FILE, "%s: weight_map is empty or no object",
                        ISO_STORE_INDEX_FILE);
    return list_files(index, error);
}

/* Both directions: each entry of the weight_map is a tensor of that shard, and each tensor of a
 * shard has an entry. */
static iso_status check_index(const safetensors_store *store, const index_file *index,
                              iso_error *error)
{
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *key;

    while (iso_json_next(index->weight_map, &cursor, &key, &value)) {
        const char *file = iso_json_string(value, NULL);
        const iso_shard_tensor *tensor = find(store, key);

        if (tensor == NULL)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: tensor %.200s is assigned to %s, which "
                            "does not have it", ISO_STORE_INDEX_FILE, key, file);
        if (strcmp(tensor->shard->file, file) != 0)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: tensor %s is assigned to %s, but lies in "
                            "%s", ISO_STORE_INDEX_FILE, key, file, tensor->shard->file);
    }
    for (size_t i = 0; i < store->tensor_count; i++)
        if (iso_json_get(index->weight_map, store->order[i]->name) == NULL)
            return iso_fail(error, ISO_BAD_TENSOR, "%s: %s is not in the index",
                            store->order[i]->shard->file, store->order[i]->name);
    return ISO_OK;
}

/* metadata.total_size, when the index states it, is the sum of all spans. */
static iso_status check_total(const safetensors_store *store, const index_file *index,
                              iso_error *error)
{
    const iso_json *metadata = iso_json_get(iso_json_root(index->doc), "metadata");
    const iso_json *total = iso_json_get(metadata, "total_size");
    uint64_t sum = 0;
    int64_t stated;

    if (total == NULL)
        return ISO_OK;
    if (!iso_json_int(total, &stated))
        return iso_fail(error, ISO_BAD_FILE, "%s: metadata.total_size is no whole number",
                        ISO_STORE_INDEX_FILE);
    for (size_t i = 0; i < store->tensor_count; i++)
        sum += store->order[i]->end - store->order[i]->begin;
    if (stated < 0 || (uint64_t)stated != sum)
        return iso_fail(error, ISO_BAD_FILE, "%s: metadata.total_size is %lld, but the tensors "
                        "have %llu bytes", ISO_STORE_INDEX_FILE, (long long)stated,
                        (unsigned long long)sum);
    return ISO_OK;
}

static iso_status open_indexed(safetensors_store *store, const void *data, uint64_t bytes,
                               iso_error *error)
{
    index_file index = {0};
    iso_status status;

    if (bytes > ISO_STORE_INDEX_MAX)
        return iso_fail(error, ISO_LIMIT, "%s: %llu bytes, limit %d", ISO_STORE_INDEX_FILE,
                        (unsigned long long)bytes, ISO_STORE_INDEX_MAX);
    ISO_GOTO(index_parse(data == NULL ? "" : data, (size_t)bytes, &index, error));
    ISO_GOTO(reserve_shards(store, index.file_count, error));
    for (size_t i = 0; i < index.file_count; i++)
        ISO_GOTO(open_shard(store, index.files[i], error));
    ISO_GOTO(merge(store, error));
    ISO_GOTO(check_index(store, &index, error));
    ISO_GOTO(check_total(store, &index, error));
done:
    index_free(&index);
    return status;
}

/* ---- open ---- */

static iso_status open_single(safetensors_store *store, const char *file, iso_error *error)
{
    ISO_TRY(reserve_shards(store, 1, error));
    ISO_TRY(open_shard(store, file, error));
    return merge(store, error);
}

/* The index if there is one, else the single file. */
static iso_status open_directory(safetensors_store *store, iso_error *error)
{
    char path[sizeof store->directory + 64];
    const void *data = NULL;
    uint64_t bytes = 0;
    iso_status status;

    snprintf(path, sizeof path, "%s/%s", store->directory, ISO_STORE_INDEX_FILE);
    status = iso_os_map_file(path, &data, &bytes, error);
    if (status == ISO_OK) {
        status = open_indexed(store, data, bytes, error);
        iso_os_unmap(data, bytes);
        return status;
    }
    if (status != ISO_NOT_FOUND)
        return status;
    status = open_single(store, ISO_STORE_SINGLE_FILE, error);
    if (status == ISO_NOT_FOUND)
        return iso_fail(error, ISO_NOT_FOUND, "%s: not a checkpoint directory: it has neither %s "
                        "nor %s", store->directory, ISO_STORE_INDEX_FILE, ISO_STORE_SINGLE_FILE);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);

    return a >= b && strcmp(text + a - b, end) == 0;
}

static iso_status open_path(safetensors_store *store, const char *path, iso_error *error)
{
    const char *slash = strrchr(path, '/');
    size_t bytes = strlen(path);

    if (bytes == 0 || bytes >= sizeof store->directory - ISO_SHARD_NAME_MAX)
        return iso_fail(error, ISO_NOT_FOUND, "checkpoint path of %zu bytes", bytes);
    if (!ends_with(path, ".safetensors")) {
        memcpy(store->directory, path, bytes + 1);
        return open_directory(store, error);
    }
    if (slash == NULL)
        memcpy(store->directory, ".", 2);
    else
        memcpy(store->directory, path, slash == path ? 1 : (size_t)(slash - path));
    return open_single(store, slash == NULL ? path : slash + 1, error);
}

iso_status iso_store_open_safetensors(const char *path, iso_store **store, iso_error *error)
{
    safetensors_store *opened = iso_alloc_zero(1, sizeof *opened, "store");
    iso_status status;

    if (opened == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory opening %s", path);
    opened->base.type = &safetensors_class;
    status = open_path(opened, path, error);
    if (status != ISO_OK) {
        store_free(opened);
        return status;
    }
    *store = &opened->base;
    return ISO_OK;
}
