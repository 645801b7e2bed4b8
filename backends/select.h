/* select: what every backend does with its rows of kernels: walk them best first, take the first
 * that accepts the call, and say in words why each row before it was refused. */
#ifndef ISO_BACKENDS_SELECT_H
#define ISO_BACKENDS_SELECT_H

#include "core/backend.h"

typedef struct iso_select_row {
    const char *op;                      /* operator's name */
    const char *kernel;                  /* "matmul_fp8/cpu/m1/portable" */
    const char *form_isa;                /* "m1/portable", for refusals */
    uint32_t isa;                        /* iso_isa of a CPU row; 0 elsewhere */
    iso_layout layout;                   /* of every weight */
    const char *accepts_name;            /* "k_multiple_32" */
    bool (*accepts)(const iso_op_call *call);
} iso_select_row;

/* Index of the first row that accepts the call and whose isa is in the mask, or row_count. Rows of
 * other operators are passed over. Fills support->text with the refusals
 * ("m1/portable: k_multiple_32; ...") and, when a row is taken, ok, kernel, kernel_index, num_class
 * and layout_in; otherwise reason. */
uint32_t iso_select_kernel(const iso_select_row *rows, uint32_t row_count, uint32_t isa_mask,
                           const iso_op_call *call, iso_support *support);

/* Whether no operand is packed. */
bool iso_select_is_plain(const iso_op_call *call);

/* Fills *support for a kernel outside the rows (a reference), which takes plain inputs. */
void iso_select_accept(const iso_op_call *call, const char *kernel, uint32_t kernel_index,
                       iso_support *support);

#endif
