/* The tree as text: walking, reading, blanking comments and literals. */
#include "tests/lint/lint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void *lint_grow(void *memory, size_t bytes)
{
    void *larger = realloc(memory, bytes);

    if (larger == NULL) {
        fprintf(stderr, "isobit-lint: out of memory\n");
        exit(2);
    }
    return larger;
}

char *lint_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = 1 << 16, used = 0;
    char *text;

    if (file == NULL)
        return NULL;
    text = lint_grow(NULL, capacity);
    for (size_t got; (got = fread(text + used, 1, capacity - used - 1, file)) != 0;) {
        used += got;
        if (capacity - used < 2)
            text = lint_grow(text, capacity *= 2);
    }
    fclose(file);
    text[used] = '\0';
    *bytes = used;
    return text;
}

bool lint_ends(const char *text, const char *end)
{
    const size_t bytes = strlen(text), end_bytes = strlen(end);

    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

bool lint_has_word(const char *words, const char *word, size_t bytes)
{
    for (const char *at = words; *at != '\0';) {
        const size_t word_bytes = strcspn(at, " ");

        if (word_bytes == bytes && strncmp(at, word, bytes) == 0)
            return true;
        at += word_bytes;
        at += strspn(at, " ");
    }
    return false;
}

bool lint_under(const char *path, const char *prefixes)
{
    for (const char *at = prefixes; *at != '\0';) {
        const size_t bytes = strcspn(at, " ");
        const bool is_folder = at[bytes - 1] == '/';

        if ((bytes == 1 && *at == '*')
            || (strncmp(path, at, bytes) == 0 && (is_folder || path[bytes] == '\0')))
            return true;
        at += bytes;
        at += strspn(at, " ");
    }
    return false;
}

int lint_line(const lint_file *file, const char *at)
{
    const bool is_code = at >= file->code && at <= file->code + file->bytes;
    const char *begin = is_code ? file->code : file->text;
    int line = 1;

    for (; begin < at; begin++)
        line += *begin == '\n';
    return line;
}

static lint_kind kind_of(const char *path)
{
    static const char *const c[] = {".c", ".h", ".cc", ".cu", ".cuh", ".comp", ".glsl"};
    static const char *const build[] = {"CMakeLists.txt", ".cmake", ".in", ".sh"};
    const char *name = strrchr(path, '/');

    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        if (lint_ends(path, c[i]))
            return LINT_C;
    for (size_t i = 0; i < sizeof build / sizeof *build; i++)
        if (lint_ends(path, build[i]))
            return LINT_BUILD;
    if (lint_ends(path, ".def"))
        return LINT_DEF;
    if (lint_ends(path, ".md"))
        return LINT_DOC;
    return strchr(name != NULL ? name : path, '.') == NULL ? LINT_BUILD : LINT_DATA;
}

/* The end of the comment or literal that begins at `at`; NULL if none begins there. */
static char *end_of_blank(char *at)
{
    if (at[0] == '/' && at[1] == '*') {
        char *end = strstr(at + 2, "*/");

        return end != NULL ? end + 2 : at + strlen(at);
    }
    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (*at == '"' || *at == '\'') {
        char *end = at + 1;

        while (*end != '\0' && *end != *at && *end != '\n')
            end += *end == '\\' && end[1] != '\0' ? 2 : 1;
        return *end == *at ? end + 1 : end;
    }
    return NULL;
}

/* A quote inside a number ('0x1'f) does not occur in C11. */
static void blank(char *code)
{
    for (char *at = code; *at != '\0';) {
        char *end = end_of_blank(at);

        if (end == NULL) {
            at++;
            continue;
        }
        for (; at < end; at++)
            if (*at != '\n')
                *at = ' ';
    }
}

static void add_file(lint_tree *tree, const char *path)
{
    char full[8192];
    lint_file file = {0};

    snprintf(full, sizeof full, "%s/%s", tree->root, path);
    file.text = lint_read(full, &file.bytes);
    if (file.text == NULL || strlen(file.text) != file.bytes) {     /* unreadable or binary */
        free(file.text);
        return;
    }
    file.kind = kind_of(path);
    file.path = lint_grow(NULL, strlen(path) + 1);
    memcpy(file.path, path, strlen(path) + 1);
    file.code = lint_grow(NULL, file.bytes + 1);
    memcpy(file.code, file.text, file.bytes + 1);
    if (file.kind == LINT_C || file.kind == LINT_DEF)
        blank(file.code);
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity != 0 ? tree->capacity * 2 : 256;
        tree->files = lint_grow(tree->files, tree->capacity * sizeof *tree->files);
    }
    tree->files[tree->count++] = file;
}

/* Hidden entries and build folders are no part of the tree; .ci is. */
static bool is_skipped(const char *name)
{
    return (name[0] == '.' && strcmp(name, ".ci") != 0) || strncmp(name, "build", 5) == 0;
}

static void walk(lint_tree *tree, const char *folder)
{
    char path[4096];
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof path, "%s/%s", tree->root, folder);
    dir = opendir(path);
    if (dir == NULL) {
        fprintf(stderr, "isobit-lint: cannot read %s\n", path);
        exit(2);
    }
    while ((entry = readdir(dir)) != NULL) {
        char full[8192], inner[4096];
        struct stat info;

        snprintf(inner, sizeof inner, "%s%s%.255s", folder, *folder != '\0' ? "/" : "",
                 entry->d_name);
        snprintf(full, sizeof full, "%s/%s", tree->root, inner);
        if (entry->d_name[0] == '.' && (entry->d_name[1] == '\0' || entry->d_name[1] == '.'))
            continue;
        if (strcmp(entry->d_name, ".git") == 0)          /* of a worktree it is a file */
            continue;
        if (lstat(full, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && !(is_skipped(entry->d_name) && *folder == '\0'))
            walk(tree, inner);
        else if (S_ISREG(info.st_mode))
            add_file(tree, inner);
    }
    closedir(dir);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const lint_file *)a)->path, ((const lint_file *)b)->path);
}

void lint_tree_read(lint_tree *tree, const char *root)
{
    tree->root = root;
    walk(tree, "");
    if (tree->count == 0) {
        fprintf(stderr, "isobit-lint: %s: no files\n", root);
        exit(2);
    }
    qsort(tree->files, tree->count, sizeof *tree->files, by_path);
}

const lint_file *lint_tree_find(const lint_tree *tree, const char *path)
{
    for (size_t i = 0; i < tree->count; i++)
        if (strcmp(tree->files[i].path, path) == 0)
            return &tree->files[i];
    return NULL;
}
