#include "core/run.h"

#include "core/alloc.h"
#include "core/plan_parts.h"
#include "core/trace.h"

static iso_status launch(iso_plan *plan, iso_program *program, iso_error *error)
{
    const iso_launch args = {.epoch = plan->epoch, .block = plan->block,
                             .block_bytes = plan->needs.block_bytes};

    return plan->device.backend->launch(program, plan->stream, &args, error);
}

/* The caller's functions may allocate. */
static void trace_node(const iso_plan *plan, uint32_t node, const iso_run_options *options)
{
    iso_node_info info;
    iso_tensor_desc live;
    const void *data;
    uint64_t hash[2];

    iso_graph_node(plan->graph, node, &info);
    iso_alloc_unseal();
    if (options->trace != NULL) {
        iso_trace_node(plan, node, hash);
        options->trace(options->trace_context, info.name, info.call->op->name, hash);
    }
    for (uint32_t i = 0; options->tap != NULL && i < info.call->op->output_count; i++)
        if (iso_trace_output(plan, node, i, &live, &data))
            options->tap(options->tap_context, info.name, i, &live, data);
    iso_alloc_seal();
}

static iso_status run(iso_plan *plan, const iso_run_options *options, iso_error *error)
{
    const iso_backend *backend = plan->device.backend;

    if (options->poison)
        ISO_TRY(launch(plan, plan->poison, error));
    for (uint32_t i = 0; i < plan->program_count; i++) {
        ISO_TRY(launch(plan, plan->programs[i], error));
        plan->epoch++;
        ISO_TRY(backend->event_wait(plan->event, plan->epoch, UINT64_MAX, error));
        if ((options->trace != NULL || options->tap != NULL) && i < plan->node_count)
            trace_node(plan, i, options);
    }
    return ISO_OK;
}

iso_status iso_run(iso_plan *plan, const iso_run_options *options, iso_error *error)
{
    static const iso_run_options none;
    iso_status status;

    if (options == NULL)
        options = &none;
    if (plan->block == NULL)
        return iso_fail(error, ISO_BAD_ARGUMENT, "run: the plan is not recorded");
    if ((options->trace != NULL || options->tap != NULL) && plan->workspace_host == NULL)
        return iso_fail(error, ISO_UNSUPPORTED,
                        "run: tracing needs a plan made step by step, on a device whose memory "
                        "the host can read");
    iso_alloc_seal();
    status = run(plan, options, error);
    iso_alloc_unseal();
    return status;
}
