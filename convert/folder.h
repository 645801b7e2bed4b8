/* folder: a new directory that is filled with files, or removed again.
 *
 * Files are written one at a time under NAME.part and renamed when they are complete. After a
 * failure iso_folder_discard removes every file that was written, and the directory if it was made
 * here; nothing that existed before is touched. */
#ifndef ISO_CONVERT_FOLDER_H
#define ISO_CONVERT_FOLDER_H

#include "core/status.h"

#include <stdio.h>

enum { ISO_FOLDER_NAME_MAX = 63, ISO_FOLDER_FILES_MAX = 256 };

typedef struct iso_folder {
    char path[3072];
    bool is_new;                     /* the directory was made here */
    FILE *file;                      /* being written, or NULL */
    uint32_t count;                  /* files begun */
    char names[ISO_FOLDER_FILES_MAX][ISO_FOLDER_NAME_MAX + 1];
} iso_folder;

/* Makes the directory, or takes it if it exists and is empty. ISO_BAD_ARGUMENT, ISO_IO. */
iso_status iso_folder_begin(const char *path, iso_folder *folder, iso_error *error);
/* Whether the file system has room for so many bytes; ISO_IO with both figures when it says no. */
iso_status iso_folder_room(const iso_folder *folder, uint64_t bytes, iso_error *error);
iso_status iso_folder_file(iso_folder *folder, const char *name, iso_error *error);
iso_status iso_folder_write(iso_folder *folder, const void *data, size_t bytes, iso_error *error);
/* Makes the file `bytes` long; the part never written is a hole that reads as zeros. */
iso_status iso_folder_extend(iso_folder *folder, uint64_t bytes, iso_error *error);
/* Closes the file and gives it its name. */
iso_status iso_folder_commit(iso_folder *folder, iso_error *error);
/* A whole file at once. */
iso_status iso_folder_put(iso_folder *folder, const char *name, const void *data, size_t bytes,
                          iso_error *error);
void iso_folder_discard(iso_folder *folder);

#endif
