/* stream: ids -> pieces of UTF-8 text that never cut a character. The joined pieces of a stream
 * equal iso_tokenizer_decode of its ids. The public functions are iso_text_stream_*.
 * Threads: a stream has one owner; its tokenizer may be shared and must outlive it. */
#ifndef ISO_TEXT_STREAM_H
#define ISO_TEXT_STREAM_H

#include "text/tokenizer.h"

struct iso_text_stream {
    const iso_tokenizer *tokenizer;
    char cut[4];             /* the start of a character that is not complete yet */
    size_t cut_bytes;        /* 0..3 */
    iso_chars raw;           /* cut bytes and the new ones */
    iso_chars piece;         /* lent to the caller until the next call */
};

#endif
