#include "core/store.h"

size_t iso_store_count(const iso_store *store) { return store->type->count(store); }

void iso_store_at(const iso_store *store, size_t index, iso_store_tensor *tensor)
{
    ISO_ASSERT(index < iso_store_count(store));
    store->type->at(store, index, tensor);
}

bool iso_store_find(const iso_store *store, const char *name, iso_store_tensor *tensor)
{
    return store->type->find(store, name, tensor);
}

const char *iso_store_path(const iso_store *store) { return store->type->path(store); }

iso_status iso_store_text(const iso_store *store, const char *name, size_t bytes_max,
                          char **text, size_t *bytes, iso_error *error)
{
    return store->type->text(store, name, bytes_max, text, bytes, error);
}

void iso_store_close(iso_store **store)
{
    if (store == NULL || *store == NULL)
        return;
    (*store)->type->close(*store);
    *store = NULL;
}
