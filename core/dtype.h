/* dtype: element types, from the rows of dtype.def. */
#ifndef ISO_CORE_DTYPE_H
#define ISO_CORE_DTYPE_H

#include "core/check.h"

typedef enum iso_dtype {
    ISO_DTYPE_NONE = 0,      /* an absent optional operand */
#define DTYPE(name, text, block_elems, block_bytes, align, tag) ISO_DTYPE_##name,
#include "core/dtype.def"
#undef DTYPE
    ISO_DTYPE_COUNT
} iso_dtype;

const char *iso_dtype_name(iso_dtype dtype);              /* "bf16"; "none" for NONE */
uint32_t iso_dtype_block_elems(iso_dtype dtype);
uint32_t iso_dtype_block_bytes(iso_dtype dtype);
uint32_t iso_dtype_align(iso_dtype dtype);                /* bytes */

/* Bytes of `count` elements; false if count is no multiple of the block or the product
 * overflows. */
bool iso_dtype_bytes(iso_dtype dtype, uint64_t count, uint64_t *bytes);

/* The dtype of a safetensors tag such as "F8_E4M3", or NONE; and the tag of a dtype, "" if it has
 * none. */
iso_dtype iso_dtype_of_tag(const char *tag);
const char *iso_dtype_tag(iso_dtype dtype);
iso_dtype iso_dtype_of_name(const char *name);            /* NONE: no such dtype */

#endif
