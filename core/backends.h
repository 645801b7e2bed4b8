/* backends: the list of compiled-in backends, from the rows of backends.def. */
#ifndef ISO_CORE_BACKENDS_H
#define ISO_CORE_BACKENDS_H

#include "core/backend.h"

size_t iso_backend_count(void);
const iso_backend *iso_backend_at(size_t index);
const iso_backend *iso_backend_find(const char *name);   /* NULL if not compiled in */

/* Opens a device by its text, "cpu" or "name:index". ISO_NO_DEVICE names what there is. */
iso_status iso_backend_open_device(const char *text, const iso_backend_options *options,
                                   const iso_backend **backend, iso_device **device,
                                   iso_error *error);

#endif
