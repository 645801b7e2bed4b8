#include "convert/tiny_tokenizer.h"

#include "convert/tiny_bpe.h"
#include "core/alloc.h"

#include <string.h>

typedef struct added {
    const char *text;
    bool is_special;
} added;

static const added first_tokens[] = {
    {"<｜begin▁of▁sentence｜>", true},
    {"<｜end▁of▁sentence｜>", true},
    {"<｜▁pad▁｜>", true},
};

static const added protocol[] = {
#define TOKEN(text, special) {text, special},
#include "convert/tiny_tokens.def"
#undef TOKEN
};

enum { FIRST = ISO_COUNT_OF(first_tokens), PROTOCOL = ISO_COUNT_OF(protocol), BYTES = 256 };

uint32_t iso_tiny_token_id(uint32_t vocab_size, const char *token)
{
    for (uint32_t i = 0; i < PROTOCOL; i++)
        if (strcmp(protocol[i].text, token) == 0)
            return vocab_size - PROTOCOL + i;
    ISO_ASSERT(false && "no such token in tiny_tokens.def");
    return 0;
}

/* ---- the byte alphabet ---- */

/* Stand-in character of each byte: itself when printable in Latin-1, else 256, 257, ... in turn. */
static void fill_alphabet(uint16_t code[BYTES])
{
    uint16_t next = 256;

    for (uint32_t b = 0; b < BYTES; b++) {
        const bool is_plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

        code[b] = is_plain ? (uint16_t)b : next++;
    }
}

/* UTF-8 of a token's bytes in the alphabet; every stand-in is below 0x800. */
static const char *spell(const uint16_t code[BYTES], const uint8_t *bytes, uint32_t count,
                         char out[2 * ISO_TINY_TOKEN_MAX + 1])
{
    char *at = out;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t c = code[bytes[i]];

        if (c < 0x80) {
            *at++ = (char)c;
            continue;
        }
        *at++ = (char)(unsigned char)(0xc0 | c >> 6);
        *at++ = (char)(unsigned char)(0x80 | (c & 0x3f));
    }
    *at = '\0';
    return out;
}

/* ---- sections of the file ---- */

typedef struct writer {
    iso_text *text;
    uint32_t vocab_size;
    uint16_t code[BYTES];
    iso_tiny_merge *merges;
    uint32_t merge_count;
} writer;

static uint32_t unused_first(const writer *w) { return FIRST + BYTES + w->merge_count; }

static void write_added(const writer *w, uint32_t id, const added *token)
{
    iso_text_printf(w->text, "%s\n    {\"id\": %u, \"content\": ", id == 0 ? "" : ",", id);
    iso_text_json(w->text, token->text);
    iso_text_printf(w->text, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                    "\"normalized\": %s, \"special\": %s}", token->is_special ? "false" : "true",
                    token->is_special ? "true" : "false");
}

static void write_added_tokens(const writer *w)
{
    iso_text_printf(w->text, "  \"added_tokens\": [");
    for (uint32_t i = 0; i < FIRST; i++)
        write_added(w, i, &first_tokens[i]);
    for (uint32_t id = unused_first(w); id < w->vocab_size - PROTOCOL; id++) {
        char name[64];

        snprintf(name, sizeof name, "<｜place▁holder▁no▁%u｜>", id);
        write_added(w, id, &(added){name, true});
    }
    for (uint32_t i = 0; i < PROTOCOL; i++)
        write_added(w, w->vocab_size - PROTOCOL + i, &protocol[i]);
    iso_text_printf(w->text, "\n  ],\n");
}

