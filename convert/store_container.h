/* store_container: iso_store over one container file (container.h), opened by mmap. Tensors are
 * lent in place, in the layout they lie in; names, dtypes and shapes are the checkpoint's. */
#ifndef ISO_CONVERT_STORE_CONTAINER_H
#define ISO_CONVERT_STORE_CONTAINER_H

#include "convert/container.h"
#include "core/store.h"

/* iso_store_open of isobit.h, for this format: the file must be complete and not bear the name of
 * one that is being written. */
iso_status iso_store_open_container(const char *path, iso_store **store, iso_error *error);
/* The same under any name. */
iso_status iso_store_open_unnamed(const char *path, iso_store **store, iso_error *error);

/* NULL if the store is no container. */
const iso_container *iso_store_container(const iso_store *store);

#endif
