/* tensor: what the bytes of an operand mean. A descriptor holds no pointer and owns nothing.
 *
 * Extents are row-major; every tensor is dense in its layout (views are made by ops, not by
 * strides, so one descriptor fits all backends). A descriptor whose leading extent depends on the
 * step (token rows, pairs, emitted groups) names the scalar that counts it: the extent is then the
 * capacity, and only `scalar * live_mult` leading rows exist when the step runs. */
#ifndef ISO_CORE_TENSOR_H
#define ISO_CORE_TENSOR_H

#include "core/dtype.h"
#include "core/layout.h"
#include "core/status.h"

enum { ISO_RANK_MAX = 4 };

typedef struct iso_tensor_desc {
    iso_dtype dtype;                 /* NONE: absent optional operand */
    iso_layout layout;
    uint32_t rank;                   /* 0 .. 4; 0 only when absent */
    uint32_t live_scalar;            /* 0: static; else 1 + index of a graph scalar */
    uint32_t live_mult;              /* rows per unit of the scalar */
    int64_t extent[ISO_RANK_MAX];    /* elements; unused ones are 1 */
} iso_tensor_desc;

/* Dense, static descriptor. rank extents follow. */
iso_tensor_desc iso_desc1(iso_dtype dtype, int64_t e0);
iso_tensor_desc iso_desc2(iso_dtype dtype, int64_t e0, int64_t e1);
iso_tensor_desc iso_desc3(iso_dtype dtype, int64_t e0, int64_t e1, int64_t e2);
iso_tensor_desc iso_desc4(iso_dtype dtype, int64_t e0, int64_t e1, int64_t e2, int64_t e3);
iso_tensor_desc iso_desc_none(void);

bool iso_desc_present(const iso_tensor_desc *desc);
int64_t iso_desc_elems(const iso_tensor_desc *desc);         /* product of extents */
int64_t iso_desc_rows(const iso_tensor_desc *desc);          /* elements / last extent */
int64_t iso_desc_last(const iso_tensor_desc *desc);          /* last extent */
uint64_t iso_desc_bytes(const iso_tensor_desc *desc);        /* of a checked descriptor */
bool iso_desc_equal(const iso_tensor_desc *a, const iso_tensor_desc *b);

/* Extents positive or zero, product and bytes without overflow, last extent a whole number of
 * blocks, layout legal for the dtype. */
iso_status iso_desc_check(const iso_tensor_desc *desc, const char *what, iso_error *error);

/* "bf16[5,4,256]" into a caller's buffer (cut to fit); returns buffer. Live rows print as "5*". */
enum { ISO_DESC_TEXT = 96 };
const char *iso_desc_text(const iso_tensor_desc *desc, char buffer[ISO_DESC_TEXT]);

#endif
