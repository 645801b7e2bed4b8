/* plan: a small graph on the CPU, run many times: values, memory, live rows, tracing, poison,
 * errors by name, explanations, allocation failures. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/backends.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/plan_parts.h"
#include "core/run.h"
#include "tests/unit/toy_ops.h"

enum { ROWS = 8, DIM = 4, WEIGHT_ID = 3, STATE_ID = 9 };

static iso_error error;

typedef struct fixture {
    const iso_backend *backend;
    iso_device *device;
    iso_graph *graph;
    iso_value x, ids;
    iso_buffer *weight, *table, *pool, *workspace;
    float *pool_host;
    iso_plan *plan;
} fixture;

static iso_buffer *make_buffer(fixture *f, uint64_t bytes, float **host)
{
    const iso_buffer_spec spec = {.kind = ISO_MEMORY_SHARED, .bytes = bytes, .tag = "test"};
    iso_buffer *buffer = NULL;
    void *data = NULL;

    assert_ok(f->backend->buffer_create(f->device, &spec, &buffer, &error), error);
    assert_ok(f->backend->buffer_map(buffer, &data, &error), error);
    *host = data;
    return buffer;
}

static iso_value append(fixture *f, const char *name, const iso_op *op, float k, iso_value a,
                        iso_value b)
{
    const toy_params params = {k};
    const iso_value inputs[2] = {a, b};
    iso_value out = 0;

    assert_ok(iso_graph_append(f->graph, name, op, &params, inputs, &out, &error), error);
    return out;
}

/* y = gather(ids, table) + 2 x; state += y; total = sum(3 y + w); outputs y (as "y") and total. */
static void build(fixture *f)
{
    iso_tensor_desc rows = iso_desc2(ISO_DTYPE_F32, ROWS, DIM);
    iso_tensor_desc ids = iso_desc1(ISO_DTYPE_I32, ROWS);
    iso_value w, table, state, picked, y, z, total;
    uint32_t scalar;

    assert_ok(iso_graph_create(&f->graph, &error), error);
    assert_ok(iso_graph_scalar(f->graph, "tokens", ROWS, &scalar, &error), error);
    rows.live_scalar = ids.live_scalar = scalar + 1;
    rows.live_mult = ids.live_mult = 1;
    assert_ok(iso_graph_input(f->graph, "x", rows, &f->x, &error), error);
    assert_ok(iso_graph_input(f->graph, "ids", ids, &f->ids, &error), error);
    assert_ok(iso_graph_weight(f->graph, "w", iso_desc1(ISO_DTYPE_F32, DIM), WEIGHT_ID, &w,
                               &error), error);
    assert_ok(iso_graph_weight(f->graph, "table", iso_desc2(ISO_DTYPE_F32, 5, DIM), 4, &table,
                               &error), error);
    assert_ok(iso_graph_state(f->graph, "state", iso_desc2(ISO_DTYPE_F32, ROWS, DIM), STATE_ID,
                              &state, &error), error);
    picked = append(f, "pick", &toy_gather, 0.0f, f->ids, table);
    y = append(f, "scale", &toy_affine, 2.0f, f->x, 0);
    y = append(f, "check", &toy_positive, 0.0f, y, 0);
    (void)append(f, "unused", &toy_affine, 1.0f, picked, 0);
    state = append(f, "fold", &toy_accumulate, 0.0f, state, y);
    z = append(f, "shift", &toy_affine, 3.0f, y, w);
    total = append(f, "total", &toy_total, 0.0f, z, 0);
    assert_ok(iso_graph_output(f->graph, "y", y, &error), error);
    assert_ok(iso_graph_output(f->graph, "total", total, &error), error);
    assert_ok(iso_graph_output(f->graph, "picked", picked, &error), error);
    assert_ok(iso_graph_seal(f->graph, &error), error);
}

