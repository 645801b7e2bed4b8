/* check: what the files of isobit-test share. A subject is one case of one operator, made ready:
 * inferred, inputs filled, the oracle's outputs kept. Runners (direct.c, device.c) run a kernel on
 * it and verify.c says what is wrong. */
#ifndef ISO_TESTS_CHECK_H
#define ISO_TESTS_CHECK_H

#include "core/backend.h"
#include "ggml-style-ops/cases.h"

enum {
    CHECK_OPERANDS_MAX = ISO_STEP_TENSORS_MAX,
    CHECK_MARGIN = 256,              /* guard zone beside an operand, bytes */
    CHECK_MARGIN_BYTE = 0x5c,
    CHECK_BLOCK_WORDS = 16,          /* argument block */
    CHECK_TEXT = 1024
};

/* ---- cases ---- */

typedef struct check_list {
    iso_case *cases;
    uint32_t count, capacity;
} check_list;

/* All cases of an operator, in its order; names are unique. */
void check_list_init(check_list *list, const iso_op *op);
void check_list_deinit(check_list *list);
/* The function of an iso_case_sink whose context is a list. */
void check_list_add(void *list, const iso_case *test);

/* ---- subjects ---- */

typedef enum check_role {
    CHECK_ABSENT, CHECK_INPUT, CHECK_OUTPUT, CHECK_STATE, CHECK_ALIAS, CHECK_SCRATCH,
    CHECK_LINK,                      /* of a fusion: an output of an earlier part */
    CHECK_INNER                      /* of a fusion: an output that nobody outside reads */
} check_role;

typedef struct check_operand {
    check_role role;                 /* STATE: input 0 of an UPDATE operator; ALIAS: its output 0 */
    iso_tensor_desc desc;
    uint64_t bytes, live_bytes;      /* capacity; the rows that exist in the case */
    unsigned char *value;            /* INPUT, STATE: content before the run */
    unsigned char *expected;         /* OUTPUT, STATE: the oracle's bytes */
} check_operand;

typedef struct check_subject {
    const iso_case *test;
    iso_op_call call;
    check_operand operand[CHECK_OPERANDS_MAX];       /* inputs, outputs, scratch */
    uint32_t operand_count;
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX];     /* capacity in it */
    _Alignas(8) unsigned char resolved[ISO_OP_ARGS_MAX]; /* the case's live rows in it */
    uint32_t block[CHECK_BLOCK_WORDS];
    uint64_t units;                  /* of the resolved args */
} check_subject;

/* Infers and fills; false with a text when the case does not infer. */
bool check_subject_init(check_subject *subject, const iso_case *test, char text[CHECK_TEXT]);
/* The same case with its weights in `layout`: a subject of its own, with the same expected bytes.
 * False: the operator takes no packed weight. */
bool check_subject_pack(const check_subject *subject, iso_layout layout, check_subject *packed);
void check_subject_deinit(check_subject *subject);
/* XXH3-128 of all live output bytes in order, once there is an oracle. */
void check_subject_hash(const check_subject *subject, uint64_t hash[2]);

/* ---- groups: what runs as one step ---- */

typedef struct check_group {
    const iso_fusion *fusion;        /* NULL: one subject by itself */
    const check_subject *part[ISO_FUSION_PARTS_MAX];
    uint32_t part_count;
    iso_fused_link link[ISO_FUSION_PARTS_MAX][ISO_OP_INPUTS_MAX];
    uint32_t kernel[ISO_FUSION_PARTS_MAX];   /* of each part alone */
    uint32_t fused_kernel;
    uint32_t flags_expected;
} check_group;

/* ---- what is being run, for reports and for the crash handler ---- */

typedef struct check_run {
    const char *op, *device, *kernel, *test, *variant;   /* kernel: "reference", "m1/portable" */
} check_run;
extern check_run check_now;
/* Reports a crash, or an alarm, as a failure with its replay line and ends the process with status
 * 3. */
void check_catch_crashes(void);

/* ---- verification ---- */

/* Two patterns, both NaN in every float format: a byte that is not written keeps one of them. */
void check_poison(void *data, uint64_t bytes, uint32_t pattern);

