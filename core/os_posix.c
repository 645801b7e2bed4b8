#include "core/os.h"

#include "core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static iso_status fail_errno(iso_error *error, const char *path, int code)
{
    const iso_status status = code == ENOENT || code == ENOTDIR ? ISO_NOT_FOUND : ISO_IO;

    (void)iso_fail(error, status, "%s: %s", path, strerror(code));
    if (error != NULL)
        error->driver_code = code;
    return status;
}

static iso_status map_open_file(int fd, const char *path, const void **data, uint64_t *bytes,
                                iso_error *error)
{
    struct stat info;
    void *memory;

    if (fstat(fd, &info) != 0)
        return fail_errno(error, path, errno);
    if (!S_ISREG(info.st_mode))
        return iso_fail(error, ISO_BAD_FILE, "%s: %s, expected a regular file", path,
                        S_ISDIR(info.st_mode) ? "a directory" : "not a file");
    if (info.st_size == 0) {
        *data = NULL;
        *bytes = 0;
        return ISO_OK;
    }
    if ((uint64_t)info.st_size > SIZE_MAX)
        return iso_fail(error, ISO_LIMIT, "%s: %lld bytes do not fit the address space", path,
                        (long long)info.st_size);
    memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return fail_errno(error, path, errno);
    *data = memory;
    *bytes = (uint64_t)info.st_size;
    return ISO_OK;
}

iso_status iso_os_map_file(const char *path, const void **data, uint64_t *bytes, iso_error *error)
{
    /* O_NONBLOCK: opening a named pipe must fail the check below, not hang. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    iso_status status;

    if (fd < 0)
        return fail_errno(error, path, errno);
    status = map_open_file(fd, path, data, bytes, error);
    close(fd);
    return status;
}

bool iso_os_is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

void iso_os_unmap(const void *data, uint64_t bytes)
{
    if (data != NULL)
        munmap((void *)(uintptr_t)data, (size_t)bytes);
}

uint64_t iso_os_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t sysconf_or(int name, uint64_t otherwise)
{
    const int64_t value = sysconf(name);

    return value > 0 ? (uint64_t)value : otherwise;
}

uint64_t iso_os_page_bytes(void) { return sysconf_or(_SC_PAGESIZE, 4096); }

uint64_t iso_os_memory_bytes(void) { return sysconf_or(_SC_PHYS_PAGES, 0) * iso_os_page_bytes(); }

/* "MemAvailable" counts the page cache, which mapped checkpoints fill, as available. */
uint64_t iso_os_memory_free(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long long kilobytes = 0;
    char line[128];

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
            break;
    fclose(file);
    return (uint64_t)kilobytes * 1024;
}

uint64_t iso_os_peak_rss(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (uint64_t)usage.ru_maxrss * 1024;      /* Linux counts kilobytes */
}

uint32_t iso_os_cpu_count(void)
{
    cpu_set_t set;
    int count;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return (uint32_t)sysconf_or(_SC_NPROCESSORS_ONLN, 1);   /* > 1024 processors */
    count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

void iso_os_yield(void) { sched_yield(); }

struct iso_os_monitor {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

static bool init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    bool is_made;

    if (pthread_condattr_init(&attributes) != 0)
        return false;
    is_made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0
           && pthread_cond_init(condition, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return is_made;
}

iso_os_monitor *iso_os_monitor_create(void)
{
    iso_os_monitor *monitor = iso_alloc_zero(1, sizeof *monitor, "monitor");

    if (monitor == NULL)
        return NULL;
    if (pthread_mutex_init(&monitor->mutex, NULL) == 0) {
        if (init_condition(&monitor->condition))
            return monitor;
        pthread_mutex_destroy(&monitor->mutex);
    }
    iso_release(monitor, sizeof *monitor);
    return NULL;
}

void iso_os_monitor_destroy(iso_os_monitor *monitor)
{
    if (monitor == NULL)
        return;
    pthread_cond_destroy(&monitor->condition);
    pthread_mutex_destroy(&monitor->mutex);
    iso_release(monitor, sizeof *monitor);
}

void iso_os_monitor_lock(iso_os_monitor *monitor) { pthread_mutex_lock(&monitor->mutex); }
void iso_os_monitor_unlock(iso_os_monitor *monitor) { pthread_mutex_unlock(&monitor->mutex); }
void iso_os_monitor_wake_all(iso_os_monitor *monitor)
{
    pthread_cond_broadcast(&monitor->condition);
}

bool iso_os_monitor_wait(iso_os_monitor *monitor, uint64_t timeout_ns)
{
    const uint64_t now = iso_os_clock_ns();
    struct timespec end;

    if (timeout_ns > INT64_MAX - now)
        return pthread_cond_wait(&monitor->condition, &monitor->mutex) == 0;
    end.tv_sec = (time_t)((now + timeout_ns) / 1000000000u);
    end.tv_nsec = (int64_t)((now + timeout_ns) % 1000000000u);
    return pthread_cond_timedwait(&monitor->condition, &monitor->mutex, &end) == 0;
}