static iso_slice find_weight(void *context, uint32_t id)
{
    fixture *f = context;

    return (iso_slice){id == WEIGHT_ID ? f->weight : id == 4 ? f->table : NULL, 0};
}

static iso_slice find_state(void *context, uint32_t id)
{
    fixture *f = context;

    return (iso_slice){id == STATE_ID ? f->pool : NULL, 0};
}

static iso_status make_plan(fixture *f, bool step_by_step)
{
    const iso_plan_device device = {f->backend, f->device};
    const iso_plan_options options = {.step_by_step = step_by_step};

    return iso_plan_make(f->graph, &device, 1, &options, &f->plan, &error);
}

static iso_status record_plan(fixture *f)
{
    const iso_binding binding = {find_weight, find_state, f, f->workspace};

    return iso_plan_record(f->plan, &binding, &error);
}

static void setup(fixture *f, bool step_by_step)
{
    const iso_backend_options options = {.thread_count = 2};
    iso_plan_needs needs;
    float *host;

    memset(f, 0, sizeof *f);
    assert_ok(iso_backend_open_device("cpu", &options, &f->backend, &f->device, &error), error);
    build(f);
    f->weight = make_buffer(f, DIM * 4, &host);
    for (uint32_t i = 0; i < DIM; i++)
        host[i] = (float)i;
    f->table = make_buffer(f, 5 * DIM * 4, &host);
    for (uint32_t i = 0; i < 5 * DIM; i++)
        host[i] = 100.0f + (float)i;
    f->pool = make_buffer(f, ROWS * DIM * 4, &f->pool_host);
    memset(f->pool_host, 0, ROWS * DIM * 4);
    assert_ok(make_plan(f, step_by_step), error);
    iso_plan_get_needs(f->plan, &needs);
    f->workspace = make_buffer(f, needs.workspace_bytes, &host);
    assert_ok(record_plan(f), error);
}

static void teardown(fixture *f)
{
    iso_plan_destroy(&f->plan);
    f->backend->buffer_destroy(&f->weight);
    f->backend->buffer_destroy(&f->table);
    f->backend->buffer_destroy(&f->pool);
    f->backend->buffer_destroy(&f->workspace);
    iso_graph_destroy(&f->graph);
    f->backend->close(&f->device);
}

static void set_inputs(fixture *f, uint32_t rows, float x, int32_t id)
{
    unsigned char *block = iso_plan_block(f->plan);
    float *xs = (float *)(void *)(block + iso_plan_input_offset(f->plan, f->x));
    int32_t *ids = (int32_t *)(void *)(block + iso_plan_input_offset(f->plan, f->ids));

    memcpy(block + iso_plan_scalar_offset(f->plan, 0), &rows, 4);
    for (uint32_t i = 0; i < ROWS * DIM; i++)
        xs[i] = x + (float)i;
    for (uint32_t i = 0; i < ROWS; i++)
        ids[i] = id;
}

static void check_outputs(const fixture *f, uint32_t rows, float x, int32_t id)
{
    const float *y = iso_plan_output(f->plan, 0), *total = iso_plan_output(f->plan, 1);
    const float *picked = iso_plan_output(f->plan, 2);

    for (uint32_t t = 0; t < rows; t++) {
        float sum = 0.0f;

        for (uint32_t i = 0; i < DIM; i++) {
            const float expected = 2.0f * (x + (float)(t * DIM + i));

            assert_true(y[t * DIM + i] == expected);
            assert_true(picked[t * DIM + i] == 100.0f + (float)((uint32_t)id * DIM + i));
            sum += 3.0f * expected + (float)i;
        }
        assert_true(total[t] == sum);
    }
}

