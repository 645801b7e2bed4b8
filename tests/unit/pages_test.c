/* pages_test: what the kernel says about the pages of large buffers whose device was asked for huge
 * or interleaved ones. Where the system grants neither, opening such a device must say so. */
#include "tests/unit/unit.h"

#include "core/backends.h"
#include "core/os.h"

#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 9 << 20, SMALL = 1 << 20 };

static iso_error error;

/* False if the device refused the wish, with `text`. */
static bool open_device(iso_pages pages, const char *text, const iso_backend **backend,
                        iso_device **device)
{
    const iso_backend_options options = {.thread_count = 1, .pages = pages};
    const iso_status status = iso_backend_open_device("cpu", &options, backend, device, &error);

    if (status == ISO_OK)
        return true;
    assert_int_equal(status, ISO_UNSUPPORTED);
    assert_non_null(strstr(error.text, text));
    return false;
}

/* Whether the mapping that holds an address has a flag in /proc/self/smaps. */
static bool has_flag(const void *address, const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    unsigned long long begin, end;
    char line[512];
    bool is_inside = false, is_found = false;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
            is_inside = (uintptr_t)address >= begin && (uintptr_t)address < end;
        else if (is_inside && strncmp(line, "VmFlags:", 8) == 0)
            is_found = strstr(line, flag) != NULL;
    }
    fclose(file);
    return is_found;
}

static int policy_of(const void *address)
{
    int mode = -1;

    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, address, MPOL_F_ADDR) != 0)
        return -1;
    return mode;
}

static unsigned char *create(const iso_backend *backend, iso_device *device, uint64_t bytes,
                             iso_buffer **buffer)
{
    const iso_buffer_spec spec = {ISO_MEMORY_SHARED, bytes, 64, "pages"};
    void *host = NULL;

    assert_ok(backend->buffer_create(device, &spec, buffer, &error), error);
    assert_ok(backend->buffer_map(*buffer, &host, &error), error);
    memset(host, 7, (size_t)bytes);
    return host;
}

static void large_buffers_ask_for_huge_pages(void **state)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    FILE *file = fopen(path, "r");
    char line[128] = "[never]";
    const iso_backend *backend;
    iso_device *device = NULL;
    iso_buffer *buffer = NULL, *small = NULL;
    bool is_offered;

    (void)state;
    if (file != NULL) {
        assert_non_null(fgets(line, sizeof line, file));
        fclose(file);
    }
    is_offered = strstr(line, "[never]") == NULL;
    assert_int_equal(open_device((iso_pages){.is_huge = true}, "huge pages", &backend, &device),
                     is_offered);
    if (!is_offered)
        return;
    assert_true(has_flag(create(backend, device, LARGE, &buffer) + LARGE / 2, " hg"));
    assert_false(has_flag(create(backend, device, SMALL, &small) + SMALL / 2, " hg"));
    backend->buffer_destroy(&small);
    backend->buffer_destroy(&buffer);
    backend->close(&device);
}

static void large_buffers_are_interleaved(void **state)
{
    const iso_backend *backend;
    iso_device *device = NULL;
    iso_buffer *buffer = NULL, *small = NULL;
    const bool is_offered = open_device((iso_pages){.is_interleaved = true}, "mbind", &backend,
                                        &device);

    (void)state;
    if (!is_offered)
        return;
    assert_int_equal(policy_of(create(backend, device, LARGE, &buffer) + LARGE / 2),
                     MPOL_INTERLEAVE);
    assert_int_not_equal(policy_of(create(backend, device, SMALL, &small) + SMALL / 2),
                         MPOL_INTERLEAVE);
    backend->buffer_destroy(&small);
    backend->buffer_destroy(&buffer);
    backend->close(&device);
}

static void nothing_is_asked_for_by_default(void **state)
{
    const iso_backend *backend;
    iso_device *device = NULL;
    iso_buffer *buffer = NULL;
    unsigned char *data;

    (void)state;
    assert_true(open_device((iso_pages){.is_huge = false}, "", &backend, &device));
    data = create(backend, device, LARGE, &buffer) + LARGE / 2;
    assert_false(has_flag(data, " hg"));
    assert_int_not_equal(policy_of(data), MPOL_INTERLEAVE);
    backend->buffer_destroy(&buffer);
    backend->close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_buffers_ask_for_huge_pages),
        cmocka_unit_test(large_buffers_are_interleaved),
        cmocka_unit_test(nothing_is_asked_for_by_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
