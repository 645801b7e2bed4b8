/* The later parts of a fusion: for every operator, what its other inputs and its parameters are
 * when an earlier part makes its first ones. */
#include "tests/check/fusions.h"

#include "core/alloc.h"
#include "ggml-style-ops/params.h"

/* Completes test[k]; links say which inputs earlier parts make. */
typedef bool complete_fn(check_fused *f, uint32_t k);

/* ---- links ---- */

static const iso_tensor_desc *out_of(const check_fused *f, uint32_t part, uint32_t output)
{
    return &f->part[part].call.out[output];
}

static void link_to(check_fused *f, uint32_t k, uint32_t input, uint32_t part, uint32_t output)
{
    iso_case_in(&f->test[k], input, *out_of(f, part, output), ISO_FILL_ZERO, 0, 0);
    f->group.link[k][input] = (iso_fused_link){part + 1, output};
}

/* Another input whose leading rows are counted as those of part 0's output. */
static void add_rows(check_fused *f, uint32_t k, uint32_t input, iso_tensor_desc desc,
                     iso_fill fill)
{
    const iso_tensor_desc *like = out_of(f, k - 1, 0);

    desc.live_scalar = like->live_scalar;
    desc.live_mult = like->live_mult;
    iso_case_in(&f->test[k], input, desc, fill, 0, 0);
}

/* ---- operators ---- */

static bool complete_rms_norm(check_fused *f, uint32_t k)
{
    const iso_norm_params params = {1e-6f};

    link_to(f, k, 0, k - 1, 0);
    iso_case_in(&f->test[k], 1, iso_desc1(ISO_DTYPE_BF16, iso_desc_last(out_of(f, k - 1, 0))),
                ISO_FILL_MILD, 0, 0);
    iso_case_params(&f->test[k], &params, sizeof params);
    return true;
}

static bool complete_row_rms(check_fused *f, uint32_t k)
{
    const iso_norm_params params = {1e-6f};

    link_to(f, k, 0, k - 1, 0);
    iso_case_params(&f->test[k], &params, sizeof params);
    return true;
}

static bool complete_quant_fp8(check_fused *f, uint32_t k)
{
    static const uint32_t groups[] = {32, 128, 64};
    const iso_quant_params params = {groups[f->number % 3]};

    link_to(f, k, 0, k - 1, 0);
    iso_case_params(&f->test[k], &params, sizeof params);
    return true;
}

static bool complete_quant_fp4(check_fused *f, uint32_t k)
{
    link_to(f, k, 0, k - 1, 0);
    return true;
}

static bool complete_rope(check_fused *f, uint32_t k)
{
    const iso_tensor_desc *x = out_of(f, k - 1, 0);
    const int64_t half = iso_desc_last(x) / 2;
    const iso_rope_params params = {.inverse = f->number % 2};

    if (half == 0)
        return false;
    link_to(f, k, 0, k - 1, 0);
    add_rows(f, k, 1, iso_desc3(ISO_DTYPE_F32, x->extent[0], half < 32 ? half : 32, 2),
             ISO_FILL_MILD);
    iso_case_params(&f->test[k], &params, sizeof params);
    return true;
}

/* Two matmuls before it; weights where there are experts. */
static bool complete_swiglu(check_fused *f, uint32_t k)
{
    const iso_tensor_desc *g = out_of(f, k - 2, 0);
    const iso_swiglu_params params = {10.0f};

    link_to(f, k, 0, k - 2, 0);
    link_to(f, k, 1, k - 1, 0);
    if (g->rank == 3)
        add_rows(f, k, 2, iso_desc2(ISO_DTYPE_F32, g->extent[0], g->extent[1]), ISO_FILL_MILD);
    iso_case_params(&f->test[k], &params, sizeof params);
    return true;
}

static bool complete_moe_sum(check_fused *f, uint32_t k)
{
    const iso_tensor_desc *y = out_of(f, k - 1, 0);

    if (y->rank != 3)
        return false;
    link_to(f, k, 0, k - 1, 0);
    add_rows(f, k, 1, iso_desc2(ISO_DTYPE_BF16, y->extent[0], y->extent[2]), ISO_FILL_MILD);
    return true;
}

