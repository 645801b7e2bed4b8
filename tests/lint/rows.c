/* Rows and files: no row without its file, no operator or kernel file without its row, and the
 * contract at the top of every operator. */
#include "tests/lint/lint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading a table ---- */

static void take_column(lint_row *row, const char *from, const char *to)
{
    char *column;

    while (from < to && *from == ' ')
        from++;
    while (to > from && to[-1] == ' ')
        to--;
    if (row->columns == LINT_COLUMNS_MAX)
        return;
    column = row->column[row->columns++];
    snprintf(column, sizeof row->column[0], "%.*s", (int)(to - from), from);
}

static void take_comment(lint_row *row, const char *line, size_t bytes)
{
    const char *begin = strstr(line, "/*"), *end = strstr(line, "*/");

    if (begin == NULL || end == NULL || end > line + bytes)
        return;
    begin += 2 + strspn(begin + 2, " ");
    while (end > begin && end[-1] == ' ')
        end--;
    snprintf(row->comment, sizeof row->comment, "%.*s", (int)(end - begin), begin);
}

void lint_table(const lint_tree *tree, const char *path, const char *macro, lint_row_fn *each,
                void *context)
{
    const lint_file *file = lint_tree_find(tree, path);
    const size_t macro_bytes = strlen(macro);
    const char *line = file != NULL ? file->text : "";
    int number = 0;

    for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t bytes = strcspn(line, "\n");
        const char *at = line + macro_bytes, *begin = at + 1;
        lint_row row = {.line = ++number};
        int depth = 0;

        if (strncmp(line, macro, macro_bytes) != 0 || *at != '(')
            continue;
        for (; at < line + bytes; at++) {
            depth += *at == '(';
            depth -= *at == ')';
            if ((depth == 1 && *at == ',') || depth == 0) {
                take_column(&row, begin, at);
                begin = at + 1;
            }
            if (depth == 0)
                break;
        }
        take_comment(&row, line, bytes);
        each(context, &row);
    }
}

/* ---- names of a table ---- */

typedef struct names {
    char (*name)[128];
    size_t count;
} names;

static void add_name(names *list, const char *name)
{
    list->name = lint_grow(list->name, (list->count + 1) * sizeof *list->name);
    snprintf(list->name[list->count++], sizeof *list->name, "%s", name);
}

static bool has_name(const names *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->name[i], name) == 0)
            return true;
    return false;
}

/* ---- operators ---- */

typedef struct rows {
    const lint_tree *tree;
    names ops, files, fusions, offered;
} rows;

static void check_op(void *context, const lint_row *row)
{
    rows *r = context;
    const char *name = row->column[0];
    const lint_file *file;
    char path[128];

    snprintf(path, sizeof path, "ggml-style-ops/%.63s.c", name);
    if (has_name(&r->ops, name))
        lint_report("row", "ggml-style-ops/ops.def", row->line, "%s has two rows", name);
    if (row->columns != 5 || row->comment[0] == '\0')
        lint_report("row", "ggml-style-ops/ops.def", row->line,
                    "five columns and a comment: meaning, section of numerics");
    add_name(&r->ops, name);
    add_name(&r->files, path);
    file = lint_tree_find(r->tree, path);
    if (file == NULL)
        lint_report("row", "ggml-style-ops/ops.def", row->line, "%s has no file %s", name, path);
    else
        lint_contract(file, name);
}

/* FUSION(name, part, part, ...): two to six parts, each an operator. */
static void check_fusion(void *context, const lint_row *row)
{
    rows *r = context;
    const char *name = row->column[0];

    if (row->columns < 3 || row->columns > 7)
        lint_report("row", "ggml-style-ops/fusions.def", row->line,
                    "a fusion has two to six parts");
    if (has_name(&r->ops, name) || has_name(&r->fusions, name))
        lint_report("row", "ggml-style-ops/fusions.def", row->line, "%s is a row already", name);
    for (int i = 1; i < row->columns; i++)
        if (!has_name(&r->ops, row->column[i]))
            lint_report("row", "ggml-style-ops/fusions.def", row->line, "part %s is no operator",
                        row->column[i]);
    add_name(&r->fusions, name);
}

/* FUSED(fusion, form, grain) <-> backends/cpu/fused_<form>.c */
static void check_fused(void *context, const lint_row *row)
{
    rows *r = context;
    char path[128];

    snprintf(path, sizeof path, "backends/cpu/fused_%.63s.c", row->column[1]);
    if (row->columns != 3)
        lint_report("row", "backends/cpu/fused.def", row->line, "a fused row has three columns");
    if (!has_name(&r->fusions, row->column[0]))
        lint_report("row", "backends/cpu/fused.def", row->line, "%s is no fusion",
                    row->column[0]);
    if (has_name(&r->offered, row->column[0]))
        lint_report("row", "backends/cpu/fused.def", row->line, "%s has two rows",
                    row->column[0]);
    if (lint_tree_find(r->tree, path) == NULL)
        lint_report("row", "backends/cpu/fused.def", row->line, "no file %s", path);
    add_name(&r->offered, row->column[0]);
    add_name(&r->files, path);
}

