/* Sizes: files, functions, lines, parameters, nesting. */
#include "tests/lint/lint.h"

#include <stdlib.h>
#include <string.h>

enum {
    FILE_LINES = 500, TEST_FILE_LINES = 800, FUNCTION_LINES = 70, COLUMNS = 100, PARAMETERS = 6,
    NESTING = 4
};

static int columns_of(const char *line, size_t bytes)
{
    int columns = 0;

    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)line[i] & 0xc0) != 0x80;      /* UTF-8 continuation */
    return columns;
}

static bool is_blank(const char *line)
{
    line += strspn(line, " \t");
    return *line == '\n' || *line == '\0';
}

/* The line before `line`; NULL at the first. */
static const char *line_before(const char *code, const char *line)
{
    if (line == code)
        return NULL;
    for (line--; line > code && line[-1] != '\n'; line--)
        ;
    return line;
}

/* The first line of the signature whose body's brace is at `brace`. */
static const char *signature_of(const char *code, const char *brace)
{
    const char *first = brace;

    for (const char *line = line_before(code, brace); line != NULL && !is_blank(line);
         line = line_before(code, line)) {
        const char *end = line + strcspn(line, "\n");

        if (*line == '#' || *line == '}' || (end > line && end[-1] == ';'))
            break;
        first = line;
    }
    return first;
}

static int parameters_of(const char *signature, const char *brace)
{
    int depth = 0, count = 0;

    for (const char *at = signature; at < brace; at++) {
        depth += *at == '(' || *at == '[';
        depth -= *at == ')' || *at == ']';
        if (depth == 1 && *at == '(')
            count = 1;                           /* the last list counts: attributes stand before */
        count += depth == 1 && *at == ',';
    }
    return count;
}

static void check_function(const lint_file *file, const char *brace)
{
    const char *signature = signature_of(file->code, brace);
    const int parameters = parameters_of(signature, brace);
    int lines = 1, depth = 0, deepest = 0;
    const char *at = signature;

    for (; *at != '\0' && !(at > brace && *at == '}' && at[-1] == '\n'); at++) {
        lines += *at == '\n';
        depth += at >= brace && *at == '{';
        depth -= at >= brace && *at == '}';
        deepest = depth > deepest ? depth : deepest;
    }
    if (lines > FUNCTION_LINES)
        lint_report("size-function", file->path, lint_line(file, signature),
                    "function of %d lines, at most %d", lines, FUNCTION_LINES);
    if (parameters > PARAMETERS)
        lint_report("size-parameters", file->path, lint_line(file, signature),
                    "%d parameters, at most %d: make it a struct", parameters, PARAMETERS);
    if (deepest - 1 > NESTING)
        lint_report("size-nesting", file->path, lint_line(file, signature),
                    "%d levels of braces, at most %d", deepest - 1, NESTING);
}

void lint_sizes(const lint_file *file)
{
    const bool is_test = lint_under(file->path, "tests/");
    const int lines_max = is_test ? TEST_FILE_LINES : FILE_LINES;
    int line = 0;

    if (file->kind != LINT_C && file->kind != LINT_BUILD && !lint_ends(file->path, ".py"))
        return;
    for (const char *at = file->text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        const int columns = columns_of(at, strcspn(at, "\n"));

        line++;
        if (columns > COLUMNS)
            lint_report("size-line", file->path, line, "%d columns, at most %d", columns, COLUMNS);
    }
    if (line > lines_max)
        lint_report("size-file", file->path, 0, "%d lines, at most %d", line, lines_max);
    if (file->kind != LINT_C)
        return;
    for (const char *at = strstr(file->code, "\n{\n"); at != NULL; at = strstr(at, "\n{\n")) {
        check_function(file, at + 1);
        at += 2;
    }
}
