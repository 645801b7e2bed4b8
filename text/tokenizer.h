/* tokenizer: the parts of an open tokenizer, for the other files of this room. The public
 * functions are declared in core/isobit.h.
 *
 *   tokenizer_file.c  reads and validates tokenizer.json, fills the parts
 *   vocabulary.c      its ids, merges and added tokens
 *   tokenizer.c       text -> added tokens -> pieces (split.c) -> merges (bpe.c), and back
 *
 * Threads: immutable once open; any number of threads may use it. */
#ifndef ISO_TEXT_TOKENIZER_H
#define ISO_TEXT_TOKENIZER_H

#include "core/json.h"
#include "core/store.h"
#include "text/added.h"
#include "text/bpe.h"
#include "text/split.h"

/* Limits of what a tokenizer.json may ask for; the released file has 129,280 ids and 6.4 MB. */
#define ISO_TOKENIZER_BYTES_MAX ((size_t)64 << 20)
#define ISO_TOKENIZER_IDS_MAX ((size_t)1 << 20)

struct iso_tokenizer {
    size_t vocab_size;
    uint32_t *starts;        /* [vocab_size + 1]: id i is bytes[starts[i] .. starts[i + 1]) */
    char *bytes;             /* base tokens out of the byte alphabet, added tokens as they are */
    size_t bytes_total;
    uint8_t *is_added;       /* [vocab_size] */
    iso_added *verbatim;     /* added tokens with "normalized": false: cut out first */
    iso_added *normalized;   /* the others: cut out of what is left */
    iso_bpe *bpe;
    iso_splitter *splitter;
};

/* Reads the file at `path` into a zeroed tokenizer; on failure the parts made so far stay in it.
 * ISO_NOT_FOUND, ISO_IO, ISO_LIMIT, ISO_BAD_JSON, ISO_BAD_TOKENIZER, ISO_NO_MEMORY. */
ISO_CHECKED iso_status iso_tokenizer_read(iso_tokenizer *tokenizer, const char *path,
                                          iso_error *error);
/* The same from tokenizer.json of a store. */
ISO_CHECKED iso_status iso_tokenizer_read_store(iso_tokenizer *tokenizer, const iso_store *store,
                                                iso_error *error);

/* Fills ids, merges and added tokens from the root of the file. */
ISO_CHECKED iso_status iso_tokenizer_read_vocabulary(iso_tokenizer *tokenizer,
                                                     const iso_json *root, iso_error *error);

/* Appends the ids of a text; flags as in iso_tokenizer_encode. */
ISO_CHECKED iso_status iso_tokenizer_append(const iso_tokenizer *tokenizer, const char *text,
                                            size_t bytes, uint32_t flags, iso_ids *ids,
                                            iso_error *error);

/* Lends the bytes of an id (valid UTF-8 or a part of it); the id must be valid. */
const char *iso_tokenizer_bytes(const iso_tokenizer *tokenizer, int32_t id, size_t *bytes);

#endif
