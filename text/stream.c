#include "text/stream.h"

#include "core/alloc.h"
#include "text/utf8.h"

#include <string.h>

iso_status iso_text_stream_create(const iso_tokenizer *tokenizer, iso_text_stream **stream,
                                  iso_error *error)
{
    iso_text_stream *made;

    if (tokenizer == NULL || stream == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_text_stream_create: NULL argument");
    made = iso_alloc_zero(1, sizeof *made, "stream");
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "text stream: out of memory");
    made->tokenizer = tokenizer;
    *stream = made;
    return ISO_OK;
}

void iso_text_stream_destroy(iso_text_stream **stream)
{
    if (*stream == NULL)
        return;
    iso_chars_deinit(&(*stream)->raw);
    iso_chars_deinit(&(*stream)->piece);
    iso_release(*stream, sizeof **stream);
    *stream = NULL;
}

/* Bytes at the end of text that are a character cut short: 0..3. */
static size_t cut_end(const char *text, size_t bytes)
{
    const size_t back_max = bytes < 3 ? bytes : 3;
    size_t taken;
    uint32_t code;

    for (size_t back = 1; back <= back_max; back++)
        if (((uint8_t)text[bytes - back] & 0xc0) == 0xc0)
            return iso_utf8_next(text + bytes - back, back, &code, &taken) == ISO_UTF8_CUT
                       ? back
                       : 0;
    return 0;
}

iso_status iso_text_stream_push(iso_text_stream *stream, int32_t id, const char **piece,
                                size_t *piece_bytes, iso_error *error)
{
    const char *bytes;
    size_t count;

    if (stream == NULL || piece == NULL || piece_bytes == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_text_stream_push: NULL argument");
    if (id < 0 || (size_t)id >= stream->tokenizer->vocab_size)
        return iso_fail(error, ISO_BAD_INDEX, "text stream: id 0..%zu expected, %d found",
                        stream->tokenizer->vocab_size - 1, id);
    bytes = iso_tokenizer_bytes(stream->tokenizer, id, &count);
    stream->raw.used = stream->piece.used = 0;
    stream->raw.failed = stream->piece.failed = false;
    iso_chars_add(&stream->raw, stream->cut, stream->cut_bytes);
    iso_chars_add(&stream->raw, bytes, count);
    count = cut_end(stream->raw.data, stream->raw.used);
    iso_utf8_repair(stream->raw.data, stream->raw.used - count, &stream->piece);
    /* The stream is as before when memory ran out: the same id may be pushed again. */
    if (stream->raw.failed || stream->piece.failed)
        return iso_fail(error, ISO_NO_MEMORY, "text stream: out of memory");
    if (count != 0)
        memcpy(stream->cut, stream->raw.data + stream->raw.used - count, count);
    stream->cut_bytes = count;
    *piece = stream->piece.used == 0 ? "" : stream->piece.data;
    *piece_bytes = stream->piece.used;
    return ISO_OK;
}

iso_status iso_text_stream_finish(iso_text_stream *stream, const char **piece,
                                  size_t *piece_bytes, iso_error *error)
{
    if (stream == NULL || piece == NULL || piece_bytes == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "iso_text_stream_finish: NULL argument");
    stream->piece.used = 0;
    stream->piece.failed = false;
    iso_utf8_repair(stream->cut, stream->cut_bytes, &stream->piece);
    if (stream->piece.failed)
        return iso_fail(error, ISO_NO_MEMORY, "text stream: out of memory");
    stream->cut_bytes = 0;
    *piece = stream->piece.used == 0 ? "" : stream->piece.data;
    *piece_bytes = stream->piece.used;
    return ISO_OK;
}
