/* container: one aligned file with a whole checkpoint: what its bytes mean (docs/formats.md), read
 * and checked. convert/container_file.c writes them.
 *
 *   page 0      fixed fields; written last, so that a file without it is no container
 *   payload     tensors, then text files; each at a multiple of 4,096 with zeros before it, except
 *               a tensor that continues the one before (experts of one matrix)
 *   directory   a record per tensor, a record per file, names
 *
 * A directory that is accepted describes the file completely: every byte is page 0, in exactly one
 * tensor or file, padding, or the directory. */
#ifndef ISO_CONVERT_CONTAINER_H
#define ISO_CONVERT_CONTAINER_H

#include "core/tensor.h"

#define ISO_CONTAINER_MAGIC "isobit\x1a\n"
#define ISO_CONTAINER_SUFFIX ".isobit-part"      /* of a file that is being written; never opened */

enum {
    ISO_CONTAINER_PAGE = 4096,
    ISO_CONTAINER_MAJOR = 1,
    ISO_CONTAINER_MINOR = 0,
    ISO_CONTAINER_ORDER = 0x01020304,
    ISO_CONTAINER_TENSOR_BYTES = 112,    /* of a record */
    ISO_CONTAINER_FILE_BYTES = 48,
    ISO_CONTAINER_NAME_MAX = 255,
    ISO_CONTAINER_TENSORS_MAX = 1 << 22,
    ISO_CONTAINER_FILES_MAX = 1 << 12,
    ISO_CONTAINER_WORD = 8,              /* bytes of a dtype's or layout's name */
    ISO_CONTAINER_CONTRACT = 32          /* bytes of the numerics id */
};

/* Byte offsets of the fields; all numbers are little-endian. */
enum iso_container_page_field {
    ISO_PAGE_MAGIC = 0, ISO_PAGE_MAJOR = 8, ISO_PAGE_MINOR = 12, ISO_PAGE_ORDER = 16,
    ISO_PAGE_ALIGN = 20, ISO_PAGE_FILE_BYTES = 24, ISO_PAGE_DIRECTORY = 32,
    ISO_PAGE_DIRECTORY_BYTES = 40, ISO_PAGE_TENSORS = 48, ISO_PAGE_FILES = 52,
    ISO_PAGE_CLEANED = 56, ISO_PAGE_CONTRACT = 64, ISO_PAGE_DIRECTORY_HASH = 96,
    ISO_PAGE_RESERVED = 112, ISO_PAGE_HASH = 4080
};
enum iso_container_tensor_field {
    ISO_RECORD_NAME = 0, ISO_RECORD_NAME_BYTES = 4, ISO_RECORD_DTYPE = 8, ISO_RECORD_LAYOUT = 16,
    ISO_RECORD_RANK = 24, ISO_RECORD_FLAGS = 28, ISO_RECORD_EXTENT = 32, ISO_RECORD_OFFSET = 64,
    ISO_RECORD_BYTES = 72, ISO_RECORD_CLEANED = 80, ISO_RECORD_RESERVED = 88, ISO_RECORD_HASH = 96
};
enum iso_container_file_field {
    ISO_FILE_NAME = 0, ISO_FILE_NAME_BYTES = 4, ISO_FILE_OFFSET = 8, ISO_FILE_BYTES = 16,
    ISO_FILE_RESERVED = 24, ISO_FILE_HASH = 32
};
enum { ISO_RECORD_CONTINUES = 1 };       /* flags: begins where the record before ends */

typedef struct iso_container_tensor {
    const char *name;                /* NUL-terminated; lent by whoever owns the names */
    iso_tensor_desc desc;            /* rank 0: a scalar; e2m1 for two codes a byte */
    uint32_t flags;
    uint64_t offset, bytes;          /* in the file, in its layout */
    uint64_t cleaned;                /* values that cleaning changed */
    uint64_t hash[2];                /* XXH3-128 of the bytes, low word first */
} iso_container_tensor;

typedef struct iso_container_text {
    const char *name;                /* plain, or "inference/config.json" */
    uint64_t offset, bytes;
    uint64_t hash[2];
} iso_container_text;

typedef struct iso_container {
    const uint8_t *data;             /* the whole file */
    uint64_t bytes;
    uint64_t directory, directory_bytes, cleaned;
    iso_container_tensor *tensors;   /* by offset */
    uint32_t tensor_count;
    iso_container_text *files;       /* by offset */
    uint32_t file_count;
} iso_container;

/* Whether `bytes` bytes begin like a container, whatever follows. */
bool iso_container_is(const void *data, uint64_t bytes);

/* Reads and checks page 0 and the directory of `bytes` bytes at `data`, which are lent until
 * iso_container_free. `file` names it in errors. Tensor bytes are not read. ISO_BAD_FILE,
 * ISO_BAD_TENSOR, ISO_UNSUPPORTED (a newer version, another contract), ISO_LIMIT,
 * ISO_NO_MEMORY. */
iso_status iso_container_read(const void *data, uint64_t bytes, const char *file,
                              iso_container *container, iso_error *error);
void iso_container_free(iso_container *container);

/* Bytes of a tensor in its layout. ISO_BAD_TENSOR: no such tensor can be. */
iso_status iso_container_tensor_bytes(const iso_container_tensor *tensor, uint64_t *bytes,
                                      iso_error *error);

uint32_t iso_get_u32(const uint8_t *at);
uint64_t iso_get_u64(const uint8_t *at);
void iso_put_u32(uint8_t *at, uint32_t value);
void iso_put_u64(uint8_t *at, uint64_t value);

#endif
