#include "text/tokenizer.h"

#include "core/alloc.h"
#include "text/utf8.h"

#include <string.h>

/* Makes a tokenizer from the file at `path` or, when that is NULL, from the store's. */
static iso_status open_from(const char *path, const iso_store *store, iso_tokenizer **tokenizer,
                            iso_error *error)
{
    iso_tokenizer *made = iso_alloc_zero(1, sizeof *made, "tokenizer");
    iso_status status;

    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "tokenizer: out of memory");
    status = path != NULL ? iso_tokenizer_read(made, path, error)
                          : iso_tokenizer_read_store(made, store, error);
    if (status == ISO_OK)
        *tokenizer = made;
    else
        iso_tokenizer_close(&made);
    return status;
}

iso_status iso_tokenizer_open(const char *path, iso_tokenizer **tokenizer, iso_error *error)
{
    if (path == NULL || tokenizer == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_tokenizer_open: NULL argument");
    return open_from(path, NULL, tokenizer, error);
}

iso_status iso_tokenizer_open_store(const iso_store *store, iso_tokenizer **tokenizer,
                                    iso_error *error)
{
    if (store == NULL || tokenizer == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_tokenizer_open_store: NULL argument");
    return open_from(NULL, store, tokenizer, error);
}

void iso_tokenizer_close(iso_tokenizer **tokenizer)
{
    iso_tokenizer *t = *tokenizer;

    if (t == NULL)
        return;
    iso_release(t->starts, (t->vocab_size + 1) * sizeof *t->starts);
    iso_release(t->bytes, t->bytes_total);
    iso_release(t->is_added, t->vocab_size * sizeof *t->is_added);
    iso_added_destroy(&t->verbatim);
    iso_added_destroy(&t->normalized);
    iso_bpe_destroy(&t->bpe);
    iso_splitter_destroy(&t->splitter);
    iso_release(t, sizeof *t);
    *tokenizer = NULL;
}

uint32_t iso_tokenizer_vocab_size(const iso_tokenizer *tokenizer)
{
    return (uint32_t)tokenizer->vocab_size;
}

int32_t iso_tokenizer_find(const iso_tokenizer *tokenizer, const char *text)
{
    const size_t bytes = strlen(text);
    const int32_t id = iso_added_find(tokenizer->verbatim, text, bytes);

    return id >= 0 ? id : iso_added_find(tokenizer->normalized, text, bytes);
}

const char *iso_tokenizer_bytes(const iso_tokenizer *tokenizer, int32_t id, size_t *bytes)
{
    ISO_ASSERT(id >= 0 && (size_t)id < tokenizer->vocab_size);
    *bytes = tokenizer->starts[id + 1] - tokenizer->starts[id];
    return tokenizer->bytes + tokenizer->starts[id];
}

typedef struct encoding {
    const iso_tokenizer *tokenizer;
    iso_ids *ids;
    iso_error *error;
} encoding;

static iso_status encode_piece(void *context, const char *piece, size_t bytes)
{
    const encoding *e = context;

    return iso_bpe_encode(e->tokenizer->bpe, piece, bytes, e->ids, e->error);
}

static iso_status encode_plain(encoding *e, const char *text, size_t bytes)
{
    if (bytes == 0)
        return ISO_OK;
    return iso_splitter_run(e->tokenizer->splitter, text, bytes, encode_piece, e, e->error);
}

/* Cuts the tokens of one set out of the text; `rest` encodes what lies between them. */
static iso_status encode_around(encoding *e, const iso_added *added, const char *text,
                                size_t bytes,
                                iso_status (*rest)(encoding *, const char *, size_t))
{
    size_t at = 0;
    iso_added_hit hit;

    while (iso_added_next(added, text, bytes, at, &hit)) {
        ISO_TRY(rest(e, text + at, hit.offset - at));
        iso_ids_add(e->ids, hit.id);
        at = hit.offset + hit.bytes;
    }
    return rest(e, text + at, bytes - at);
}

static iso_status encode_normalized(encoding *e, const char *text, size_t bytes)
{
    return encode_around(e, e->tokenizer->normalized, text, bytes, encode_plain);
}

iso_status iso_tokenizer_append(const iso_tokenizer *tokenizer, const char *text, size_t bytes,
                                uint32_t flags, iso_ids *ids, iso_error *error)
{
    encoding e = {tokenizer, ids, error};
    iso_chars repaired = {0};
    iso_status status;

    if (bytes == 0)
        return ISO_OK;
    if (bytes > ISO_BPE_PIECE_MAX / 3)
        return iso_fail(error, ISO_LIMIT, "text to encode: at most %zu bytes expected, %zu found",
                        ISO_BPE_PIECE_MAX / 3, bytes);
    if (!iso_utf8_is_valid(text, bytes)) {
        iso_utf8_repair(text, bytes, &repaired);
        text = repaired.data;
        bytes = repaired.used;
    }
    if (repaired.failed)
        status = iso_fail(error, ISO_NO_MEMORY, "text to encode: out of memory");
    else if ((flags & ISO_ENCODE_CONTROL) != 0)
        status = encode_around(&e, tokenizer->verbatim, text, bytes, encode_normalized);
    else
        status = encode_plain(&e, text, bytes);
    iso_chars_deinit(&repaired);
    if (status == ISO_OK && ids->failed)
        status = iso_fail(error, ISO_NO_MEMORY, "token ids: out of memory");
    return status;
}

iso_status iso_tokenizer_encode(const iso_tokenizer *tokenizer, const char *text,
                                size_t text_bytes, uint32_t flags, iso_token_list *tokens,
                                iso_error *error)
{
    iso_ids found = {0};
    iso_status status;

    if (tokenizer == NULL || tokens == NULL || (text == NULL && text_bytes != 0))
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_tokenizer_encode: NULL argument");
    if ((flags & ~(uint32_t)ISO_ENCODE_CONTROL) != 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_tokenizer_encode: unknown flags 0x%x",
                        (unsigned)flags);
    status = iso_tokenizer_append(tokenizer, text, text_bytes, flags, &found, error);
    if (status == ISO_OK)
        status = iso_ids_publish(&found, &tokens->ids, &tokens->count, error);
    iso_ids_deinit(&found);
    return status;
}

iso_status iso_tokenizer_decode(const iso_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                char **text, size_t *text_bytes, iso_error *error)
{
    iso_chars raw = {0}, repaired = {0};
    iso_status status = ISO_OK;

    if (tokenizer == NULL || text == NULL || (ids == NULL && count != 0))
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_tokenizer_decode: NULL argument");
    for (size_t i = 0; i < count; i++) {
        const char *piece;
        size_t bytes;

        if (ids[i] < 0 || (size_t)ids[i] >= tokenizer->vocab_size) {
            status = iso_fail(error, ISO_BAD_INDEX, "ids[%zu]: 0..%zu expected, %d found", i,
                              tokenizer->vocab_size - 1, ids[i]);
            goto done;
        }
        piece = iso_tokenizer_bytes(tokenizer, ids[i], &bytes);
        iso_chars_add(&raw, piece, bytes);
    }
    iso_utf8_repair(raw.data, raw.used, &repaired);
    repaired.failed = repaired.failed || raw.failed;
    status = iso_chars_publish(&repaired, text, text_bytes, error);
done:
    iso_chars_deinit(&raw);
    iso_chars_deinit(&repaired);
    return status;
}
