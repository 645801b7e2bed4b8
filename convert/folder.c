#include "convert/folder.h"

#include "core/check.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

enum { PATH_ROOM = 3072 + 96 };

static iso_status fail_errno(iso_error *error, const char *what, const char *path, int code)
{
    (void)iso_fail(error, ISO_IO, "%s: %s: %s", path, what, strerror(code));
    if (error != NULL)
        error->driver_code = code;
    return ISO_IO;
}

static const char *path_of(const iso_folder *folder, const char *name, const char *suffix,
                           char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/%s%s", folder->path, name, suffix);
    return path;
}

static const char *current(const iso_folder *folder) { return folder->names[folder->count - 1]; }

static iso_status check_empty(const char *path, iso_error *error)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    char found[256] = "";

    if (directory == NULL)
        return errno == ENOTDIR
                   ? iso_fail(error, ISO_BAD_ARGUMENT, "%s: exists and is no directory", path)
                   : fail_errno(error, "cannot open the directory", path, errno);
    while ((entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            snprintf(found, sizeof found, "%s", entry->d_name);
    closedir(directory);
    if (found[0] != '\0')
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: expected an absent or empty directory, it "
                        "has %s", path, found);
    return ISO_OK;
}

iso_status iso_folder_begin(const char *path, iso_folder *folder, iso_error *error)
{
    *folder = (iso_folder){0};
    if (path[0] == '\0'
        || snprintf(folder->path, sizeof folder->path, "%s", path) >= (int)sizeof folder->path)
        return iso_fail(error, ISO_BAD_ARGUMENT, "directory name of %zu bytes", strlen(path));
    if (mkdir(path, 0777) == 0) {
        folder->is_new = true;
        return ISO_OK;
    }
    if (errno != EEXIST)
        return fail_errno(error, "cannot make the directory", path, errno);
    return check_empty(path, error);
}

/* A file system that does not tell is taken at its word when it is full. */
iso_status iso_folder_room(const iso_folder *folder, uint64_t bytes, iso_error *error)
{
    struct statvfs room;
    uint64_t bytes_free;

    if (statvfs(folder->path, &room) != 0
        || !iso_mul_u64(room.f_bavail, room.f_frsize, &bytes_free) || bytes <= bytes_free)
        return ISO_OK;
    return iso_fail(error, ISO_IO, "%s: %llu bytes to write, %llu free", folder->path,
                    (unsigned long long)bytes, (unsigned long long)bytes_free);
}

iso_status iso_folder_file(iso_folder *folder, const char *name, iso_error *error)
{
    char path[PATH_ROOM];

    ISO_ASSERT(folder->file == NULL && folder->count < ISO_FOLDER_FILES_MAX);
    ISO_ASSERT(strlen(name) <= ISO_FOLDER_NAME_MAX);
    snprintf(folder->names[folder->count++], sizeof folder->names[0], "%s", name);
    folder->file = fopen(path_of(folder, name, ".part", path), "wb");
    if (folder->file == NULL)
        return fail_errno(error, "cannot create", path, errno);
    return ISO_OK;
}

iso_status iso_folder_write(iso_folder *folder, const void *data, size_t bytes, iso_error *error)
{
    char path[PATH_ROOM];

    if (bytes != 0 && fwrite(data, 1, bytes, folder->file) != bytes)
        return fail_errno(error, "cannot write", path_of(folder, current(folder), "", path),
                          errno);
    return ISO_OK;
}

iso_status iso_folder_extend(iso_folder *folder, uint64_t bytes, iso_error *error)
{
    char path[PATH_ROOM];
    int code = 0;

    if (bytes > INT64_MAX)
        code = EFBIG;
    else if (fflush(folder->file) != 0 || ftruncate(fileno(folder->file), (off_t)bytes) != 0)
        code = errno;
    if (code != 0)
        return fail_errno(error, "cannot extend", path_of(folder, current(folder), "", path),
                          code);
    return ISO_OK;
}

iso_status iso_folder_commit(iso_folder *folder, iso_error *error)
{
    char from[PATH_ROOM], to[PATH_ROOM];
    const char *name = current(folder);
    const int closed = fclose(folder->file);

    folder->file = NULL;
    path_of(folder, name, "", to);
    if (closed != 0)
        return fail_errno(error, "cannot write", to, errno);
    if (rename(path_of(folder, name, ".part", from), to) != 0)
        return fail_errno(error, "cannot rename", to, errno);
    return ISO_OK;
}

iso_status iso_folder_put(iso_folder *folder, const char *name, const void *data, size_t bytes,
                          iso_error *error)
{
    ISO_TRY(iso_folder_file(folder, name, error));
    ISO_TRY(iso_folder_write(folder, data, bytes, error));
    return iso_folder_commit(folder, error);
}

void iso_folder_discard(iso_folder *folder)
{
    char path[PATH_ROOM];

    if (folder->file != NULL)
        (void)fclose(folder->file);
    folder->file = NULL;
    for (uint32_t i = 0; i < folder->count; i++) {
        (void)unlink(path_of(folder, folder->names[i], ".part", path));
        (void)unlink(path_of(folder, folder->names[i], "", path));
    }
    if (folder->is_new)
        (void)rmdir(folder->path);
}
