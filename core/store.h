/* store: the interface of an open checkpoint. convert/ implements it (store_safetensors.c,
 * store_container.c); model/ and text/ read through it and never see a file format.
 *
 * A store is immutable after open and may be used by any number of threads. Tensor names are the
 * released ones (bare, official naming). */
#ifndef ISO_CORE_STORE_H
#define ISO_CORE_STORE_H

#include "core/tensor.h"

typedef struct iso_store_tensor {
    const char *name;                /* lent, NUL-terminated */
    const char *file;                /* shard file name, for messages; lent */
    iso_dtype dtype;                 /* as stored: packed FP4 experts are I8 */
    uint32_t rank;                   /* 0 .. 4; a scalar has rank 0 and 1 element */
    int64_t extent[ISO_RANK_MAX];
    iso_layout layout;               /* of the bytes; two I8 codes a byte are packed as e2m1 */
    uint64_t bytes;                  /* in this layout */
    const void *data;                /* mapped, read-only, any alignment; valid while open */
    uint64_t file_offset;            /* of the payload's first byte in the shard */
    bool is_clean;                   /* admitted and cleaned when it was written (model/admit.h) */
    uint64_t cleaned;                /* values that this changed */
} iso_store_tensor;

/* What an implementation provides; iso_store's first member. */
typedef struct iso_store_class {
    void (*close)(iso_store *store);
    size_t (*count)(const iso_store *store);
    void (*at)(const iso_store *store, size_t index, iso_store_tensor *tensor);  /* name order */
    bool (*find)(const iso_store *store, const char *name, iso_store_tensor *tensor);
    const char *(*path)(const iso_store *store);      /* the directory or container; lent */
    iso_status (*text)(const iso_store *store, const char *name, size_t bytes_max, char **text,
                       size_t *bytes, iso_error *error);
} iso_store_class;

struct iso_store {
    const iso_store_class *type;
};

size_t iso_store_count(const iso_store *store);
void iso_store_at(const iso_store *store, size_t index, iso_store_tensor *tensor);
/* False if there is no such tensor (*tensor is then untouched). O(log n). */
bool iso_store_find(const iso_store *store, const char *name, iso_store_tensor *tensor);
const char *iso_store_path(const iso_store *store);
/* Reads a text file of the checkpoint, "config.json" or "inference/config.json", of at most
 * bytes_max bytes. *text has a NUL behind it and is ended with iso_free. ISO_NOT_FOUND, ISO_IO,
 * ISO_LIMIT, ISO_NO_MEMORY. */
iso_status iso_store_text(const iso_store *store, const char *name, size_t bytes_max,
                          char **text, size_t *bytes, iso_error *error);

#endif
