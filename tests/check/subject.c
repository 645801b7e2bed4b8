#include "tests/check/check.h"

#include "core/alloc.h"
#include "core/hash.h"
#include "core/rows32.h"

/* ---- lists ---- */

void check_list_add(void *context, const iso_case *test)
{
    check_list *list = context;

    for (uint32_t i = 0; i < list->count; i++)
        ISO_ASSERT_SAYS(strcmp(list->cases[i].name, test->name) != 0, test->name);
    if (list->count == list->capacity) {
        const uint32_t more = list->capacity * 2 + 64;
        iso_case *grown = iso_alloc_zero(more, sizeof *grown, "check cases");

        ISO_ASSERT(grown != NULL);
        if (list->count != 0)
            memcpy(grown, list->cases, list->count * sizeof *grown);
        iso_release(list->cases, list->capacity * sizeof *grown);
        list->cases = grown;
        list->capacity = more;
    }
    list->cases[list->count++] = *test;
}

void check_list_init(check_list *list, const iso_op *op)
{
    iso_case_sink sink = {check_list_add, list};

    *list = (check_list){0};
    op->cases(&sink);
}

void check_list_deinit(check_list *list)
{
    iso_release(list->cases, list->capacity * sizeof *list->cases);
    *list = (check_list){0};
}

/* ---- subjects ---- */

static unsigned char *host_bytes(uint64_t bytes)
{
    unsigned char *data = iso_alloc((size_t)bytes + 1, 64, "check operand");

    ISO_ASSERT(data != NULL);
    return data;
}

/* Bytes of the leading rows that exist when word 0 of the block is `live`. */
static uint64_t live_bytes(const iso_tensor_desc *desc, const uint32_t *block)
{
    const uint64_t bytes = iso_desc_bytes(desc);
    const uint32_t rows = iso_live_resolve(iso_live_of(desc), block);

    return desc->extent[0] == 0 ? 0 : bytes / (uint64_t)desc->extent[0] * rows;
}

static void add_operand(check_subject *s, const iso_tensor_desc *desc, check_role role)
{
    check_operand *operand = &s->operand[s->operand_count++];

    *operand = (check_operand){.role = iso_desc_present(desc) ? role : CHECK_ABSENT,
                               .desc = *desc};
    if (operand->role == CHECK_ABSENT)
        return;
    operand->bytes = iso_desc_bytes(desc);
    operand->live_bytes = role == CHECK_STATE || role == CHECK_ALIAS
                              ? operand->bytes : live_bytes(desc, s->block);
    if (role == CHECK_INPUT || role == CHECK_STATE)
        operand->value = host_bytes(operand->bytes);
    if (role == CHECK_OUTPUT || role == CHECK_STATE)
        operand->expected = host_bytes(operand->bytes);
}

static void add_operands(check_subject *s)
{
    const iso_op *op = s->call.op;
    const bool is_update = (op->flags & ISO_OP_UPDATE) != 0;

    for (uint32_t i = 0; i < op->input_count; i++)
        add_operand(s, &s->call.in[i], is_update && i == 0 ? CHECK_STATE : CHECK_INPUT);
    for (uint32_t i = 0; i < op->output_count; i++)
        add_operand(s, &s->call.out[i], is_update && i == 0 ? CHECK_ALIAS : CHECK_OUTPUT);
    if ((op->flags & ISO_OP_SCRATCH) != 0) {
        const iso_tensor_desc scratch = op->scratch(&s->call);

        add_operand(s, &scratch, CHECK_SCRATCH);
    }
}

static void fill_inputs(check_subject *s)
{
    void *inputs[ISO_OP_INPUTS_MAX] = {0};

    for (uint32_t i = 0; i < s->call.op->input_count; i++) {
        inputs[i] = s->operand[i].value;
        if (s->operand[i].role != CHECK_ABSENT)
            iso_case_fill_input(s->test, i, inputs[i]);
    }
    if (s->test->make != NULL)
        s->test->make(s->test, inputs);
}

static void fill_args(check_subject *s)
{
    iso_live live;

    s->call.op->fill(&s->call, s->args);
    memcpy(s->resolved, s->args, sizeof s->args);
    memcpy(&live, s->resolved, sizeof live);
    live.count = iso_live_resolve(live, s->block);
    memcpy(s->resolved, &live, sizeof live);
    s->units = s->call.op->units(s->resolved);
}

/* infer fills every output it declares, with a legal descriptor. */
static bool check_inferred(const check_subject *s, char text[CHECK_TEXT])
{
    iso_error error = {0};

    for (uint32_t i = 0; i < s->call.op->output_count; i++)
        if (!iso_desc_present(&s->call.out[i])
            || iso_desc_check(&s->call.out[i], "output", &error) != ISO_OK) {
            snprintf(text, CHECK_TEXT, "output %u is not inferred: %s", i, error.text);
            return false;
        }
    return true;
}

bool check_subject_init(check_subject *s, const iso_case *test, char text[CHECK_TEXT])
{
    iso_error error = {0};

    *s = (check_subject){.test = test, .call = test->call};
    memset(s->block, 0xff, sizeof s->block);
    s->block[0] = test->live;
    if (s->call.op->infer(&s->call, &error) != ISO_OK) {
        snprintf(text, CHECK_TEXT, "the case does not infer: %s", error.text);
        return false;
    }
    if (!check_inferred(s, text))
        return false;
    add_operands(s);
    fill_inputs(s);
    fill_args(s);
    return true;
}

static void pack_operand(const check_operand *from, check_operand *to)
{
    if (from->value == NULL)
        return;
    if (to->desc.layout == ISO_LAYOUT_ROWS32)
        iso_rows32_pack(&to->desc, 0, iso_rows32_tiles(&to->desc), from->value, to->value);
    else
        memcpy(to->value, from->value, (size_t)from->bytes);
}

bool check_subject_pack(const check_subject *s, iso_layout layout, check_subject *packed)
{
    iso_error error = {0};
    bool has_weight = false;

    *packed = (check_subject){.test = s->test, .call = s->call};
    memcpy(packed->block, s->block, sizeof s->block);
    for (uint32_t i = 0; i < s->call.op->input_count; i++)
        if (iso_op_is_weight(s->call.op, i) && iso_desc_present(&s->call.in[i])) {
            packed->call.in[i].layout = layout;
            has_weight = true;
        }
    if (!has_weight)
        return false;
    ISO_ASSERT(packed->call.op->infer(&packed->call, &error) == ISO_OK);
    add_operands(packed);
    for (uint32_t i = 0; i < s->operand_count; i++) {
        pack_operand(&s->operand[i], &packed->operand[i]);
        if (s->operand[i].expected != NULL)
            memcpy(packed->operand[i].expected, s->operand[i].expected,
                   (size_t)s->operand[i].bytes);
    }
    fill_args(packed);
    return true;
}

void check_subject_deinit(check_subject *s)
{
    for (uint32_t i = 0; i < s->operand_count; i++) {
        iso_release(s->operand[i].value, (size_t)s->operand[i].bytes + 1);
        iso_release(s->operand[i].expected, (size_t)s->operand[i].bytes + 1);
    }
    *s = (check_subject){0};
}

void check_subject_hash(const check_subject *s, uint64_t hash[2])
{
    iso_hasher hasher;

    iso_hasher_init(&hasher);
    for (uint32_t i = 0; i < s->operand_count; i++)
        if (s->operand[i].expected != NULL)
            iso_hasher_add(&hasher, s->operand[i].expected, (size_t)s->operand[i].live_bytes);
    iso_hasher_end(&hasher, hash);
}
