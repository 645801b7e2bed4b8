/* fuse: which nodes become one step, at which place, and what of them must be stored; on graphs of
 * toy operators and a backend that offers every fusion. */
#include "tests/unit/unit.h"

#include "core/alloc.h"
#include "core/backends.h"
#include "core/plan_parts.h"
#include "tests/unit/toy_ops.h"

enum { ROWS = 4, DIM = 16 };

static iso_error error;

typedef struct fixture {
    iso_graph *graph;
    iso_value x, y, state;
    iso_fuse_steps steps;
} fixture;

/* ---- a backend that says yes, or no ---- */

static bool is_offered, stores_inner;
static iso_fused_call asked;

static void answer(iso_device *device, const iso_fused_call *call, iso_num_class num_class,
                   iso_support *support)
{
    (void)device;
    (void)num_class;
    asked = *call;
    *support = (iso_support){.ok = is_offered, .stores_inner = stores_inner,
                             .kernel = "toy/fused", .kernel_index = 7};
}

static iso_backend backend;

static void setup(fixture *f)
{
    const iso_tensor_desc rows = iso_desc2(ISO_DTYPE_F32, ROWS, DIM);

    *f = (fixture){0};
    backend = (iso_backend){.query_fused = answer};
    is_offered = stores_inner = true;
    assert_ok(iso_graph_create(&f->graph, &error), error);
    assert_ok(iso_graph_input(f->graph, "x", rows, &f->x, &error), error);
    assert_ok(iso_graph_input(f->graph, "y", rows, &f->y, &error), error);
    assert_ok(iso_graph_state(f->graph, "state", rows, 1, &f->state, &error), error);
}

static iso_value append(fixture *f, const char *name, const iso_op *op, iso_value a, iso_value b)
{
    const toy_params params = {2.0f};
    const iso_value inputs[2] = {a, b};
    iso_value out = 0;

    assert_ok(iso_graph_append(f->graph, name, op, &params, inputs, &out, &error), error);
    return out;
}

static void fuse(fixture *f, const iso_fusion *rows, uint32_t count)
{
    const iso_plan_device device = {&backend, NULL};
    const iso_plan_options options = {.fusions = rows, .fusion_count = count};

    if (!iso_graph_is_sealed(f->graph))
        assert_ok(iso_graph_seal(f->graph, &error), error);
    assert_ok(iso_fuse_nodes(f->graph, &device, &options, &f->steps, &error), error);
}

static void teardown(fixture *f)
{
    iso_alloc_stats stats;

    iso_fuse_release(&f->steps);
    iso_graph_destroy(&f->graph);
    iso_alloc_get_stats(&stats);
    assert_int_equal(stats.count_now, 0);
}

/* "a+b c": the steps in order, parts joined. */
static const char *text_of(const fixture *f)
{
    static char text[256];
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t s = 0; s < f->steps.step_count; s++)
        for (uint32_t k = 0; k < f->steps.steps[s].count; k++) {
            iso_node_info node;

            iso_graph_node(f->graph, f->steps.order[f->steps.steps[s].first + k], &node);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     k != 0 ? "+" : s != 0 ? " " : "", node.name);
        }
    return text;
}

static const iso_fusion positive_affine = {
    "positive_affine", 2, {"toy_positive", "toy_affine"}};
static const iso_fusion affine_fold = {"affine_fold", 2, {"toy_affine", "toy_accumulate"}};

/* ---- matching ---- */

static void a_chain_is_one_step_and_its_inside_is_not_stored(void **state)
{
    fixture f;
    iso_value p, a;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    a = append(&f, "a", &toy_affine, p, 0);
    assert_ok(iso_graph_output(f.graph, "a", a, &error), error);
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "p+a");
    assert_int_equal(f.steps.fused[0].stored[0], 0);
    assert_int_equal(f.steps.fused[0].stored[1], 1);
    assert_int_equal(f.steps.fused[0].support.kernel_index, 7);
    assert_int_equal(asked.link[1][0].part, 1);
    assert_int_equal(asked.link[1][0].output, 0);
    assert_int_equal(asked.link[1][1].part, 0);
    assert_int_equal(asked.link[0][0].part, 0);
    assert_ptr_equal(asked.part[1]->op, &toy_affine);
    teardown(&f);
}