/* Keeps output 0, 1, ... of the last part that is no state_keep; two rows more than it has. */
static bool complete_state_keep(check_fused *f, uint32_t k)
{
    uint32_t from = k - 1;
    const iso_tensor_desc *src;

    while (strcmp(f->group.fusion->part[from], "state_keep") == 0)
        from--;
    src = out_of(f, from, k - 1 - from);
    if (src->rank != 2)
        return false;
    iso_case_in(&f->test[k], 0, iso_desc2(src->dtype, src->extent[0] + 2, src->extent[1]),
                ISO_FILL_RANGE, 0, 200);
    link_to(f, k, 1, from, k - 1 - from);
    return true;
}

static const struct {
    const char *op;
    complete_fn *complete;
} completions[] = {
    {"rms_norm", complete_rms_norm},      {"row_rms", complete_row_rms},
    {"quant_fp8", complete_quant_fp8},    {"quant_mxfp4", complete_quant_fp4},
    {"quant_nvfp4", complete_quant_fp4},  {"rope", complete_rope},
    {"swiglu", complete_swiglu},          {"moe_sum", complete_moe_sum},
    {"state_keep", complete_state_keep},
};

/* The same operator as the part before it: another case of it, with values of its own. */
static bool is_twin(const iso_fusion *fusion, uint32_t k)
{
    return k == 1 && strcmp(fusion->part[1], fusion->part[0]) == 0;
}

static complete_fn *completion_of(const char *op)
{
    for (size_t i = 0; i < ISO_COUNT_OF(completions); i++)
        if (strcmp(completions[i].op, op) == 0)
            return completions[i].complete;
    return NULL;
}

const char *check_fused_missing(const iso_fusion *fusion)
{
    for (uint32_t k = 1; k < fusion->part_count; k++)
        if (!is_twin(fusion, k) && completion_of(fusion->part[k]) == NULL)
            return fusion->part[k];
    return NULL;
}

/* ---- more cases: widths that the later parts take ---- */

static void widen(iso_case *test, int64_t n, uint32_t heads)
{
    const char *op = test->call.op->name;

    if (strcmp(op, "matmul_fp8") == 0) {
        iso_tile_params *params = (void *)test->call.params;

        params->heads = heads;
        test->call.in[2].extent[0] = n;
        test->call.in[3].extent[0] = (n + params->tile - 1) / params->tile;
    } else if (strcmp(op, "matmul_experts") == 0) {
        test->call.in[4].extent[1] = test->call.in[5].extent[1] = n;
    } else if (strcmp(op, "hc_collapse") == 0) {
        test->call.in[0].extent[2] = n;
    } else {
        test->call.in[1].extent[0] = n;
        if (iso_desc_present(&test->call.in[2]))
            test->call.in[2].extent[0] = n;
    }
}

