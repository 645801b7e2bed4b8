/* Words: includes and doors, forbidden identifiers, forbidden phrases, the public header. */
#include "tests/lint/lint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- includes ---- */

static const lint_edge *edge_of(const char *path)
{
    const lint_edge *best = NULL;

    for (const lint_edge *edge = lint_edges; edge->room != NULL; edge++)
        if (lint_under(path, edge->room)
            && (best == NULL || strlen(edge->room) > strlen(best->room)))
            best = edge;
    return best;
}

static void check_own(const lint_tree *tree, const lint_file *file, const char *name, int line)
{
    const lint_edge *edge = edge_of(file->path), *target = edge_of(name);

    if (lint_tree_find(tree, name) == NULL)
        lint_report("edge", file->path, line,
                    "\"%s\" is no file of the tree (includes begin with the room)", name);
    else if (edge == NULL || target == NULL)
        lint_report("edge", file->path, line, "\"%s\": not between rooms", name);
    else if (target != edge && !lint_under(name, edge->may_include))
        lint_report("edge", file->path, line, "%s may not know \"%s\"", edge->room, name);
}

static void check_library(const lint_file *file, const char *name, int line)
{
    for (const lint_door *door = lint_doors; door->headers != NULL; door++)
        if (lint_has_word(door->headers, name, strlen(name))) {
            if (!lint_under(file->path, door->where))
                lint_report("door", file->path, line, "<%s> belongs in %s", name, door->where);
            return;
        }
    lint_report("door", file->path, line, "<%s> has no row in the table of doors", name);
}

void lint_includes(const lint_tree *tree, const lint_file *file)
{
    static const char word[] = "#include";

    for (const char *at = strstr(file->code, word); at != NULL; at = strstr(at + 1, word)) {
        const char *from = file->text + (at - file->code) + sizeof word - 1;
        const int line = lint_line(file, at);
        char name[256], close;

        from += strspn(from, " ");
        if ((*from != '"' && *from != '<')
            || sscanf(from + 1, *from == '"' ? "%255[^\"]%c" : "%255[^>]%c", name, &close) != 2) {
            lint_report("edge", file->path, line, "cannot read this #include");
            continue;
        }
        if (*from == '"')
            check_own(tree, file, name, line);
        else
            check_library(file, name, line);
    }
}

/* ---- identifiers ---- */

static bool is_word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Identifiers of the language and its implementations that a header may use. */
static const char reserved_ok[] =
    "_Static_assert _Alignas _Alignof _Bool _Pragma __VA_ARGS__ __FILE__ __LINE__ __cplusplus "
    "__GNUC__ __clang__ __FAST_MATH__ __has_attribute __attribute__ _WIN32 _OPENMP __x86_64__ "
    "__aarch64__ __builtin_fmaf";

static void check_identifier(const lint_file *file, const char *word, size_t bytes)
{
    const char *next = word + bytes + strspn(word + bytes, " ");
    char call[80];

    snprintf(call, sizeof call, "%.*s(", (int)(bytes < 78 ? bytes : 78), word);
    for (const lint_word *row = lint_words; row->rule != NULL; row++)
        if ((lint_has_word(row->words, word, bytes)
             || (*next == '(' && lint_has_word(row->words, call, strlen(call))))
            && lint_under(file->path, row->where) && !lint_under(file->path, row->except))
            lint_report(row->rule, file->path, lint_line(file, word), "%.*s: %s", (int)bytes, word,
                        row->why);
}

static const char library[] =
    "core/ ggml-style-ops/ backends/ model/ text/ convert/ apps/";

/* `long` has another size on every system; `long long` has not, and printf needs it. */
static void check_long(const lint_file *file, const char *word, size_t bytes)
{
    const char *before = word;

    if (bytes != 4 || strncmp(word, "long", 4) != 0 || !lint_under(file->path, library))
        return;
    while (before > file->code && before[-1] == ' ')
        before--;
    if (before - file->code >= 4 && strncmp(before - 4, "long", 4) == 0)
        return;
    if (strncmp(word + 4 + strspn(word + 4, " "), "long", 4) == 0)
        return;
    lint_report("long", file->path, lint_line(file, word), "long: use int64_t or size_t");
}

