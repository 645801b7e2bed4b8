#include "backends/select.h"

#include <string.h>

/* Weights have the row's layout, everything else is plain. */
static iso_layout layout_of(const iso_op_call *call, uint32_t input, iso_layout layout)
{
    return iso_op_is_weight(call->op, input) ? layout : ISO_LAYOUT_PLAIN;
}

bool iso_select_is_plain(const iso_op_call *call)
{
    for (uint32_t i = 0; i < call->op->input_count; i++)
        if (call->in[i].layout != ISO_LAYOUT_PLAIN)
            return false;
    return true;
}

static bool has_layout(const iso_op_call *call, iso_layout layout)
{
    for (uint32_t i = 0; i < call->op->input_count; i++)
        if (iso_desc_present(&call->in[i]) && call->in[i].layout != layout_of(call, i, layout))
            return false;
    return true;
}

/* Keeps the first refusal's reason: the best row is the one that was wanted. */
static void refuse(iso_support *support, const iso_select_row *row, iso_reason reason,
                   const char *why)
{
    const size_t used = strlen(support->text);

    snprintf(support->text + used, sizeof support->text - used, "%s%s: %s",
             used == 0 ? "" : "; ", row->form_isa, why);
    if (support->reason == ISO_REASON_NONE)
        support->reason = reason;
}

void iso_select_accept(const iso_op_call *call, const char *kernel, uint32_t kernel_index,
                       iso_support *support)
{
    support->ok = true;
    support->reason = ISO_REASON_NONE;
    support->num_class = ISO_CLASS_EXACT;
    support->kernel = kernel;
    support->kernel_index = kernel_index;
    for (uint32_t i = 0; i < call->op->input_count; i++)
        support->layout_in[i] = ISO_LAYOUT_PLAIN;
}

uint32_t iso_select_kernel(const iso_select_row *rows, uint32_t row_count, uint32_t isa_mask,
                           const iso_op_call *call, iso_support *support)
{
    for (uint32_t r = 0; r < row_count; r++) {
        const iso_select_row *row = &rows[r];

        if (strcmp(row->op, call->op->name) != 0)
            continue;
        if ((isa_mask & 1u << row->isa) == 0) {
            refuse(support, row, ISO_REASON_MASKED, "masked or not offered by this processor");
        } else if (!has_layout(call, row->layout)) {
            refuse(support, row, ISO_REASON_LAYOUT, iso_layout_name(row->layout));
        } else if (!row->accepts(call)) {
            refuse(support, row, ISO_REASON_SHAPE_LIMIT, row->accepts_name);
        } else {
            iso_select_accept(call, row->kernel, r, support);
            for (uint32_t i = 0; i < call->op->input_count; i++)
                support->layout_in[i] = layout_of(call, i, row->layout);
            return r;
        }
    }
    if (support->reason == ISO_REASON_NONE)
        support->reason = ISO_REASON_NO_KERNEL;
    return row_count;
}