void check_fused_widen(check_list *list, const iso_fusion *fusion)
{
    static const struct {
        int64_t n;
        uint32_t heads;
    } wide[] = {{32, 1}, {96, 3}, {160, 5}, {288, 3}, {416, 2}, {640, 5}};
    const bool has_heads = strcmp(fusion->part[1], "rope") == 0;
    const uint32_t count = list->count;
    iso_case_sink sink = {check_list_add, list};

    if (strncmp(fusion->part[0], "matmul_", 7) != 0
        && strcmp(fusion->part[0], "hc_collapse") != 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        for (size_t w = 0; w < ISO_COUNT_OF(wide); w++) {
            iso_case test = list->cases[i];

            /* Small ones, each at some of the widths. */
            if (iso_desc_last(&test.call.in[0]) > 1100 || test.call.in[0].extent[0] > 9
                || (i + w) % 3 != 0)
                continue;
            snprintf(test.name, sizeof test.name, "%.36s_n%d", list->cases[i].name,
                     (int)wide[w].n);
            widen(&test, wide[w].n, has_heads ? wide[w].heads : 0);
            iso_case_add(&sink, &test);
        }
}

/* ---- building ---- */

/* Runs a reference on the expected bytes themselves; returns its flags. */
static uint32_t run_reference(check_fused *f, uint32_t k)
{
    check_subject *s = &f->part[k];
    void *at[CHECK_OPERANDS_MAX] = {0};
    uint32_t flags = 0;
    const iso_tensors tensors = {at, s->block, &flags};

    for (uint32_t i = 0; i < s->operand_count; i++) {
        check_operand *operand = &s->operand[i];
        const check_subject *maker = s;

        if (operand->role == CHECK_INPUT)
            at[i] = operand->value;
        if (operand->role == CHECK_LINK) {
            maker = &f->part[f->group.link[k][i].part - 1];
            at[i] = maker->operand[maker->call.op->input_count
                                   + f->group.link[k][i].output].expected;
        }
        if (operand->role == CHECK_OUTPUT)
            check_poison(operand->expected, operand->bytes, 0);
        if (operand->role == CHECK_STATE)
            memcpy(operand->expected, operand->value, (size_t)operand->bytes);
        if (operand->role == CHECK_OUTPUT || operand->role == CHECK_STATE)
            at[i] = operand->expected;
        if (operand->role == CHECK_ALIAS)
            at[i] = at[0];
    }
    s->call.op->reference(s->resolved, &tensors, (iso_range){0, s->units});
    return flags;
}

static bool add_part(check_fused *f, const iso_case *first, uint32_t k)
{
    const iso_fusion *fusion = f->group.fusion;
    iso_case *test = &f->test[k];
    uint32_t flags;
    char text[CHECK_TEXT];

    if (k == 0 || is_twin(fusion, k)) {
        *test = *first;
        if (k != 0)
            test->name[0] = 'z';         /* other random values */
    } else {
        *test = iso_case_start((iso_op_id)iso_op_find(fusion->part[k])->id, "%.40s_%u",
                               first->name, k);
        test->live = first->live;
        if (!completion_of(fusion->part[k])(f, k))
            return false;
    }
    f->group.part_count = k + 1;
    if (!check_subject_init(&f->part[k], test, text))
        return false;
    for (uint32_t i = 0; i < f->part[k].call.op->input_count; i++)
        if (f->group.link[k][i].part != 0)
            f->part[k].operand[i].role = CHECK_LINK;
    flags = run_reference(f, k);
    if (f->group.flags_expected == 0)
        f->group.flags_expected = flags;
    f->group.part[k] = &f->part[k];
    return true;
}

bool check_fused_init(check_fused *f, const iso_fusion *fusion, const iso_case *test,
                      uint32_t number)
{
    *f = (check_fused){.number = number, .group = {.fusion = fusion}};
    for (uint32_t k = 0; k < fusion->part_count; k++)
        if (!add_part(f, test, k))
            return false;
    for (uint32_t k = 0; k < fusion->part_count; k++)
        f->test[k].flags_expected = f->group.flags_expected;
    return true;
}

void check_fused_deinit(check_fused *f)
{
    for (uint32_t k = 0; k < ISO_FUSION_PARTS_MAX; k++)
        check_subject_deinit(&f->part[k]);
}

static bool is_read_inside(const check_fused *f, uint32_t part, uint32_t output)
{
    for (uint32_t k = part + 1; k < f->group.part_count; k++)
        for (uint32_t i = 0; i < ISO_OP_INPUTS_MAX; i++)
            if (f->group.link[k][i].part == part + 1 && f->group.link[k][i].output == output)
                return true;
    return false;
}

void check_fused_store(check_fused *f, bool all, bool stores_inner)
{
    f->call = (iso_fused_call){.fusion = f->group.fusion};
    memcpy(f->call.link, f->group.link, sizeof f->call.link);
    for (uint32_t k = 0; k < f->group.part_count; k++) {
        f->call.part[k] = &f->part[k].call;
        for (uint32_t o = 0; o < f->part[k].call.op->output_count; o++) {
            check_operand *operand = &f->part[k].operand[f->part[k].call.op->input_count + o];

            if (all || !is_read_inside(f, k, o))
                f->call.stored[k] |= 1u << o;
            if (operand->role != CHECK_ALIAS)
                operand->role = (f->call.stored[k] & 1u << o) != 0 ? CHECK_OUTPUT
                              : stores_inner                       ? CHECK_INNER
                                                                   : CHECK_ABSENT;
        }
    }
}

bool check_fused_pack(check_fused *f)
{
    bool has_packed = false;

    for (uint32_t k = 0; k < f->group.part_count; k++) {
        check_subject packed;

        if (!check_subject_pack(&f->part[k], ISO_LAYOUT_ROWS32, &packed))
            continue;
        check_subject_deinit(&f->part[k]);
        f->part[k] = packed;
        has_packed = true;
    }
    return has_packed;
}
