/* lint: what the files of isobit-lint share. The program reads the tree once, applies rules that
 * are tables (the top of lint.c), and prints one line per violation:
 *
 *     path:line: rule: what is wrong
 *
 * A violation that lint_allow.txt allows is counted, not printed. The program allocates freely and
 * ends with exit status 2 when it cannot: it is a tool, not the library. */
#ifndef ISO_TESTS_LINT_H
#define ISO_TESTS_LINT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lint_kind {
    LINT_C,                  /* .c .h .cc .cu .cuh .comp .glsl */
    LINT_DEF,                /* .def: a table of C macros */
    LINT_BUILD,              /* CMakeLists.txt .cmake .in .sh and files without an ending */
    LINT_DOC,                /* .md */
    LINT_DATA                /* everything else that is text */
} lint_kind;

typedef struct lint_file {
    char *path;              /* relative to the root, '/' between parts */
    char *text;              /* NUL-terminated */
    char *code;              /* text; comments and literals of C are blank, lines stay */
    size_t bytes;
    lint_kind kind;
} lint_file;

typedef struct lint_tree {
    const char *root;
    lint_file *files;        /* by path, ascending */
    size_t count, capacity;
} lint_tree;

/* ---- source.c ---- */

void lint_tree_read(lint_tree *tree, const char *root);
const lint_file *lint_tree_find(const lint_tree *tree, const char *path);    /* NULL: none */
char *lint_read(const char *path, size_t *bytes);                            /* NULL: none */
void *lint_grow(void *memory, size_t bytes);
/* Whether path begins with one of the words of `prefixes` (between blanks); "" is no prefix, "*"
 * is every path. A word that does not end in '/' must be the whole path. */
bool lint_under(const char *path, const char *prefixes);
/* Whether `words` (between blanks) has this word. */
bool lint_has_word(const char *words, const char *word, size_t bytes);
bool lint_ends(const char *text, const char *end);
int lint_line(const lint_file *file, const char *at);                        /* of text or code */

/* ---- lint.c ---- */

/* line 0: the whole file. */
void lint_report(const char *rule, const char *path, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- the rules ---- */

typedef struct lint_edge {
    const char *room, *may_include;
} lint_edge;

typedef struct lint_door {
    const char *headers, *where;
} lint_door;

/* In files under `where` and not under `except`, none of `words` (identifiers of the code; with a
 * '(' only before one). */
typedef struct lint_word {
    const char *rule, *words, *where, *except, *why;
} lint_word;

extern const lint_edge lint_edges[];     /* ends with a NULL room; the longest match counts */
extern const lint_door lint_doors[];
extern const lint_word lint_words[];

void lint_sizes(const lint_file *file);                                      /* sizes.c */
void lint_includes(const lint_tree *tree, const lint_file *file);            /* words.c */
void lint_identifiers(const lint_file *file);
void lint_phrases(const lint_file *file);
void lint_public_header(const lint_file *file);
void lint_rows(const lint_tree *tree);                                       /* rows.c */
void lint_contract(const lint_file *file, const char *op);
char *lint_ops_md(const lint_tree *tree);                                    /* ops_md.c */
/* Every C object of compile_commands.json; the number of violations. */
void lint_flags(const char *path);                                           /* flags.c */

/* Rows "MACRO(a, b, ...)" of a table: calls `each` with the columns, blanks trimmed, and with the
 * comment at the end of the line. */
enum { LINT_COLUMNS_MAX = 8 };
typedef struct lint_row {
    char column[LINT_COLUMNS_MAX][64];
    char comment[128];
    int columns, line;
} lint_row;
typedef void lint_row_fn(void *context, const lint_row *row);
void lint_table(const lint_tree *tree, const char *path, const char *macro, lint_row_fn *each,
                void *context);

#endif
