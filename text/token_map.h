/* token_map: Engram's map from token ids to compressed ids. Two ids share a compressed id when
 * their texts have the same key; compressed ids count the keys by first appearance. The public
 * function is iso_tokenizer_token_map. */
#ifndef ISO_TEXT_TOKEN_MAP_H
#define ISO_TEXT_TOKEN_MAP_H

#include "text/tokenizer.h"

/* Appends the key of a text that is valid UTF-8: normalised, or the text itself where nothing is
 * left of it. out->failed: no memory. */
void iso_token_map_normalise(const char *text, size_t bytes, iso_chars *out);

/* Appends the key of an id: of its text, or of its spelling in the vocabulary file if the id is a
 * fragment of a character. */
void iso_token_map_key(const iso_tokenizer *tokenizer, int32_t id, iso_chars *out);

#endif