/* A fused product is exact or a mistake; the line says which. */
static void check_fma(const lint_file *file, const char *word, size_t bytes)
{
    const char *line_end = word + strcspn(word, "\n"), *at = word;
    const char *comment = strstr(file->text + (word - file->code), "/*");

    if (!lint_under(file->path, "core/ ggml-style-ops/ backends/ model/"))
        return;
    for (; at + 3 <= word + bytes; at++)
        if (strncmp(at, "fma", 3) == 0 && (at == word || at[-1] == '_'))
            break;
    if (at + 3 <= word + bytes
        && (comment == NULL || comment - file->text > line_end - file->code))
        lint_report("fma", file->path, lint_line(file, word),
                    "%.*s without a comment on the line that says why it is exact", (int)bytes,
                    word);
}

static void check_atomic(const lint_file *file, const char *word, size_t bytes)
{
    const char *next = word + bytes + strspn(word + bytes, " (");

    if (bytes == 7 && strncmp(word, "_Atomic", 7) == 0
        && (strncmp(next, "float", 5) == 0 || strncmp(next, "double", 6) == 0))
        lint_report("atomic", file->path, lint_line(file, word),
                    "an atomic float: its order of sums is that of the threads");
}

static void check_underscore(const lint_file *file, const char *word, size_t bytes)
{
    bool is_bad = word[0] == '_';

    if (word > file->code && word[-1] == '#')    /* a##_b: a part of a name */
        return;
    if (strncmp(file->path, "backends/cpu/x86/", 17) == 0    /* intrinsics and their types */
        && (strncmp(word, "_mm", 3) == 0 || strncmp(word, "__m", 3) == 0
            || strncmp(word, "_MM_", 4) == 0 || strncmp(word, "_CMP_", 5) == 0))
        return;
    for (size_t i = 0; i + 1 < bytes; i++)
        is_bad = is_bad || (word[i] == '_' && word[i + 1] == '_');
    if (is_bad && lint_ends(file->path, ".h") && !lint_has_word(reserved_ok, word, bytes))
        lint_report("underscore", file->path, lint_line(file, word),
                    "%.*s: leading and double underscores are the implementation's", (int)bytes,
                    word);
}

void lint_identifiers(const lint_file *file)
{
    for (const char *at = file->code; *at != '\0';) {
        size_t bytes = 0;

        while (is_word_char(at[bytes]))
            bytes++;
        if (bytes != 0 && !isdigit((unsigned char)*at)) {
            check_identifier(file, at, bytes);
            check_long(file, at, bytes);
            check_fma(file, at, bytes);
            check_atomic(file, at, bytes);
            check_underscore(file, at, bytes);
        }
        at += bytes != 0 ? bytes : 1;
    }
}

/* ---- phrases: parts of any text ---- */

typedef struct phrase {
    const char *rule, *text;
    bool in_c, in_build, in_doc, in_data;
    const char *why;
} phrase;

/* Written in two parts, so that this file does not hold what it forbids. */
static const phrase phrases[] = {
    {"path", "/wo" "rk/", true, true, true, true, "a path of one machine"},
    {"path", "/fa" "rm/", true, true, true, true, "a path of one machine"},
    {"path", "/ho" "me/", true, true, true, true, "a path of one machine"},
    {"path", "/ro" "ot/", true, true, true, true, "a path of one machine"},
    {"host", "py" "pi.org", true, true, true, true, "a registry's host"},
    {"host", "pythonh" "osted", true, true, true, true, "a registry's host"},
    {"host", "npm" "js.", true, true, true, true, "a registry's host"},
    {"host", "crates" ".io", true, true, true, true, "a registry's host"},
    {"host", "proxy.gol" "ang", true, true, true, true, "a registry's host"},
    {"host", "index" "-url", true, true, true, true, "a registry's host"},
    {"fast", "-ffast" "-math", false, true, false, false, "it breaks the bits"},
    {"fast", "-Of" "ast", false, true, false, false, "it breaks the bits"},
    {"fast", "-funsafe" "-math", false, true, false, false, "it breaks the bits"},
    {"fast", "-fassociative" "-math", false, true, false, false, "it breaks the bits"},
    {"fast", "-freciprocal" "-math", false, true, false, false, "it breaks the bits"},
    {"fast", "-ffinite" "-math", false, true, false, false, "it breaks the bits"},
    {"fast", "-fno-signed" "-zeros", false, true, false, false, "it breaks the bits"},
    {"fast", "-mfpmath" "=387", false, true, false, false, "it breaks the bits"},
    {"fast", "use_fast" "_math", false, true, false, false, "it breaks the bits"},
    {"fast", "-ffp-contract" "=fast", false, true, false, false, "it breaks the bits"},
};

