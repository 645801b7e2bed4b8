/* alphabet: the byte alphabet of byte-level BPE. Vocabulary files spell each byte as one printable
 * character: the printable Latin-1 characters stand for themselves, and the other 68 bytes, in
 * order, are U+0100 .. U+0143. */
#ifndef ISO_TEXT_ALPHABET_H
#define ISO_TEXT_ALPHABET_H

#include <stdint.h>

/* Stand-in of a byte. */
static inline uint32_t iso_alphabet_code(uint8_t byte)
{
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte >= 0x7f && byte <= 0xa0)
        return 0x121u + (byte - 0x7fu);
    return byte == 0xad ? 0x143u : byte;
}

/* The byte that a character stands for, or -1. */
static inline int iso_alphabet_byte(uint32_t code)
{
    if (code >= 0x100 && code <= 0x120)
        return (int)(code - 0x100);
    if (code >= 0x121 && code <= 0x142)
        return (int)(code - 0x121 + 0x7f);
    if (code == 0x143)
        return 0xad;
    if ((code > 0x20 && code < 0x7f) || (code > 0xa0 && code <= 0xff && code != 0xad))
        return (int)code;
    return -1;
}

#endif