static void no_row_no_offer_and_single_steps_fuse_nothing(void **state)
{
    const iso_plan_device device = {&backend, NULL};
    iso_plan_options options = {.fusions = &positive_affine, .fusion_count = 1};
    fixture f;

    (void)state;
    setup(&f);
    append(&f, "a", &toy_affine, append(&f, "p", &toy_positive, f.x, 0), 0);
    fuse(&f, &positive_affine, 0);
    assert_string_equal(text_of(&f), "p a");
    iso_fuse_release(&f.steps);
    is_offered = false;
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "p a");
    iso_fuse_release(&f.steps);
    is_offered = true;
    options.step_by_step = true;
    assert_ok(iso_fuse_nodes(f.graph, &device, &options, &f.steps, &error), error);
    assert_string_equal(text_of(&f), "p a");
    iso_fuse_release(&f.steps);
    options.step_by_step = false;
    backend.query_fused = NULL;
    assert_ok(iso_fuse_nodes(f.graph, &device, &options, &f.steps, &error), error);
    assert_string_equal(text_of(&f), "p a");
    teardown(&f);
}

static void rows_are_tried_in_order_and_a_node_is_in_one_step(void **state)
{
    static const iso_fusion rows[] = {
        {"three", 3, {"toy_positive", "toy_affine", "toy_positive"}},
        {"two", 2, {"toy_positive", "toy_affine"}},
    };
    fixture f;
    iso_value p, a;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    a = append(&f, "a", &toy_affine, p, 0);
    a = append(&f, "b", &toy_affine, a, 0);          /* p has one reader only */
    a = append(&f, "c", &toy_positive, a, 0);
    a = append(&f, "d", &toy_affine, a, 0);
    append(&f, "e", &toy_positive, a, 0);
    fuse(&f, rows, 2);
    assert_string_equal(text_of(&f), "p+a b c+d+e");
    assert_string_equal(f.steps.fused[1].fusion->name, "three");
    teardown(&f);
}

static void twins_read_the_same_first_input(void **state)
{
    static const iso_fusion twins = {"twins", 3, {"toy_affine", "toy_affine", "toy_positive"}};
    fixture f;
    iso_value b;

    (void)state;
    setup(&f);
    append(&f, "a", &toy_affine, f.x, f.y);
    append(&f, "other", &toy_affine, f.y, 0);
    b = append(&f, "b", &toy_affine, f.x, 0);
    append(&f, "p", &toy_positive, b, 0);
    fuse(&f, &twins, 1);
    assert_string_equal(text_of(&f), "a+b+p other");
    assert_int_equal(asked.link[1][0].part, 0);
    assert_int_equal(asked.link[2][0].part, 2);
    teardown(&f);
}

static void operators_with_scratch_stay_alone(void **state)
{
    static const iso_fusion total = {"total", 2, {"toy_positive", "toy_total"}};
    fixture f;

    (void)state;
    setup(&f);
    append(&f, "t", &toy_total, append(&f, "p", &toy_positive, f.x, 0), 0);
    fuse(&f, &total, 1);
    assert_string_equal(text_of(&f), "p t");
    teardown(&f);
}

/* ---- the place in the order ---- */

static void values_read_outside_are_stored_and_the_step_comes_before_their_reader(void **state)
{
    fixture f;
    iso_value p;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    append(&f, "reader", &toy_total, p, 0);
    append(&f, "a", &toy_affine, p, 0);
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "p+a reader");
    assert_int_equal(f.steps.fused[0].stored[0], 1);
    teardown(&f);
}

static void a_step_comes_after_what_its_last_part_needs(void **state)
{
    fixture f;
    iso_value p, other;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    other = append(&f, "other", &toy_total, f.y, 0);
    append(&f, "a", &toy_affine, p, other);
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "other p+a");
    assert_int_equal(f.steps.fused[0].stored[0], 0);
    teardown(&f);
}

static void a_way_through_the_outside_forbids_a_step(void **state)
{
    fixture f;
    iso_value p, other;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    other = append(&f, "other", &toy_total, p, 0);
    append(&f, "a", &toy_affine, p, other);
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "p other a");
    teardown(&f);
}

static void no_place_between_reader_and_maker_forbids_a_step(void **state)
{
    fixture f;
    iso_value p, other;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    append(&f, "reader", &toy_total, p, 0);
    other = append(&f, "other", &toy_total, f.y, 0);
    append(&f, "a", &toy_affine, p, other);
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "p reader other a");
    teardown(&f);
}