/* Where the operands lay in a run, and what there was before it. */
typedef struct check_trial {
    const unsigned char *at[CHECK_OPERANDS_MAX];
    uint32_t pattern;                /* of poison */
    uint32_t flags;
} check_trial;

/* False with a text when a flag, an input, an output byte or a byte past the live rows is wrong. */
bool check_verify(const check_subject *subject, const check_trial *trial, char text[CHECK_TEXT]);
bool check_verify_margin(const check_subject *subject, uint32_t operand,
                         const unsigned char *margin, const char *side, char text[CHECK_TEXT]);
/* "out 0 [12]: 3f80, expected 3f81, 1 ulp; 3 of 70 differ". */
void check_difference(const check_operand *operand, const unsigned char *got,
                      const char *what, char text[CHECK_TEXT]);

/* ---- runners ---- */

typedef enum check_side { CHECK_END, CHECK_BEGIN, CHECK_SIDES } check_side;

/* Address of an operand that ends at (begins after) a protected page; the other side has a margin.
 * Valid until the same operand and side are placed again. */
unsigned char *check_place(uint32_t operand, check_side side, uint64_t bytes);
const unsigned char *check_placed_margin(uint32_t operand, check_side side);
/* Says where an address lies among the placed operands; "" if elsewhere. */
void check_where(const void *address, char text[CHECK_TEXT]);

/* Runs the reference once over all units and keeps its outputs. */
bool check_oracle(check_subject *subject, char text[CHECK_TEXT]);
/* Splits, patterns, sides, flush modes: each compared with the oracle. Adds to *comparisons. */
bool check_direct(const check_subject *subject, iso_kernel_fn *kernel, uint64_t *comparisons,
                  char text[CHECK_TEXT]);
/* The hardware's flush-to-zero and denormals-are-zero; false where there is no such mode. */
bool check_flush_enter(uint64_t *old);
void check_flush_leave(uint64_t old);

typedef struct check_device check_device;
check_device *check_device_open(const char *name, uint32_t threads, char text[CHECK_TEXT]);
void check_device_close(check_device **device);
/* The row the backend itself chooses. False: it refuses the call, with its reason. */
bool check_device_query(check_device *device, const check_subject *subject, iso_support *support,
                        char text[CHECK_TEXT]);
/* Records one program and launches it `rounds` times, each compared with the oracle. */
bool check_on_device(check_device *device, const check_subject *subject, uint32_t kernel_index,
                     uint32_t rounds, uint64_t *comparisons, char text[CHECK_TEXT]);
bool check_group_on_device(check_device *device, const check_group *group, uint32_t rounds,
                           uint64_t *comparisons, char text[CHECK_TEXT]);
/* False: the backend does not offer the fusion for this match. */
bool check_device_query_fused(check_device *device, const iso_fused_call *call,
                              iso_support *support);

/* ---- programs of main ---- */

typedef struct check_options {
    const char *op, *test, *kernel, *device;     /* NULL: all; device "cpu" */
    const char *golden;                          /* file */
    uint32_t threads;                            /* 0: 1 and 2 */
    bool is_verbose;
} check_options;

int check_suite(const check_options *options);
/* fusions.c: every row of fusions.def: fused == parts. Adds to the totals. */
typedef struct check_totals {
    uint64_t fusions, cases, comparisons, failures;
} check_totals;
void check_fusions(const check_options *options, check_totals *totals);
int check_counts(const check_options *options);
int check_list_all(const check_options *options);
int check_golden_compare(const check_options *options);
int check_golden_write(const check_options *options);
int check_self(void);

/* Whether --op names it or nothing. */
bool check_fusion_wanted(const check_options *options, const iso_fusion *fusion);
/* Kernels of an operator on the CPU: index `i` of 0 .. count: rows, then the reference. */
bool check_kernel_wanted(const check_options *options, const char *form_isa);
bool check_op_wanted(const check_options *options, const iso_op *op);
bool check_test_wanted(const check_options *options, const iso_case *test);

#endif
