/* os: what the library asks of the operating system besides memory and stdio. CMake picks one
 * os_<system>.c. */
#ifndef ISO_CORE_OS_H
#define ISO_CORE_OS_H

#include "core/status.h"

/* Maps a regular file read-only. *data is page-aligned and valid until iso_os_unmap, also after
 * the path is removed; an empty file gives NULL and 0. The file must not shrink while mapped.
 * ISO_NOT_FOUND, ISO_BAD_FILE (a directory, a device), ISO_IO with the system's code. */
iso_status iso_os_map_file(const char *path, const void **data, uint64_t *bytes,
                           iso_error *error);
/* Ends a mapping of `bytes` bytes; NULL is fine. */
void iso_os_unmap(const void *data, uint64_t bytes);

bool iso_os_is_file(const char *path);   /* a regular file, or a link to one */

uint64_t iso_os_clock_ns(void);          /* monotonic; the origin is arbitrary */
uint64_t iso_os_page_bytes(void);
uint64_t iso_os_peak_rss(void);          /* most bytes this process has held; 0: not known */
uint64_t iso_os_memory_bytes(void);      /* of the machine; 0: not known */
uint64_t iso_os_memory_free(void);       /* available now without swapping; 0: not known */
uint32_t iso_os_cpu_count(void);         /* processors this process may run on; >= 1 */
void iso_os_yield(void);                 /* offers the processor to other threads */

/* A lock with a condition. `wait` gives the lock up while it sleeps and may wake early; false when
 * timeout_ns (UINT64_MAX: no limit) has passed. */
typedef struct iso_os_monitor iso_os_monitor;
iso_os_monitor *iso_os_monitor_create(void);             /* NULL: no memory */
void iso_os_monitor_destroy(iso_os_monitor *monitor);    /* NULL is fine */
void iso_os_monitor_lock(iso_os_monitor *monitor);
void iso_os_monitor_unlock(iso_os_monitor *monitor);
bool iso_os_monitor_wait(iso_os_monitor *monitor, uint64_t timeout_ns);
void iso_os_monitor_wake_all(iso_os_monitor *monitor);

#endif