static void steps_that_moved_count_where_they_are(void **state)
{
    fixture f;
    iso_value p, q, late, a;

    (void)state;
    setup(&f);
    p = append(&f, "p", &toy_positive, f.x, 0);
    q = append(&f, "q", &toy_positive, f.y, 0);
    late = append(&f, "late", &toy_total, f.y, 0);
    a = append(&f, "a", &toy_affine, p, late);       /* p moves behind late */
    append(&f, "b", &toy_affine, q, a);              /* so this cannot run at q's place */
    fuse(&f, &positive_affine, 1);
    assert_string_equal(text_of(&f), "late p+a q+b");
    teardown(&f);
}

static void accesses_to_a_state_keep_their_order(void **state)
{
    fixture f;
    iso_value a;

    (void)state;
    setup(&f);
    a = append(&f, "a", &toy_affine, f.x, 0);
    append(&f, "old", &toy_total, f.state, 0);       /* reads the state before the change */
    append(&f, "fold", &toy_accumulate, f.state, a);
    fuse(&f, &affine_fold, 1);
    assert_string_equal(text_of(&f), "old a+fold");
    assert_int_equal(f.steps.fused[0].stored[0], 0);
    assert_int_equal(f.steps.fused[0].stored[1], 1); /* state */
    teardown(&f);

    setup(&f);
    a = append(&f, "a", &toy_affine, f.x, 0);
    append(&f, "reader", &toy_total, a, 0);
    append(&f, "old", &toy_total, f.state, 0);
    append(&f, "fold", &toy_accumulate, f.state, a);
    fuse(&f, &affine_fold, 1);
    assert_string_equal(text_of(&f), "a reader old fold");
    teardown(&f);
}

/* ---- plans ---- */

static void build_plan(fixture *f, iso_plan **plan)
{
    const iso_backend_options options = {.thread_count = 1};
    const iso_plan_options plan_options = {.fusions = &positive_affine, .fusion_count = 1};
    const iso_backend *cpu;
    iso_device *device = NULL;
    iso_plan_device on;

    assert_ok(iso_backend_open_device("cpu", &options, &cpu, &device, &error), error);
    backend = *cpu;
    backend.query_fused = answer;
    on = (iso_plan_device){&backend, device};
    assert_ok(iso_plan_make(f->graph, &on, 1, &plan_options, plan, &error), error);
    assert_ok(iso_plan_check(*plan, &error), error);
}

static void build_graph(fixture *f)
{
    iso_value p, a;

    setup(f);
    p = append(f, "block.0.p", &toy_positive, f->x, 0);
    a = append(f, "block.0.a", &toy_affine, p, 0);
    a = append(f, "block.0.t", &toy_total, a, 0);
    a = append(f, "block.1.b", &toy_affine, a, 0);
    assert_ok(iso_graph_output(f->graph, "out", a, &error), error);
    assert_ok(iso_graph_seal(f->graph, &error), error);
}

static void values_inside_have_memory_only_if_the_kernel_wants_it(void **state)
{
    (void)state;
    for (int wants = 0; wants < 2; wants++) {
        fixture f;
        iso_plan *plan = NULL;
        iso_node_info node;
        uint64_t read, written;

        build_graph(&f);
        stores_inner = wants != 0;
        build_plan(&f, &plan);
        iso_graph_node(f.graph, 0, &node);
        assert_int_equal(plan->values[node.outputs[0]].area,
                         wants ? ISO_AREA_WORKSPACE : ISO_AREA_NONE);
        iso_plan_step_bytes(plan, &plan->steps.steps[0], &read, &written);
        assert_int_equal(read, ROWS * DIM * 4);      /* x in, a out: p is inside */
        assert_int_equal(written, ROWS * DIM * 4);
        assert_int_equal(plan->needs.step_count, 3);
        {
            iso_device *device = plan->device.device;

            iso_plan_destroy(&plan);
            backend.close(&device);
        }
        teardown(&f);
    }
}