static bool concerns(const phrase *row, lint_kind kind)
{
    switch (kind) {
    case LINT_C:
    case LINT_DEF:
        return row->in_c;
    case LINT_BUILD:
        return row->in_build;
    case LINT_DOC:
        return row->in_doc;
    default:
        return row->in_data;
    }
}

static void check_notes(const lint_file *file)
{
    static const char *const notes[] = {"TO" "DO", "FIX" "ME"};

    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        for (const char *at = strstr(file->text, notes[i]); at != NULL;
             at = strstr(at + 1, notes[i])) {
            const char *number = strchr(at, '#');

            if (number == NULL || number > at + strcspn(at, "\n")
                || !isdigit((unsigned char)number[1]))
                lint_report("note", file->path, lint_line(file, at),
                            "%s without an issue number", notes[i]);
        }
}

void lint_phrases(const lint_file *file)
{
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const phrase *row = &phrases[i];

        if (!concerns(row, file->kind))
            continue;
        for (const char *at = strstr(file->text, row->text); at != NULL;
             at = strstr(at + 1, row->text))
            lint_report(row->rule, file->path, lint_line(file, at), "%s: %s", row->text, row->why);
    }
    if (file->kind == LINT_C || file->kind == LINT_DEF || file->kind == LINT_BUILD)
        check_notes(file);
}

/* ---- the public header, and headers in general ---- */

/* A declaration at `at` has a comment above it or above its group, or at the end of its line. */
static bool is_explained(const lint_file *file, const char *at)
{
    const char *line = at;

    for (const char *end = at; *end != ';' && *end != '\0'; end++)
        if (end[1] == ';') {
            const char *rest = end + 2;

            if (strncmp(rest + strspn(rest, " "), "/*", 2) == 0)
                return true;
        }
    while (line > file->text && !(line[-1] == '\n' && (line - 1 == file->text || line[-2] == '\n')))
        line--;                                  /* to the blank line before the group */
    for (; line < at; line++)
        if (strncmp(line, "/*", 2) == 0)
            return true;
    return false;
}

void lint_public_header(const lint_file *file)
{
    static const char word[] = "ISO_" "API";
    const bool is_public = strcmp(file->path, "core/isobit.h") == 0;
    char begin[128];
    const char *name = strrchr(file->path, '/');

    for (const char *at = strstr(file->code, word); at != NULL; at = strstr(at + 1, word)) {
        const char *in_text = file->text + (at - file->code);

        if (!is_public)
            lint_report("api", file->path, lint_line(file, at),
                        "the public mark belongs in core/isobit.h");
        else if ((at == file->code || at[-1] == '\n') && !is_explained(file, in_text))
            lint_report("api", file->path, lint_line(file, at), "a public function without a "
                        "comment above it or above its group");
    }
    if (!lint_ends(file->path, ".h"))
        return;
    name = name != NULL ? name + 1 : file->path;
    snprintf(begin, sizeof begin, "/* %.*s", (int)(strlen(name) - 2), name);
    if (strncmp(file->text, begin, strlen(begin)) != 0)
        lint_report("header", file->path, 1, "a header begins with \"%s: what it is\"", begin);
}
