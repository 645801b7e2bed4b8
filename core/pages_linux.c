/* Linux: transparent huge pages by madvise(2); interleaving by mbind(2), which libc does not wrap.
 * The nodes with memory come from /sys/devices/system/node/has_memory. */
#include "core/pages.h"

#include "core/os.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE_BYTES = 4 << 20, NODES_MAX = 1024, WORD_BITS = 64 };

typedef struct node_mask {
    uint64_t word[NODES_MAX / WORD_BITS];
} node_mask;

/* The first line of a small file, without its end; false if it cannot be read. */
static bool read_line(const char *path, char *line, int bytes)
{
    FILE *file = fopen(path, "r");
    const bool is_read = file != NULL && fgets(line, bytes, file) != NULL;

    if (file != NULL)
        fclose(file);
    if (is_read)
        line[strcspn(line, "\n")] = '\0';
    return is_read;
}

/* "0-1,3" */
static node_mask nodes_with_memory(void)
{
    node_mask mask = {{0}};
    char line[256];
    const char *at = line;
    unsigned first, last;
    int used;

    if (!read_line("/sys/devices/system/node/has_memory", line, sizeof line))
        line[0] = '\0';
    while (sscanf(at, "%u%n", &first, &used) == 1) {
        at += used;
        last = first;
        if (sscanf(at, "-%u%n", &last, &used) == 1)
            at += used;
        for (unsigned node = first; node <= last && node < NODES_MAX; node++)
            mask.word[node / WORD_BITS] |= (uint64_t)1 << node % WORD_BITS;
        at += *at == ',';
    }
    if (line[0] == '\0')
        mask.word[0] = 1;                /* a system that does not list nodes has one */
    return mask;
}

static bool interleave(void *memory, size_t bytes)
{
    const node_mask mask = nodes_with_memory();

    return syscall(SYS_mbind, memory, bytes, MPOL_INTERLEAVE, mask.word, NODES_MAX, 0) == 0;
}

static iso_status check_huge(iso_error *error)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    char line[128];

    if (!read_line(path, line, sizeof line))
        return iso_fail(error, ISO_UNSUPPORTED, "huge pages: %s cannot be read: this system has "
                        "none", path);
    if (strstr(line, "[never]") != NULL)
        return iso_fail(error, ISO_UNSUPPORTED, "huge pages: %s says \"%s\", expected always or "
                        "madvise", path, line);
    return ISO_OK;
}

static iso_status check_interleave(iso_error *error)
{
    const size_t bytes = iso_os_page_bytes();
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int code;

    if (page == MAP_FAILED)
        return iso_fail(error, ISO_NO_MEMORY, "no page to try interleaving with");
    code = interleave(page, bytes) ? 0 : errno;
    munmap(page, bytes);
    if (code != 0)
        return iso_fail(error, ISO_UNSUPPORTED, "interleaved pages: mbind: %s", strerror(code));
    return ISO_OK;
}

iso_status iso_pages_check(const iso_pages *wish, iso_error *error)
{
    if (wish->is_huge)
        ISO_TRY(check_huge(error));
    if (wish->is_interleaved)
        ISO_TRY(check_interleave(error));
    return ISO_OK;
}

void iso_pages_apply(const iso_pages *wish, void *memory, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)iso_os_page_bytes();
    const uintptr_t begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)memory + (uintptr_t)bytes) & ~(page - 1);

    if (bytes < LARGE_BYTES)
        return;
    /* Granted by the check: what fails now costs speed only. */
    if (wish->is_interleaved)
        (void)interleave((void *)begin, end - begin);
    if (wish->is_huge)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}
