/* isobit-lint: the rules that a reader of one file cannot see. The tables below are the rules;
 * docs/architecture.md explains the rooms, docs/style.md the rest.
 *
 *     isobit-lint ROOT                  every rule; docs/ops.md must be up to date
 *     isobit-lint ROOT --flags FILE     also the flags of every unit of a compile_commands.json
 *     isobit-lint ROOT --ops-md FILE    writes the support matrix instead
 *
 * Exit status: 0 clean, 1 violations, 2 cannot run. */
#include "tests/lint/lint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who may know whom ---- */

/* Files of one room know each other. The room of a file is the longest that its path begins with;
 * whatever no row names is an edge that does not exist. */
const lint_edge lint_edges[] = {
    {"core/", ""},
    /* lane/ is the common subset of C, CUDA C++ and GLSL: it knows nothing but itself. */
    {"ggml-style-ops/lane/", ""},
    {"ggml-style-ops/", "core/ ggml-style-ops/lane/"},
    /* Backends: the table, the arguments, and the helpers that fix an arithmetic (orders, the
     * statistic of a norm, the coders of a quantiser, pages): shared, so that it exists once. */
    {"backends/", "core/ ggml-style-ops/ops.h ggml-style-ops/ops.def"},
    {"backends/cpu/", "core/ backends/select.h ggml-style-ops/lane/ ggml-style-ops/ops.h "
                      "ggml-style-ops/ops.def ggml-style-ops/args.h ggml-style-ops/order.h "
                      "ggml-style-ops/rows.h ggml-style-ops/rms.h ggml-style-ops/quant.h "
                      "ggml-style-ops/select.h ggml-style-ops/index_dot.h "
                      "ggml-style-ops/attention.h ggml-style-ops/gate.h "
                      "ggml-style-ops/inv_sqrt.h ggml-style-ops/pool.h"},
    /* Model: operators by name and parameters; the tables it writes for them (rows.h), and the
     * scalar functions that its constants and weights are made with. */
    {"model/", "core/ ggml-style-ops/ops.h ggml-style-ops/fusions.h ggml-style-ops/params.h "
               "ggml-style-ops/rows.h ggml-style-ops/inv_sqrt.h ggml-style-ops/lane/"},
    {"text/", "core/"},
    /* Convert: what a configuration and a tensor directory mean, never how a step is built. */
    {"convert/", "core/ ggml-style-ops/ops.h ggml-style-ops/params.h model/config.h "
                 "model/config.def model/config_rules.h model/family.h model/weights.h "
                 "model/engram.h model/admit.h"},
    {"apps/", "core/isobit.h core/json.h"},
    /* The bench times operators and kernels: it opens a device and walks the operators' cases. */
    {"apps/bench/", "apps/ core/ ggml-style-ops/ops.h ggml-style-ops/params.h "
                    "ggml-style-ops/cases.h backends/cpu/simd.h"},
    {"tests/", "*"},
    {NULL, NULL},
};

/* ---- which file may know which library ---- */

const lint_door lint_doors[] = {
    {"errno.h float.h inttypes.h limits.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h "
     "string.h", "*"},
    {"omp.h", "core/threads.c"},
    {"jansson.h", "core/json.c"},
    {"xxhash.h", "core/hash.c"},
    {"pcre2.h", "text/split.c"},
    {"utf8proc.h", "text/unicode.c"},
    {"cmocka.h", "tests/"},
    /* Counters of the allocator, the flag word of a step, pieces of work: integers. */
    {"stdatomic.h", "core/alloc.c core/op.c core/threads.c tests/"},
    {"xmmintrin.h", "core/fpmode_x86.c tests/"},
    {"immintrin.h arm_neon.h", "backends/cpu/simd.h"},
    {"simde/x86/avx512.h", "backends/cpu/x86/simde.h"},
    {"cpuid.h", "core/cpuinfo_x86.c"},
    {"sys/auxv.h", "core/cpuinfo_arm.c"},
    /* Systems: core/os_posix.c for the library, convert/folder.c to write checkpoints, apps/ for
     * terminals and signals. */
    {"dirent.h fcntl.h pthread.h sched.h sys/mman.h sys/resource.h sys/stat.h "
     "sys/statvfs.h sys/types.h "
     "sys/wait.h time.h unistd.h", "core/os_posix.c core/pages_linux.c convert/folder.c apps/ "
     "tests/"},
    {"linux/mempolicy.h sys/syscall.h", "core/pages_linux.c tests/"},
    {"getopt.h signal.h", "apps/ tests/"},
    {"dlfcn.h", "apps/bench/bench_blas.c"},
    {"fenv.h", "core/fpmode_none.c tests/"},
    {"math.h", "apps/bench/bench_svg.c tests/"},
    {"ctype.h setjmp.h", "tests/"},
    {"isobit.h", "tests/install/"},
    {NULL, NULL},
};