/* The released pre-tokenizer: three Split patterns one after another, then the byte alphabet. */
static void write_rules(const writer *w)
{
    static const char *const pattern[] = {
        "\\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
        "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    };

    iso_text_printf(w->text, "  \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": []},\n"
                    "  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [");
    for (size_t i = 0; i < ISO_COUNT_OF(pattern); i++) {
        iso_text_printf(w->text, "\n    {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        iso_text_json(w->text, pattern[i]);
        iso_text_printf(w->text, "}, \"behavior\": \"Isolated\", \"invert\": false},");
    }
    iso_text_printf(w->text, "\n    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                    "\"trim_offsets\": true, \"use_regex\": false}]},\n"
                    "  \"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                    "\"trim_offsets\": false, \"use_regex\": true},\n"
                    "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                    "\"trim_offsets\": true, \"use_regex\": true},\n");
}

static const char *token_text(const writer *w, uint32_t token,
                              char out[2 * ISO_TINY_TOKEN_MAX + 1])
{
    const uint8_t byte = (uint8_t)token;

    if (token < BYTES)
        return spell(w->code, &byte, 1, out);
    return spell(w->code, w->merges[token - BYTES].bytes, w->merges[token - BYTES].count, out);
}

static void write_vocab(const writer *w)
{
    char text[2 * ISO_TINY_TOKEN_MAX + 1];
    uint32_t id = FIRST;

    iso_text_printf(w->text, "    \"vocab\": {");
    for (uint32_t i = 0; i < FIRST; i++) {
        iso_text_printf(w->text, "%s\n      ", i == 0 ? "" : ",");
        iso_text_json(w->text, first_tokens[i].text);
        iso_text_printf(w->text, ": %u", i);
    }
    for (uint32_t c = 0; c < 2 * BYTES; c++)         /* bytes by their stand-in character */
        for (uint32_t b = 0; b < BYTES; b++) {
            if (w->code[b] != c)
                continue;
            iso_text_printf(w->text, ",\n      ");
            iso_text_json(w->text, token_text(w, b, text));
            iso_text_printf(w->text, ": %u", id++);
        }
    for (uint32_t i = 0; i < w->merge_count; i++) {
        iso_text_printf(w->text, ",\n      ");
        iso_text_json(w->text, token_text(w, BYTES + i, text));
        iso_text_printf(w->text, ": %u", id++);
    }
    iso_text_printf(w->text, "\n    },\n");
}

static void write_merges(const writer *w)
{
    char left[2 * ISO_TINY_TOKEN_MAX + 1], right[2 * ISO_TINY_TOKEN_MAX + 1];
    char both[sizeof left + sizeof right];

    iso_text_printf(w->text, "    \"merges\": [");
    for (uint32_t i = 0; i < w->merge_count; i++) {
        snprintf(both, sizeof both, "%s %s", token_text(w, w->merges[i].left, left),
                 token_text(w, w->merges[i].right, right));
        iso_text_printf(w->text, "%s\n      ", i == 0 ? "" : ",");
        iso_text_json(w->text, both);
    }
    iso_text_printf(w->text, "\n    ]\n");
}

iso_status iso_tiny_tokenizer(uint32_t vocab_size, iso_text *text, iso_error *error)
{
    const uint32_t room = vocab_size - FIRST - BYTES - PROTOCOL;
    const uint32_t merges_max = room < ISO_TINY_MERGES_MAX ? room : ISO_TINY_MERGES_MAX;
    writer w = {.text = text, .vocab_size = vocab_size};
    iso_status status;

    ISO_ASSERT(vocab_size > FIRST + BYTES + PROTOCOL);
    w.merges = iso_alloc_zero(merges_max, sizeof *w.merges, "tiny.merges");
    if (w.merges == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a vocabulary");
    fill_alphabet(w.code);
    status = iso_tiny_learn(merges_max, w.merges, &w.merge_count, error);
    if (status == ISO_OK) {
        iso_text_printf(text, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n"
                        "  \"padding\": null,\n");
        write_added_tokens(&w);
        write_rules(&w);
        iso_text_printf(text, "  \"model\": {\n    \"type\": \"BPE\", \"dropout\": null, "
                        "\"unk_token\": null, \"continuing_subword_prefix\": null, "
                        "\"end_of_word_suffix\": null, \"fuse_unk\": false, "
                        "\"byte_fallback\": false,\n");
        write_vocab(&w);
        write_merges(&w);
        iso_text_printf(text, "  }\n}\n");
    }
    iso_release(w.merges, merges_max * sizeof *w.merges);
    return status;
}
