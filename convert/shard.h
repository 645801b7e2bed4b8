/* shard: the header of one safetensors file, read and checked.
 *
 *   8 bytes   header length, little-endian
 *   header    JSON: name -> {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__"
 *   payload   the tensors' bytes; offsets count from here
 *
 * A header that is accepted describes its payload completely: known dtypes, rank <= 4, spans equal
 * to dtype x shape, every payload byte in exactly one tensor. Nothing is allocated before the
 * lengths are checked against the file. */
#ifndef ISO_CONVERT_SHARD_H
#define ISO_CONVERT_SHARD_H

#include "core/store.h"

enum {
    ISO_SHARD_HEADER_MAX = 100000000,    /* bytes of JSON; the released maximum is 261,440 */
    ISO_SHARD_NAME_MAX = 255             /* bytes of a tensor or file name */
};

typedef struct iso_shard iso_shard;

typedef struct iso_shard_tensor {
    const char *name;                /* in the shard's names */
    const iso_shard *shard;
    iso_dtype dtype;
    uint32_t rank;
    int64_t extent[ISO_RANK_MAX];    /* unused ones are 1 */
    uint64_t begin, end;             /* bytes of the payload */
} iso_shard_tensor;

struct iso_shard {
    char file[ISO_SHARD_NAME_MAX + 1];   /* name inside the directory */
    const uint8_t *data;             /* the whole file, mapped */
    uint64_t bytes;
    uint64_t payload;                /* offset of the payload in the file */
    iso_shard_tensor *tensors;       /* by begin */
    size_t tensor_count;
    char *names;
    size_t names_bytes;
};

/* Maps DIRECTORY/FILE and reads its header into *shard, which must not move afterwards. On failure
 * nothing is left open. ISO_NOT_FOUND, ISO_IO, ISO_BAD_FILE, ISO_BAD_JSON, ISO_BAD_TENSOR,
 * ISO_LIMIT, ISO_NO_MEMORY. */
iso_status iso_shard_open(const char *directory, const char *file, iso_shard *shard,
                          iso_error *error);
/* The same without a file system: reads the header of `bytes` bytes at `data`, which are lent until
 * iso_shard_free. shard->file must be set; it names the file in errors. */
iso_status iso_shard_read(const void *data, uint64_t bytes, iso_shard *shard, iso_error *error);

void iso_shard_close(iso_shard *shard);  /* of iso_shard_open */
void iso_shard_free(iso_shard *shard);   /* of iso_shard_read */

#endif