/* ---- words ---- */

#define LIBRARY "core/ ggml-style-ops/ backends/ model/ text/ convert/"
#define NUMBERS "core/ ggml-style-ops/ backends/ model/"

const lint_word lint_words[] = {
    {"alloc", "malloc( calloc( realloc( free( posix_memalign( aligned_alloc( strdup( strndup( "
     "asprintf( vasprintf( getline(", LIBRARY, "core/alloc.c",
     "memory comes from core/alloc.h"},
    {"print", "printf( vprintf( puts( putchar( perror( stdout stderr", LIBRARY, "core/check.h",
     "the library never prints"},
    {"exit", "exit( _Exit( quick_exit( abort( raise( assert(", LIBRARY, "core/check.h",
     "the library never exits; a bug is an ISO_ASSERT"},
    {"getenv", "getenv( secure_getenv( setenv( putenv(", LIBRARY, "",
     "options are read once, in apps/, and passed"},
    {"libm", "exp( expf( exp2( exp2f( expm1( expm1f( log( logf( log2( log2f( log10( log10f( "
     "log1p( log1pf( sqrt( sqrtf( cbrt( cbrtf( pow( powf( sin( sinf( cos( cosf( tan( tanf( "
     "sincos( sincosf( tanh( tanhf( erf( erff( hypot( hypotf( fmod( fmodf( ldexp( ldexpf( "
     "scalbn( scalbnf( frexp( frexpf( round( roundf( rint( rintf( lrint( lrintf( nearbyint( "
     "nearbyintf( floor( floorf( ceil( ceilf( trunc( truncf( fabs( fabsf( fmax( fmaxf( fmin( "
     "fminf(", NUMBERS, "", "libm differs between systems: lane/ has the functions"},
    {"libm", "_mm_rcp_ps _mm_rcp_ss _mm_rsqrt_ps _mm_rsqrt_ss _mm256_rcp_ps _mm256_rsqrt_ps "
     "_mm512_rcp14_ps _mm512_rsqrt14_ps vrecpeq_f32 vrecpe_f32 vrsqrteq_f32 vrsqrte_f32",
     NUMBERS, "", "estimates differ between processors"},
    {"chance", "rand( srand( random( srandom( time( clock( gettimeofday( clock_gettime(", LIBRARY,
     "core/os_posix.c", "no time and no hidden state may reach a result"},
    {"threads", "omp_get_thread_num omp_get_num_threads omp_set_num_threads pthread_create",
     LIBRARY " apps/", "core/threads.c core/os_posix.c", "kernels and callers never see a thread"},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- allowances ---- */

static const char allow_path[] = "tests/lint/lint_allow.txt";

typedef struct allowance {
    char rule[32], path[256];
    int line, used;
} allowance;

static allowance *allowances;
static size_t allowance_count;
static int violation_count, allowed_count;

/* Lines "rule path reason"; '#' begins a comment line. */
static void read_allowances(const lint_tree *tree)
{
    const lint_file *file = lint_tree_find(tree, allow_path);
    const char *line = file != NULL ? file->text : "";
    int number = 0;

    for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        allowance one = {.line = ++number};
        char reason[8] = "";

        if (*line == '#' || *line == '\n')
            continue;
        if (sscanf(line, "%31s %255s %7[^\n]", one.rule, one.path, reason) != 3) {
            lint_report("allow", allow_path, number, "a line is: rule path reason");
            continue;
        }
        allowances = lint_grow(allowances, (allowance_count + 1) * sizeof *allowances);
        allowances[allowance_count++] = one;
    }
}

