/* tiny_tokenizer: tokenizer.json of a made-up vocabulary, in the form of the released file.
 *
 *   0, 1, 2        bos, eos, pad
 *   3 .. 258       the bytes, in the order of their stand-in characters
 *   259 ..         merges learned from tiny_text.def
 *   ...            added tokens without a use, as many as are needed
 *   last ids       the added tokens of tiny_tokens.def */
#ifndef ISO_CONVERT_TINY_TOKENIZER_H
#define ISO_CONVERT_TINY_TOKENIZER_H

#include "core/text.h"

/* Appends the file's text. vocab_size leaves room for the bytes and the added tokens. */
iso_status iso_tiny_tokenizer(uint32_t vocab_size, iso_text *text, iso_error *error);
/* Id of a token of tiny_tokens.def. */
uint32_t iso_tiny_token_id(uint32_t vocab_size, const char *token);

#endif
