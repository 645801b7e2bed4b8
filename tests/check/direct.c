/* Direct calls of a kernel on guarded memory. */
#include "tests/check/check.h"

typedef struct variant {
    const char *name;
    check_side side;
    uint32_t pattern;
    uint64_t step;                   /* units per range; 0: all, 1 << 63: two halves */
    bool is_descending, is_flushed;
} variant;

#define HALVES ((uint64_t)1 << 63)

static const variant variants[] = {
    {"whole", CHECK_END, 0, 0, false, false},
    {"whole, other poison", CHECK_END, 1, 0, false, false},
    {"ranges of 1, descending", CHECK_BEGIN, 0, 1, true, false},
    {"ranges of 3", CHECK_BEGIN, 1, 3, false, false},
    {"ranges of 7, descending", CHECK_END, 1, 7, true, false},
    {"two halves, second first", CHECK_BEGIN, 0, HALVES, true, false},
    {"flush to zero", CHECK_END, 0, 0, false, true},
};

/* Places all operands on one side, inputs with their values. */
static void stage(const check_subject *s, check_side side, void *at[CHECK_OPERANDS_MAX])
{
    for (uint32_t i = 0; i < s->operand_count; i++) {
        const check_operand *operand = &s->operand[i];

        at[i] = NULL;
        if (operand->role == CHECK_ALIAS)
            at[i] = at[0];
        else if (operand->role != CHECK_ABSENT)
            at[i] = check_place(i, side, operand->bytes);
        if (operand->role == CHECK_INPUT)
            memcpy(at[i], operand->value, (size_t)operand->bytes);
    }
}

static void prepare(const check_subject *s, void *const *at, uint32_t pattern)
{
    for (uint32_t i = 0; i < s->operand_count; i++) {
        const check_operand *operand = &s->operand[i];

        if (operand->role == CHECK_STATE)
            memcpy(at[i], operand->value, (size_t)operand->bytes);
        else if (operand->role == CHECK_OUTPUT || operand->role == CHECK_SCRATCH)
            check_poison(at[i], operand->bytes, pattern);
    }
}

static void call_ranges(const check_subject *s, iso_kernel_fn *kernel, const iso_tensors *tensors,
                        const variant *v)
{
    const uint64_t step = v->step == 0 || s->units == 0 ? s->units
                        : v->step == HALVES             ? s->units / 2 + 1
                                                        : v->step;
    const uint64_t pieces = s->units == 0 ? 1 : (s->units + step - 1) / step;

    for (uint64_t i = 0; i < pieces; i++) {
        const uint64_t begin = (v->is_descending ? pieces - 1 - i : i) * step;
        const uint64_t end = s->units - begin < step ? s->units : begin + step;

        kernel(s->resolved, tensors, (iso_range){begin, end});
    }
}

/* Returns the flags raised; the flush mode of the processor is set for the calls only. */
static uint32_t call(const check_subject *s, iso_kernel_fn *kernel, void *const *at,
                     const variant *v)
{
    uint32_t flags = 0;
    const iso_tensors tensors = {at, s->block, &flags};
    uint64_t old = 0;
    const bool is_flushed = v->is_flushed && check_flush_enter(&old);

    call_ranges(s, kernel, &tensors, v);
    if (is_flushed)
        check_flush_leave(old);
    return flags;
}

static bool verify_margins(const check_subject *s, check_side side, char text[CHECK_TEXT])
{
    for (uint32_t i = 0; i < s->operand_count; i++)
        if (s->operand[i].role != CHECK_ABSENT && s->operand[i].role != CHECK_ALIAS
            && !check_verify_margin(s, i, check_placed_margin(i, side),
                                    side == CHECK_END ? "before" : "behind", text))
            return false;
    return true;
}

static bool try_variant(const check_subject *s, iso_kernel_fn *kernel, void *const *at,
                        const variant *v, char text[CHECK_TEXT])
{
    check_trial trial = {.pattern = v->pattern};

    check_now.variant = v->name;
    prepare(s, at, v->pattern);
    trial.flags = call(s, kernel, at, v);
    for (uint32_t i = 0; i < s->operand_count; i++)
        trial.at[i] = at[i];
    return check_verify(s, &trial, text) && verify_margins(s, v->side, text);
}

bool check_oracle(check_subject *s, char text[CHECK_TEXT])
{
    const variant whole = variants[0];
    void *at[CHECK_OPERANDS_MAX];
    uint32_t flags;

    check_now.variant = "oracle";
    stage(s, whole.side, at);
    prepare(s, at, whole.pattern);
    flags = call(s, s->call.op->reference, at, &whole);
    if (flags != s->test->flags_expected) {
        snprintf(text, CHECK_TEXT, "flags are %u, expected %u", flags, s->test->flags_expected);
        return false;
    }
    for (uint32_t i = 0; i < s->operand_count; i++)
        if (s->operand[i].expected != NULL)
            memcpy(s->operand[i].expected, at[i], (size_t)s->operand[i].bytes);
    return verify_margins(s, whole.side, text);
}

bool check_direct(const check_subject *s, iso_kernel_fn *kernel, uint64_t *comparisons,
                  char text[CHECK_TEXT])
{
    void *at[CHECK_SIDES][CHECK_OPERANDS_MAX];

    stage(s, CHECK_END, at[CHECK_END]);
    stage(s, CHECK_BEGIN, at[CHECK_BEGIN]);
    for (size_t i = 0; i < ISO_COUNT_OF(variants); i++) {
        ++*comparisons;
        if (!try_variant(s, kernel, at[variants[i].side], &variants[i], text))
            return false;
    }
    return true;
}