void lint_report(const char *rule, const char *path, int line, const char *format, ...)
{
    va_list list;

    for (size_t i = 0; i < allowance_count; i++)
        if (strcmp(allowances[i].rule, rule) == 0 && strcmp(allowances[i].path, path) == 0) {
            allowances[i].used++;
            allowed_count++;
            return;
        }
    violation_count++;
    if (line != 0)
        printf("%s:%d: %s: ", path, line, rule);
    else
        printf("%s: %s: ", path, rule);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
}

static void check_allowances(void)
{
    for (size_t i = 0; i < allowance_count; i++)
        if (allowances[i].used == 0)
            lint_report("allow", allow_path, allowances[i].line,
                        "nothing needs this allowance (%s, %s)", allowances[i].rule,
                        allowances[i].path);
}

/* ---- the program ---- */

/* #pragma omp has its own door; the preprocessor line is no identifier that a row could name. */
static void check_pragma(const lint_file *file)
{
    for (const char *at = strstr(file->code, "pragma omp"); at != NULL;
         at = strstr(at + 1, "pragma omp"))
        if (!lint_under(file->path, "core/threads.c"))
            lint_report("door", file->path, lint_line(file, at),
                        "OpenMP belongs in core/threads.c");
}

static void check_ops_md(const lint_tree *tree)
{
    const lint_file *file = lint_tree_find(tree, "docs/ops.md");
    char *text = lint_ops_md(tree);

    if (file == NULL || strcmp(file->text, text) != 0)
        lint_report("ops-md", "docs/ops.md", 0,
                    "differs from the tables; run: isobit-lint ROOT --ops-md ROOT/docs/ops.md");
    free(text);
}

static int write_ops_md(const lint_tree *tree, const char *path)
{
    char *text = lint_ops_md(tree);
    FILE *file = fopen(path, "wb");
    const bool is_written = file != NULL && fputs(text, file) >= 0;
    const bool is_closed = file != NULL && fclose(file) == 0;

    free(text);
    if (is_written && is_closed)
        return 0;
    fprintf(stderr, "isobit-lint: cannot write %s\n", path);
    return 2;
}

/* flags: a compile_commands.json, or NULL. */
static void check_tree(const lint_tree *tree, const char *flags)
{
    read_allowances(tree);
    for (size_t i = 0; i < tree->count; i++) {
        const lint_file *file = &tree->files[i];

        lint_sizes(file);
        lint_phrases(file);
        if (file->kind != LINT_C)
            continue;
        lint_includes(tree, file);
        lint_identifiers(file);
        lint_public_header(file);
        check_pragma(file);
    }
    lint_rows(tree);
    check_ops_md(tree);
    if (flags != NULL)
        lint_flags(flags);
    check_allowances();
    printf("isobit-lint: %zu files, %d violations, %d allowed by %zu lines\n", tree->count,
           violation_count, allowed_count, allowance_count);
}

static void free_tree(lint_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->files[i].path);
        free(tree->files[i].text);
        free(tree->files[i].code);
    }
    free(tree->files);
    free(allowances);
}

int main(int argc, char **argv)
{
    const bool has_option = argc == 4;
    lint_tree tree = {0};
    int code = 0;

    if (argc != 2 && !(has_option && (strcmp(argv[2], "--ops-md") == 0
                                      || strcmp(argv[2], "--flags") == 0))) {
        fprintf(stderr, "usage: isobit-lint ROOT [--ops-md FILE | --flags FILE]\n");
        return 2;
    }
    lint_tree_read(&tree, argv[1]);
    if (has_option && strcmp(argv[2], "--ops-md") == 0)
        code = write_ops_md(&tree, argv[3]);
    else
        check_tree(&tree, has_option ? argv[3] : NULL);
    free_tree(&tree);
    return code != 0 ? code : violation_count != 0;
}
