/* engine_plan: plans by bucket. A bucket is a set of capacities; the smallest that fits is used, so
 * few graphs serve every step, and no bit depends on which. */
#include "model/engine.h"

#include "core/alloc.h"
#include "ggml-style-ops/fusions.h"

#include <string.h>

static const uint32_t token_steps[] = {1, 2, 4, 6, 8, 16, 64, 256, 1024};

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

void iso_engine_bucket(const iso_engine *engine, uint32_t tokens, uint32_t context,
                       uint32_t logit_rows, iso_bucket *bucket)
{
    const uint32_t step_max = engine->options.step_tokens_max;
    uint32_t capacity = step_max, reach = 128;

    for (size_t i = ISO_COUNT_OF(token_steps); i-- > 0;)
        if (token_steps[i] >= tokens && token_steps[i] < capacity)
            capacity = token_steps[i];
    while (reach < context)
        reach *= 4;
    bucket->tokens = capacity;
    bucket->sequences = min_u32(capacity, engine->options.sessions_max);
    bucket->logit_rows = logit_rows <= bucket->sequences ? bucket->sequences : capacity;
    bucket->context = min_u32(reach, engine->options.context_tokens);
}

static iso_slice weight_slice(void *context, uint32_t id)
{
    return iso_residency_slice(((iso_engine *)context)->residency, id);
}

static iso_slice state_slice(void *context, uint32_t id)
{
    return iso_state_slice(((iso_engine *)context)->state, id);
}

static iso_status take_workspace(iso_engine *engine, uint64_t bytes, iso_buffer **buffer,
                                 iso_error *error)
{
    const iso_buffer_spec spec = {ISO_MEMORY_SHARED, bytes != 0 ? bytes : 1, 64, "workspace"};

    return engine->backend->buffer_create(engine->device, &spec, buffer, error);
}

/* Traced plans run step by step, and what is traced is every operator: they have no fusions. */
static iso_plan_options plan_options(const iso_engine *engine, bool traced)
{
    return (iso_plan_options){
        .policy = ISO_PLACE_STRICT,
        .num_class = ISO_CLASS_EXACT,
        .step_by_step = traced && engine->is_traced,
        .fusions = iso_fusion_rows(),
        .fusion_count = engine->options.no_fuse ? 0 : ISO_FUSION_ID_COUNT,
    };
}

/* Makes and records a plan for a sealed graph. Plans share the engine's workspace: they never run
 * at the same time. */
static iso_status make_ready(iso_engine *engine, iso_graph **graph, bool traced, iso_ready *ready,
                             iso_error *error)
{
    const iso_plan_device device = {engine->backend, engine->device};
    const iso_plan_options options = plan_options(engine, traced);
    iso_binding binding = {weight_slice, state_slice, engine, engine->workspace};
    iso_plan_needs needs;

    ready->graph = *graph;
    *graph = NULL;
    ISO_TRY(iso_plan_make(ready->graph, &device, 1, &options, &ready->plan, error));
    iso_plan_get_needs(ready->plan, &needs);
    if (needs.workspace_bytes > engine->workspace_bytes) {
        ISO_TRY(take_workspace(engine, needs.workspace_bytes, &ready->workspace, error));
        binding.workspace = ready->workspace;
    }
    return iso_plan_record(ready->plan, &binding, error);
}

void iso_ready_destroy(const iso_engine *engine, iso_ready *ready)
{
    iso_plan_destroy(&ready->plan);
    iso_graph_destroy(&ready->graph);
    if (ready->workspace != NULL)
        engine->backend->buffer_destroy(&ready->workspace);
}

iso_model_parts iso_engine_parts(const iso_engine *engine)
{
    return (iso_model_parts){engine->config, engine->weights, iso_state_spec_of(engine->state)};
}

static iso_status build_bucket(iso_engine *engine, iso_bucket_plan *plan, iso_error *error)
{
    const iso_model_parts parts = iso_engine_parts(engine);
    iso_graph *graph = NULL;

    ISO_TRY(iso_build_prelude(&parts, &plan->bucket, &graph, &plan->prelude_io, error));
    ISO_TRY(make_ready(engine, &graph, false, &plan->prelude, error));
    ISO_TRY(iso_build_forward(&parts, &plan->bucket, &graph, &plan->io, error));
    return make_ready(engine, &graph, true, &plan->forward, error);
}

static void destroy_bucket(const iso_engine *engine, iso_bucket_plan *plan)
{
    iso_ready_destroy(engine, &plan->forward);
    iso_ready_destroy(engine, &plan->prelude);
    iso_release(plan, sizeof *plan);
}

iso_status iso_engine_plan(iso_engine *engine, const iso_bucket *bucket, iso_bucket_plan **plan,
                           iso_error *error)
{
    iso_bucket_plan *made;
    iso_status status;

    for (made = engine->plans; made != NULL; made = made->next)
        if (memcmp(&made->bucket, bucket, sizeof *bucket) == 0) {
            *plan = made;
            return ISO_OK;
        }
    made = iso_alloc_zero(1, sizeof *made, "engine.plan");
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for a plan");
    made->bucket = *bucket;
    status = build_bucket(engine, made, error);
    if (status != ISO_OK) {
        destroy_bucket(engine, made);
        return status;
    }
    made->next = engine->plans;
    engine->plans = made;
    *plan = made;
    return ISO_OK;
}

