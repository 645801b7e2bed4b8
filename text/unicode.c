#include "text/unicode.h"

#include "core/alloc.h"
#include "text/utf8.h"

#include <utf8proc.h>

#define NFKD (UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE)

/* Room for nearly every token without an allocation. */
#define CODES_ON_STACK 256

/* U+0130, the one character whose full lower case is longer than its simple one, is not in its own
 * NFKD form: the simple mapping is enough. */
static void add_folded(const utf8proc_int32_t *codes, size_t count, iso_chars *out)
{
    for (size_t i = 0; i < count; i++) {
        const utf8proc_category_t category = utf8proc_category(codes[i]);

        if (category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC &&
            category != UTF8PROC_CATEGORY_ME)
            iso_utf8_add(out, (uint32_t)utf8proc_tolower(codes[i]));
    }
}

void iso_unicode_fold(const char *text, size_t bytes, iso_chars *out)
{
    utf8proc_int32_t on_stack[CODES_ON_STACK], *codes = on_stack;
    size_t capacity = CODES_ON_STACK;
    utf8proc_ssize_t count = utf8proc_decompose((const utf8proc_uint8_t *)text,
                                                (utf8proc_ssize_t)bytes, codes,
                                                CODES_ON_STACK, NFKD);

    if (count > CODES_ON_STACK) {
        capacity = (size_t)count;
        codes = iso_alloc(capacity * sizeof *codes, 16, "unicode");
        count = codes == NULL ? UTF8PROC_ERROR_NOMEM
                              : utf8proc_decompose((const utf8proc_uint8_t *)text,
                                                   (utf8proc_ssize_t)bytes, codes, count, NFKD);
    }
    ISO_ASSERT(count != UTF8PROC_ERROR_INVALIDUTF8);
    if (count < 0)
        out->failed = true;
    else
        add_folded(codes, (size_t)count, out);
    if (codes != on_stack)
        iso_release(codes, capacity * sizeof *codes);
}

bool iso_unicode_is_white(uint32_t code)
{
    return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 || code == 0xa0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}
