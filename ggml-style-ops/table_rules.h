/* table_rules: shape checks of the integer tables of rows.h, for infer functions. */
#ifndef ISO_OPS_TABLE_RULES_H
#define ISO_OPS_TABLE_RULES_H

#include "ggml-style-ops/rows.h"
#include "ggml-style-ops/shape_rules.h"

/* Input `index` is i32 [rows, words]; -1: any extent. */
static inline iso_status iso_rule_table(const iso_op_call *call, uint32_t index, const char *what,
                                        int64_t rows, int64_t words, iso_error *error)
{
    ISO_TRY(iso_rule_input(call, index, what, ISO_DTYPE_I32, 2, error));
    if (rows >= 0)
        ISO_TRY(iso_rule_extent(call, index, what, 0, rows, error));
    if (words >= 0)
        ISO_TRY(iso_rule_extent(call, index, what, 1, words, error));
    return ISO_OK;
}

static inline iso_status iso_rule_page_rows(const iso_op_call *call, uint32_t page_rows,
                                            iso_error *error)
{
    return iso_rule_param(call, page_rows != 0 && (page_rows & (page_rows - 1)) == 0,
                          "page_rows is no power of two", error);
}

#endif
