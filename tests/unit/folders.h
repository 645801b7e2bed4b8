/* folders: temporary directories and files of the checkpoint tests. */
#ifndef ISO_TESTS_FOLDERS_H
#define ISO_TESTS_FOLDERS_H

#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_PATH = 512 };

static inline char *folder_create(char path[FOLDER_PATH])
{
    const char *base = getenv("TMPDIR");

    snprintf(path, FOLDER_PATH, "%s/isobit-test-XXXXXX", base == NULL ? "." : base);
    assert_non_null(mkdtemp(path));
    return path;
}

/* Removes a directory of plain files and empty directories. */
static inline void folder_remove(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        char file[4 * FOLDER_PATH];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (unlink(file) != 0)
            assert_int_equal(rmdir(file), 0);
    }
    closedir(directory);
    assert_int_equal(rmdir(path), 0);
}

static inline uint32_t folder_entries(const char *path)
{
    DIR *directory = opendir(path);
    uint32_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2;
}

static inline void file_write(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[4 * FOLDER_PATH];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Overwrites bytes of an existing file. */
static inline void file_patch(const char *folder, const char *name, uint64_t at, const void *data,
                              size_t bytes)
{
    char path[4 * FOLDER_PATH];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* A whole file with a NUL behind it; free() it. */
static inline char *file_read(const char *folder, const char *name, size_t *bytes)
{
    char path[4 * FOLDER_PATH], *data;
    struct stat info;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    data = malloc((size_t)info.st_size + 1);
    assert_non_null(data);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    data[*bytes] = '\0';
    assert_int_equal(fclose(file), 0);
    return data;
}

/* Replaces the first occurrence of `from` in a file. */
static inline void file_replace(const char *folder, const char *name, const char *from,
                                const char *to)
{
    size_t bytes = 0;
    char *text = file_read(folder, name, &bytes);
    const char *at = memmem(text, bytes, from, strlen(from));
    char *edited;
    size_t head;

    assert_non_null(at);
    head = (size_t)(at - text);
    edited = malloc(bytes + strlen(to) + 1);
    assert_non_null(edited);
    memcpy(edited, text, head);
    memcpy(edited + head, to, strlen(to));
    memcpy(edited + head + strlen(to), at + strlen(from), bytes - head - strlen(from));
    file_write(folder, name, edited, bytes - strlen(from) + strlen(to));
    free(edited);
    free(text);
}

/* A safetensors file: the length field, the header text, payload_bytes bytes 0, 1, 2, ...
 * length < 0: the true length of the header. */
static inline void shard_write(const char *folder, const char *name, const char *header,
                               int64_t length, size_t payload_bytes)
{
    const size_t header_bytes = strlen(header);
    const uint64_t stated = length < 0 ? header_bytes : (uint64_t)length;
    uint8_t *data = malloc(8 + header_bytes + payload_bytes);

    assert_non_null(data);
    for (size_t i = 0; i < 8; i++)
        data[i] = (uint8_t)(stated >> 8 * i);
    memcpy(data + 8, header, header_bytes);
    for (size_t i = 0; i < payload_bytes; i++)
        data[8 + header_bytes + i] = (uint8_t)i;
    file_write(folder, name, data, 8 + header_bytes + payload_bytes);
    free(data);
}

#endif