void iso_engine_drop_plans(iso_engine *engine)
{
    while (engine->plans != NULL) {
        iso_bucket_plan *plan = engine->plans;

        engine->plans = plan->next;
        destroy_bucket(engine, plan);
    }
}

/* Workspace of a graph, without recording it. */
static iso_status measure(iso_engine *engine, iso_graph **graph, uint64_t *bytes,
                          iso_error *error)
{
    const iso_plan_device device = {engine->backend, engine->device};
    const iso_plan_options options = plan_options(engine, false);
    iso_plan *plan = NULL;
    iso_plan_needs needs;
    iso_status status = iso_plan_make(*graph, &device, 1, &options, &plan, error);

    if (status == ISO_OK) {
        iso_plan_get_needs(plan, &needs);
        if (needs.workspace_bytes > *bytes)
            *bytes = needs.workspace_bytes;
    }
    iso_plan_destroy(&plan);
    iso_graph_destroy(graph);
    return status;
}

/* The largest step decides the workspace: a smaller bucket hardly ever needs more. */
static iso_status measure_all(iso_engine *engine, uint64_t *bytes, iso_error *error)
{
    const iso_model_parts parts = iso_engine_parts(engine);
    iso_graph *graph = NULL;
    iso_bucket bucket;
    iso_forward_io io;
    iso_prelude_io prelude;
    iso_commit_io commit;

    iso_engine_bucket(engine, engine->options.step_tokens_max, engine->options.context_tokens,
                      engine->options.step_tokens_max, &bucket);
    ISO_TRY(iso_build_forward(&parts, &bucket, &graph, &io, error));
    ISO_TRY(measure(engine, &graph, bytes, error));
    ISO_TRY(iso_build_prelude(&parts, &bucket, &graph, &prelude, error));
    ISO_TRY(measure(engine, &graph, bytes, error));
    ISO_TRY(iso_build_commit(&parts, 1, &graph, &commit, error));
    return measure(engine, &graph, bytes, error);
}

iso_status iso_engine_prepare(iso_engine *engine, iso_error *error)
{
    const iso_model_parts parts = iso_engine_parts(engine);
    /* The sampler: scratch of one row of the vocabulary. */
    uint64_t bytes = iso_align_up(4 * (uint64_t)engine->config->vocab_size, 64);
    iso_graph *graph = NULL;

    ISO_TRY(measure_all(engine, &bytes, error));
    ISO_TRY(take_workspace(engine, bytes, &engine->workspace, error));
    engine->workspace_bytes = bytes;
    ISO_TRY(iso_build_commit(&parts, 1, &graph, &engine->commit_io, error));
    ISO_TRY(make_ready(engine, &graph, false, &engine->commit, error));
    return iso_engine_make_sampler(engine, error);
}

iso_status iso_engine_make_sampler(iso_engine *engine, iso_error *error)
{
    const int64_t vocab = engine->config->vocab_size;
    iso_graph *graph = NULL;
    iso_value in[ISO_OP_INPUTS_MAX] = {0}, out[ISO_OP_OUTPUTS_MAX];
    iso_status status;

    ISO_TRY(iso_graph_create(&graph, error));
    ISO_GOTO(iso_graph_input(graph, "logits", iso_desc2(ISO_DTYPE_F32, 1, vocab), &in[0], error));
    ISO_GOTO(iso_graph_input(graph, "sampling", iso_desc2(ISO_DTYPE_U32, 1, 8), &in[1], error));
    ISO_GOTO(iso_graph_append(graph, "sample", iso_op_get(ISO_OP_ID_sample), NULL, in, out, error));
    ISO_GOTO(iso_graph_output(graph, "id", out[0], error));
    ISO_GOTO(iso_graph_seal(graph, error));
    engine->sampler_logits = in[0];
    engine->sampler_words = in[1];
    return make_ready(engine, &graph, false, &engine->sampler, error);
done:
    iso_graph_destroy(&graph);
    return status;
}

iso_status iso_engine_run(iso_engine *engine, iso_ready *ready, bool traced, iso_error *error)
{
    const iso_run_options options = {
        .poison = engine->options.poison,
        .trace = traced ? engine->options.trace : NULL,
        .trace_context = engine->options.trace_context,
        .tap = traced ? engine->tap : NULL,
        .tap_context = engine->tap_context,
    };

    return iso_run(ready->plan, &options, error);
}

uint32_t *iso_ready_scalar(const iso_ready *ready, uint32_t scalar)
{
    unsigned char *block = iso_plan_block(ready->plan);

    return (uint32_t *)(void *)(block + iso_plan_scalar_offset(ready->plan, scalar));
}

void *iso_ready_input(const iso_ready *ready, iso_value input)
{
    return (unsigned char *)iso_plan_block(ready->plan) + iso_plan_input_offset(ready->plan, input);
}

iso_status iso_engine_explain(iso_engine *engine, uint32_t tokens, bool json, char **text,
                              iso_error *error)
{
    iso_bucket_plan *plan;
    iso_bucket bucket;

    if (tokens == 0 || tokens > engine->options.step_tokens_max)
        return iso_fail(error, ISO_BAD_ARGUMENT, "tokens is %u, expected 1 to %u", tokens,
                        engine->options.step_tokens_max);
    iso_engine_bucket(engine, tokens, engine->options.context_tokens, 1, &bucket);
    ISO_TRY(iso_engine_plan(engine, &bucket, &plan, error));
    return iso_plan_explain(plan->forward.plan, json, text, error);
}
