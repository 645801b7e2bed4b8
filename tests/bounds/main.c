/* bounds_test: prints, per operator, the worst observed error as a part of its derived bound. A
 * part above 1 fails, as does a value of an exact operator that differs. `bounds_test OP` runs one
 * operator, `bounds_test OP CASE` one case. */
#include "tests/bounds/bounds.h"

#include "core/alloc.h"
#include "core/os.h"

static bounds_fn *const functions[ISO_OP_ID_COUNT] = {
#define OP(name, inputs, outputs, params, flags) [ISO_OP_ID_##name] = bounds_##name,
#include "ggml-style-ops/ops.def"
#undef OP
};

typedef struct walk {
    bounds_score score;
    const char *test;                /* NULL: all */
} walk;

static void *take(const iso_tensor_desc *desc)
{
    unsigned char *data;

    if (!iso_desc_present(desc))
        return NULL;
    data = iso_alloc_zero((size_t)iso_desc_bytes(desc) + 1, 1, "bounds operand");
    ISO_ASSERT(data != NULL);
    return data;
}

static void give(void *data, const iso_tensor_desc *desc)
{
    if (data != NULL)
        iso_release(data, (size_t)iso_desc_bytes(desc) + 1);
}

static void make_inputs(bounds_case *c)
{
    const iso_op *op = c->call.op;

    for (uint32_t i = 0; i < op->input_count; i++) {
        c->in[i] = take(&c->call.in[i]);
        if (c->in[i] != NULL)
            iso_case_fill_input(c->test, i, c->in[i]);
    }
    if (c->test->make != NULL)
        c->test->make(c->test, c->in);
    for (uint32_t i = 0; i < op->output_count; i++)
        c->out[i] = (op->flags & ISO_OP_UPDATE) != 0 && i == 0 ? c->in[0] : take(&c->call.out[i]);
    if ((op->flags & ISO_OP_UPDATE) != 0) {
        c->before = take(&c->call.in[0]);
        memcpy(c->before, c->in[0], (size_t)iso_desc_bytes(&c->call.in[0]));
    }
}

static void run_reference(bounds_case *c)
{
    const iso_op *op = c->call.op;
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX] = {0};
    void *at[ISO_OP_INPUTS_MAX + ISO_OP_OUTPUTS_MAX + 1] = {0};
    const uint32_t block[1] = {c->test->live};
    uint32_t flags = 0;
    const iso_tensors tensors = {at, block, &flags};
    iso_tensor_desc scratch = iso_desc_none();
    iso_live live;

    if (op->scratch != NULL)
        scratch = op->scratch(&c->call);
    memcpy(at, c->in, op->input_count * sizeof *at);
    memcpy(at + op->input_count, c->out, op->output_count * sizeof *at);
    at[op->input_count + op->output_count] = take(&scratch);
    op->fill(&c->call, args);
    memcpy(&live, args, sizeof live);
    c->rows = live.count = iso_live_resolve(live, block);
    memcpy(args, &live, sizeof live);
    op->reference(args, &tensors, (iso_range){0, op->units(args)});
    if (flags != c->test->flags_expected) {
        printf("FAIL %s/%s: flags are %u, expected %u\n", op->name, c->test->name, flags,
               c->test->flags_expected);
        c->score->failures++;
    }
    give(at[op->input_count + op->output_count], &scratch);
}

static void release(bounds_case *c)
{
    const iso_op *op = c->call.op;

    for (uint32_t i = 0; i < c->temp_count; i++)
        iso_release(c->temp[i], (size_t)c->temp_bytes[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        if (c->out[i] != c->in[0])
            give(c->out[i], &c->call.out[i]);
    for (uint32_t i = 0; i < op->input_count; i++)
        give(c->in[i], &c->call.in[i]);
    give(c->before, &c->call.in[0]);
}

static void run_case(void *context, const iso_case *test)
{
    walk *w = context;
    bounds_case c = {.test = test, .call = test->call, .score = &w->score};
    iso_error error = {0};

    if (w->test != NULL && strcmp(w->test, test->name) != 0)
        return;
    w->score.cases++;
    ISO_ASSERT_SAYS(c.call.op->infer(&c.call, &error) == ISO_OK, error.text);
    make_inputs(&c);
    run_reference(&c);
    if (test->flags_expected == 0)
        functions[c.call.op->id](&c);
    else
        w->score.skipped++;
    release(&c);
}

static void print_score(const iso_op *op, const bounds_score *s)
{
    printf("%-17s %3llu cases (%llu flagged)", op->name, (unsigned long long)s->cases,
           (unsigned long long)s->skipped);
    if (s->near_values != 0)
        printf("  %8llu within bounds, worst %.4Lf in %s", (unsigned long long)s->near_values,
               s->worst, s->worst_case);
    if (s->same_values != 0)
        printf("  %8llu equal", (unsigned long long)s->same_values);
    printf("%s\n", s->failures != 0 ? "  FAIL" : "");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const uint64_t begin = iso_os_clock_ns();
    uint64_t failures = 0, values = 0, ops = 0;

    for (unsigned id = 0; id < ISO_OP_ID_COUNT; id++) {
        const iso_op *op = iso_op_get((iso_op_id)id);
        walk w = {.test = argc > 2 ? argv[2] : NULL};
        iso_case_sink sink = {run_case, &w};

        if (argc > 1 && strcmp(argv[1], op->name) != 0)
            continue;
        op->cases(&sink);
        print_score(op, &w.score);
        failures += w.score.failures;
        values += w.score.near_values + w.score.same_values;
        ops++;
    }
    printf("bounds: %llu operators, %llu values, %llu failures, %.1f s\n", (unsigned long long)ops,
           (unsigned long long)values, (unsigned long long)failures,
           (double)(iso_os_clock_ns() - begin) * 1e-9);
    return failures != 0 || values == 0;
}