/* A fusion that no backend runs is not tested. */
static void check_offered(const rows *r)
{
    for (size_t i = 0; i < r->fusions.count; i++)
        if (!has_name(&r->offered, r->fusions.name[i]))
            lint_report("row", "ggml-style-ops/fusions.def", 0, "no backend runs %s",
                        r->fusions.name[i]);
}

/* KERNEL(op, form, isa, ...) <-> backends/cpu/<folder>/<op>_<form>[_isa].c, as cmake/tables.cmake
 * spells it. */
static void check_kernel(void *context, const lint_row *row)
{
    static const struct {
        const char *isa, *folder, *suffix;
    } isas[] = {
        {"portable", "portable", ""},  {"avx2", "x86", "_avx2"}, {"avx512", "x86", "_avx512"},
        {"vnni", "x86", "_vnni"},      {"neon", "arm", "_neon"},
        {"dotprod", "arm", "_dotprod"},
    };
    rows *r = context;
    char path[256] = "";

    if (row->columns != 6)
        lint_report("row", "backends/cpu/kernels.def", row->line, "a kernel has six columns");
    if (!has_name(&r->ops, row->column[0]))
        lint_report("row", "backends/cpu/kernels.def", row->line, "%s is no operator",
                    row->column[0]);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (strcmp(row->column[2], isas[i].isa) == 0)
            snprintf(path, sizeof path, "backends/cpu/%s/%s_%s%s.c", isas[i].folder,
                     row->column[0], row->column[1], isas[i].suffix);
    path[127] = '\0';
    if (*path == '\0') {
        lint_report("row", "backends/cpu/kernels.def", row->line, "unknown isa %s",
                    row->column[2]);
        return;
    }
    add_name(&r->files, path);
    if (lint_tree_find(r->tree, path) == NULL)
        lint_report("row", "backends/cpu/kernels.def", row->line, "no file %s", path);
}

/* Files of the tables' folders that are no operator and no kernel. */
static const char helpers[] =
    "ggml-style-ops/ops.c ggml-style-ops/fusions.c ggml-style-ops/cases.c "
    "ggml-style-ops/shape_rules.c";
static const char folders[] =
    "ggml-style-ops/ backends/cpu/portable/ backends/cpu/x86/ backends/cpu/arm/";
static const char fused_prefix[] = "backends/cpu/fused_";

static bool needs_row(const char *path)
{
    return lint_ends(path, ".c") && !lint_under(path, helpers)
        && (lint_under(path, folders)
            || strncmp(path, fused_prefix, sizeof fused_prefix - 1) == 0);
}

void lint_rows(const lint_tree *tree)
{
    rows r = {.tree = tree};

    if (lint_tree_find(tree, "ggml-style-ops/ops.def") == NULL)
        lint_report("row", "ggml-style-ops/ops.def", 0, "the table of operators is missing");
    if (lint_tree_find(tree, "backends/cpu/kernels.def") == NULL)
        lint_report("row", "backends/cpu/kernels.def", 0, "the table of CPU kernels is missing");
    lint_table(tree, "ggml-style-ops/ops.def", "OP", check_op, &r);
    lint_table(tree, "ggml-style-ops/fusions.def", "FUSION", check_fusion, &r);
    lint_table(tree, "backends/cpu/kernels.def", "KERNEL", check_kernel, &r);
    lint_table(tree, "backends/cpu/fused.def", "FUSED", check_fused, &r);
    check_offered(&r);
    for (size_t i = 0; i < tree->count; i++) {
        const char *path = tree->files[i].path;

        if (needs_row(path) && !has_name(&r.files, path))
            lint_report("row", path, 0, "no row of a table names this file");
    }
    free(r.ops.name);
    free(r.fusions.name);
    free(r.offered.name);
    free(r.files.name);
}

/* ---- contracts ---- */

void lint_contract(const lint_file *file, const char *op)
{
    static const char *const keys[] = {"Shapes",   "Units",  "Order",  "Ranges", "Params",
                                       "Aliasing", "Errors", "Source"};
    const char *end = strstr(file->text, "*/"), *at = file->text;
    char text[96];

    snprintf(text, sizeof text, "/* %.64s: ", op);
    if (end == NULL || strncmp(at, text, strlen(text)) != 0) {
        lint_report("contract", file->path, 1, "the file begins with \"%s\" and its contract",
                    text);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *found;

        snprintf(text, sizeof text, "\n * %s: ", keys[i]);
        found = strstr(at, text);
        if (found == NULL || found > end)
            lint_report("contract", file->path, 1, "key \"%s:\" is missing or out of order",
                        keys[i]);
        else
            at = found + 1;
    }
}