static void plan_runs_again_and_again(void **state)
{
    const iso_run_options poison = {.poison = true};
    fixture f;

    (void)state;
    setup(&f, false);
    for (uint32_t run = 0; run < 10; run++) {
        set_inputs(&f, 1 + run % ROWS, (float)run, (int32_t)(run % 5));
        assert_ok(iso_run(f.plan, run % 2 ? &poison : NULL, &error), error);
        check_outputs(&f, 1 + run % ROWS, (float)run, (int32_t)(run % 5));
    }
    /* Row 7 was live once, in the run with x = 7: state counts live rows only. */
    assert_true(f.pool_host[7 * DIM] == 2.0f * (7.0f + 7 * DIM));
    teardown(&f);
}

static void plan_poisons_what_is_not_live(void **state)
{
    const iso_run_options poison = {.poison = true};
    const uint32_t *y;
    fixture f;

    (void)state;
    setup(&f, false);
    set_inputs(&f, 3, 1.0f, 0);
    assert_ok(iso_run(f.plan, &poison, &error), error);
    y = iso_plan_output(f.plan, 0);
    for (uint32_t i = 3 * DIM; i < ROWS * DIM; i++)
        assert_int_equal(y[i], UINT32_MAX);
    teardown(&f);
}

static void plan_names_the_failing_step(void **state)
{
    fixture f;

    (void)state;
    for (int step_by_step = 0; step_by_step < 2; step_by_step++) {
        setup(&f, step_by_step != 0);
        set_inputs(&f, 2, -5.0f, 0);
        assert_fails(iso_run(f.plan, NULL, &error), ISO_RANGE_ERROR, error,
                     "step check (toy_positive): value outside the numeric domain");
        set_inputs(&f, 2, 1.0f, 5);
        assert_fails(iso_run(f.plan, NULL, &error), ISO_BAD_INDEX, error,
                     "step pick (toy_gather): index out of range");
        set_inputs(&f, 2, 1.0f, 4);                          /* the plan is not broken by it */
        assert_ok(iso_run(f.plan, NULL, &error), error);
        check_outputs(&f, 2, 1.0f, 4);
        teardown(&f);
    }
}

typedef struct lines {
    uint32_t count;
    char node[16][32], op[16][32];
    uint64_t hash[16][2];
} lines;

static void keep_line(void *context, const char *node, const char *op, const uint64_t hash[2])
{
    lines *l = context;
    void *memory = iso_alloc(16, 8, "a trace callback may allocate");

    assert_non_null(memory);
    iso_release(memory, 16);
    assert_true(l->count < 16);
    snprintf(l->node[l->count], 32, "%s", node);
    snprintf(l->op[l->count], 32, "%s", op);
    memcpy(l->hash[l->count++], hash, 16);
}

static void plan_traces_live_rows(void **state)
{
    lines first = {0}, second = {0};
    iso_run_options options = {.poison = true, .trace = keep_line, .trace_context = &first};
    uint64_t hash[2];
    fixture f;

    (void)state;
    setup(&f, true);
    set_inputs(&f, 3, 1.0f, 2);
    assert_ok(iso_run(f.plan, &options, &error), error);
    check_outputs(&f, 3, 1.0f, 2);
    assert_int_equal(first.count, 7);
    assert_string_equal(first.node[0], "pick");
    assert_string_equal(first.op[5], "toy_affine");
    iso_hash(iso_plan_output(f.plan, 0), 3 * DIM * 4, hash);
    assert_memory_equal(first.hash[2], hash, sizeof hash);
    iso_hash(NULL, 0, hash);                                 /* state changed in place */
    assert_memory_equal(first.hash[4], hash, sizeof hash);
    options = (iso_run_options){.trace = keep_line, .trace_context = &second};
    assert_ok(iso_run(f.plan, &options, &error), error);
    assert_memory_equal(first.hash, second.hash, sizeof first.hash);
    teardown(&f);
    setup(&f, false);
    assert_fails(iso_run(f.plan, &options, &error), ISO_UNSUPPORTED, error, "step by step");
    teardown(&f);
}