static void explain_shows_the_step_and_its_parts(void **state)
{
    fixture f;
    iso_plan *plan = NULL;
    iso_device *device;
    char *text = NULL;

    (void)state;
    build_graph(&f);
    build_plan(&f, &plan);
    assert_ok(iso_plan_explain(plan, false, &text, &error), error);
    assert_non_null(strstr(text, "    0  block.0.p  positive_affine  toy/fused  cpu  2 parts"));
    assert_non_null(strstr(text, "    +  block.0.a  toy_affine  reference"));
    assert_non_null(strstr(text, "    1  block.0.t  toy_total"));
    assert_non_null(strstr(text, "3 steps of 4 operators, 1 of them fused; largest block: 2 steps "
                                 "of 3 operators"));
    iso_free(text);
    assert_ok(iso_plan_explain(plan, true, &text, &error), error);
    assert_non_null(strstr(text, "\"fusion\":\"positive_affine\",\"kernel\":\"toy/fused\""));
    assert_non_null(strstr(text, "\"totals\":{\"steps\":3,\"operators\":4,\"fused\":1,"
                                 "\"block_steps\":2,\"block_operators\":3}"));
    iso_free(text);
    device = plan->device.device;
    iso_plan_destroy(&plan);
    backend.close(&device);
    teardown(&f);
}

static void memory_failures_leave_nothing_behind(void **state)
{
    const iso_plan_device device = {&backend, NULL};
    const iso_plan_options options = {.fusions = &positive_affine, .fusion_count = 1};
    iso_status status = ISO_NO_MEMORY;
    fixture f;

    (void)state;
    build_graph(&f);
    for (uint64_t n = 1; status == ISO_NO_MEMORY; n++) {
        iso_alloc_fail_at(n);
        status = iso_fuse_nodes(f.graph, &device, &options, &f.steps, &error);
        iso_alloc_fail_at(0);
        if (status != ISO_OK)
            iso_fuse_release(&f.steps);
        assert_true(n < 20);
    }
    assert_ok(status, error);
    teardown(&f);
}

/* ---- the CPU backend refuses what is no step of its own ---- */

static void bad_fused_steps_are_refused(void **state)
{
    static const iso_fusion known = {"norm_quant", 2, {"rms_norm", "quant_fp8"}};
    const iso_backend_options options = {.thread_count = 1};
    const iso_step parts[2] = {{.kind = ISO_STEP_COPY, .name = "part"}, {.name = "part"}};
    iso_step step = {.kind = ISO_STEP_FUSED, .name = "bad", .fusion = &known, .parts = parts};
    const iso_backend *cpu;
    iso_device *device = NULL;
    iso_program *program = NULL;

    (void)state;
    assert_ok(iso_backend_open_device("cpu", &options, &cpu, &device, &error), error);
    step.kernel_index = 1000;
    assert_fails(cpu->record(device, &step, 1, 64, &program, &error), ISO_BAD_ARGUMENT, error,
                 "fused kernel 1000 for norm_quant");
    step.kernel_index = 0;
    assert_fails(cpu->record(device, &step, 1, 64, &program, &error), ISO_BAD_ARGUMENT, error,
                 "fused kernel 0 for norm_quant");
    while (step.kernel_index < 1000 && strstr(error.text, "fused kernel") != NULL) {
        step.kernel_index++;
        assert_int_not_equal(cpu->record(device, &step, 1, 64, &program, &error), ISO_OK);
    }
    assert_non_null(strstr(error.text, "part 0 of norm_quant is not rms_norm"));
    step.fusion = NULL;
    assert_fails(cpu->record(device, &step, 1, 64, &program, &error), ISO_BAD_ARGUMENT, error,
                 "no fusion");
    cpu->close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_one_step_and_its_inside_is_not_stored),
        cmocka_unit_test(no_row_no_offer_and_single_steps_fuse_nothing),
        cmocka_unit_test(rows_are_tried_in_order_and_a_node_is_in_one_step),
        cmocka_unit_test(twins_read_the_same_first_input),
        cmocka_unit_test(operators_with_scratch_stay_alone),
        cmocka_unit_test(values_read_outside_are_stored_and_the_step_comes_before_their_reader),
        cmocka_unit_test(a_step_comes_after_what_its_last_part_needs),
        cmocka_unit_test(a_way_through_the_outside_forbids_a_step),
        cmocka_unit_test(no_place_between_reader_and_maker_forbids_a_step),
        cmocka_unit_test(steps_that_moved_count_where_they_are),
        cmocka_unit_test(accesses_to_a_state_keep_their_order),
        cmocka_unit_test(values_inside_have_memory_only_if_the_kernel_wants_it),
        cmocka_unit_test(explain_shows_the_step_and_its_parts),
        cmocka_unit_test(memory_failures_leave_nothing_behind),
        cmocka_unit_test(bad_fused_steps_are_refused),
    };

    return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