static void plan_explains(void **state)
{
    iso_json_doc *doc = NULL;
    const iso_json *steps, *ledger;
    int64_t bytes = 0;
    iso_plan_needs needs;
    char *text = NULL;
    fixture f;

    (void)state;
    setup(&f, false);
    iso_plan_get_needs(f.plan, &needs);
    assert_int_equal(needs.step_count, 7);
    assert_int_equal(needs.weight_bytes_read, DIM * 4 + 5 * DIM * 4);
    assert_ok(iso_plan_explain(f.plan, false, &text, &error), error);
    assert_non_null(strstr(text, "pick  toy_gather  reference  cpu  i32[8*] f32[5,4] -> "));
    assert_non_null(strstr(text, "workspace"));
    iso_free(text);
    assert_ok(iso_plan_explain(f.plan, true, &text, &error), error);
    assert_ok(iso_json_parse(text, strlen(text), "plan", &doc, &error), error);
    steps = iso_json_get(iso_json_root(doc), "steps");
    assert_int_equal(iso_json_size(steps), 7);
    assert_string_equal(iso_json_string(iso_json_get(iso_json_at(steps, 6), "op"), NULL),
                        "toy_total");
    ledger = iso_json_get(iso_json_root(doc), "ledger");
    assert_true(iso_json_int(iso_json_get(ledger, "workspace"), &bytes));
    assert_int_equal((uint64_t)bytes, needs.workspace_bytes);
    iso_json_free(&doc);
    iso_free(text);
    teardown(&f);
}

static void plan_check_catches_bad_memory(void **state)
{
    iso_node_info scale, total;
    fixture f;

    (void)state;
    setup(&f, false);
    assert_ok(iso_plan_check(f.plan, &error), error);
    iso_graph_node(f.graph, 5, &scale);                      /* "shift", read by "total" */
    iso_graph_node(f.graph, 6, &total);
    f.plan->scratch[6].offset = f.plan->values[scale.outputs[0]].offset;
    assert_fails(iso_plan_check(f.plan, &error), ISO_BAD_ARGUMENT, error,
                 "race: total reads bytes");
    teardown(&f);
}

static void refuse_scratch_ops(iso_device *device, const iso_op_call *call, iso_num_class class,
                               iso_support *support)
{
    (void)device;
    (void)class;
    *support = (iso_support){.ok = !(call->op->flags & ISO_OP_SCRATCH), .kernel = "test/kernel",
                             .reason = ISO_REASON_FEATURE};
    if (!support->ok)
        snprintf(support->text, sizeof support->text, "m1/test: no scratch here");
}

static void plan_places_strict_or_auto(void **state)
{
    iso_backend picky;
    iso_plan_device devices[2];
    iso_plan_options options = {.policy = ISO_PLACE_STRICT};
    iso_plan *plan = NULL;
    fixture f;

    (void)state;
    setup(&f, false);
    picky = *f.backend;
    picky.name = "picky";
    picky.query = refuse_scratch_ops;
    devices[0] = (iso_plan_device){&picky, f.device};
    devices[1] = (iso_plan_device){f.backend, f.device};
    assert_fails(iso_plan_make(f.graph, devices, 2, &options, &plan, &error), ISO_UNSUPPORTED,
                 error, "total (toy_total of f32[8*,4]): picky: the device lacks a feature, "
                        "m1/test: no scratch here");
    options.policy = ISO_PLACE_AUTO;
    assert_ok(iso_plan_make(f.graph, devices, 2, &options, &plan, &error), error);
    assert_string_equal(plan->placements[0].rule, "refused by the devices before");
    iso_plan_destroy(&plan);
    assert_fails(iso_plan_make(f.graph, devices, 0, &options, &plan, &error), ISO_BAD_ARGUMENT,
                 error, "a device");
    teardown(&f);
}

static iso_slice find_nothing(void *context, uint32_t id)
{
    (void)context;
    (void)id;
    return (iso_slice){0};
}

static void plan_names_unbound_weights(void **state)
{
    iso_binding binding = {find_nothing, find_state, NULL, NULL};
    fixture f;

    (void)state;
    setup(&f, false);
    binding.workspace = f.workspace;
    iso_plan_destroy(&f.plan);
    assert_ok(make_plan(&f, false), error);
    assert_fails(iso_plan_record(f.plan, &binding, &error), ISO_BAD_TENSOR, error,
                 "weight table (id 4) is not bound");
    binding.workspace = NULL;
    assert_fails(iso_plan_record(f.plan, &binding, &error), ISO_BAD_ARGUMENT, error, "workspace");
    assert_fails(iso_run(f.plan, NULL, &error), ISO_BAD_ARGUMENT, error, "not recorded");
    assert_ok(record_plan(&f), error);                       /* a failed record takes nothing */
    assert_fails(record_plan(&f), ISO_BAD_ARGUMENT, error, "already");
    teardown(&f);
}

/* A device that cannot write host-readable memory: outputs are copied at the end. */
static iso_status memory_without_shared(iso_device *device, iso_memory_kind kind,
                                        iso_memory_info *info, iso_error *why)
{
    (void)device;
    (void)why;
    *info = (iso_memory_info){.present = kind != ISO_MEMORY_SHARED};
    return ISO_OK;
}

static void plan_copies_outputs_of_discrete_devices(void **state)
{
    iso_backend discrete;
    iso_plan_device device;
    iso_plan_options options = {.step_by_step = false};
    iso_plan_needs needs;
    char *text = NULL;
    fixture f;
    float *host;

    (void)state;
    for (int step_by_step = 0; step_by_step < 2; step_by_step++) {
        setup(&f, false);
        discrete = *f.backend;
        discrete.memory = memory_without_shared;
        device = (iso_plan_device){&discrete, f.device};
        options.step_by_step = step_by_step != 0;
        iso_plan_destroy(&f.plan);
        f.backend->buffer_destroy(&f.workspace);
        assert_ok(iso_plan_make(f.graph, &device, 1, &options, &f.plan, &error), error);
        iso_plan_get_needs(f.plan, &needs);
        assert_int_equal(needs.step_count, 10);
        f.workspace = make_buffer(&f, needs.workspace_bytes, &host);
        assert_ok(record_plan(&f), error);
        set_inputs(&f, 5, 2.0f, 1);
        assert_ok(iso_run(f.plan, NULL, &error), error);
        check_outputs(&f, 5, 2.0f, 1);
        assert_ok(iso_plan_explain(f.plan, false, &text, &error), error);
        assert_non_null(strstr(text, "total  copy"));
        iso_free(text);
        teardown(&f);
    }
}

static void plan_survives_no_memory(void **state)
{
    iso_alloc_stats before, after;
    iso_status status;
    uint64_t n = 0;
    fixture f;

    (void)state;
    setup(&f, true);
    iso_plan_destroy(&f.plan);
    iso_alloc_get_stats(&before);
    do {
        iso_alloc_fail_at(++n);
        status = make_plan(&f, true);
        if (status == ISO_OK)
            status = record_plan(&f);
        iso_alloc_fail_at(0);
        assert_true(status == ISO_OK || status == ISO_NO_MEMORY);
        iso_plan_destroy(&f.plan);
        iso_alloc_get_stats(&after);
        assert_int_equal(after.bytes_now, before.bytes_now);
    } while (status != ISO_OK);
    assert_true(n > 20);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_runs_again_and_again),
        cmocka_unit_test(plan_poisons_what_is_not_live),
        cmocka_unit_test(plan_names_the_failing_step),
        cmocka_unit_test(plan_traces_live_rows),
        cmocka_unit_test(plan_explains),
        cmocka_unit_test(plan_check_catches_bad_memory),
        cmocka_unit_test(plan_places_strict_or_auto),
        cmocka_unit_test(plan_names_unbound_weights),
        cmocka_unit_test(plan_copies_outputs_of_discrete_devices),
        cmocka_unit_test(plan_survives_no_memory),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
