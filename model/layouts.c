/* layouts: which weights are packed. A weight may be packed when every node that reads it takes it
 * packed, in every bucket of the engine; the nodes of a graph say which operands those are, the
 * device says which kernels there are. "auto" packs where that gives a better kernel (an earlier
 * row) for a step of one token: decoding is what weights are packed for. */
#include "model/engine.h"

#include "core/alloc.h"
#include "core/threads.h"

#include <string.h>

typedef enum choice { CHOICE_NONE, CHOICE_PACK, CHOICE_PLAIN } choice;

typedef struct chooser {
    iso_engine *engine;
    uint8_t *choice;                     /* by weight id */
    bool is_forced;                      /* "rows32" */
    bool is_changed;                     /* a weight became CHOICE_PLAIN in this pass */
    char refusal[160];                   /* of the first node whose packed weights were refused */
} chooser;

static iso_support ask(const chooser *c, const iso_op_call *node_call, iso_layout layout)
{
    iso_op_call call = *node_call;
    iso_support support;

    for (uint32_t i = 0; i < call.op->input_count; i++)
        if (iso_op_is_weight(call.op, i) && iso_desc_present(&call.in[i]))
            call.in[i].layout = layout;
    c->engine->backend->query(c->engine->device, &call, ISO_CLASS_EXACT, &support);
    return support;
}

static bool takes_packed(chooser *c, const iso_node_info *node, uint32_t tokens)
{
    const iso_support packed = ask(c, node->call, ISO_LAYOUT_ROWS32);
    iso_support plain;

    if (!packed.ok) {
        if (c->refusal[0] == '\0')
            snprintf(c->refusal, sizeof c->refusal, "%s: %.60s", node->call->op->name,
                     packed.text[0] != '\0' ? packed.text : iso_reason_text(packed.reason));
        return false;
    }
    if (c->is_forced || tokens != 1)
        return true;
    plain = ask(c, node->call, ISO_LAYOUT_PLAIN);
    return !plain.ok || packed.kernel_index < plain.kernel_index;
}

/* The weight that a packable operand reads, or NULL: a value that a step computes. */
static uint8_t *choice_of(const chooser *c, const iso_graph *graph, iso_value value)
{
    iso_value_info info;

    iso_graph_value(graph, value, &info);
    return info.kind == ISO_VALUE_WEIGHT ? &c->choice[info.id] : NULL;
}

static void refuse(chooser *c, uint8_t *weight)
{
    c->is_changed = c->is_changed || *weight != CHOICE_PLAIN;
    *weight = CHOICE_PLAIN;
}

/* All packable operands of a node have one layout, so one that stays plain keeps the others. */
static void visit(chooser *c, const iso_graph *graph, const iso_node_info *node, uint32_t tokens)
{
    const iso_op *op = node->call->op;
    bool is_packable = true, has_weights = false;
    uint8_t *weight;

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (node->inputs[i] == 0)
            continue;
        weight = choice_of(c, graph, node->inputs[i]);
        if (!iso_op_is_weight(op, i)) {
            if (weight != NULL)
                refuse(c, weight);
            continue;
        }
        has_weights = true;
        is_packable = is_packable && weight != NULL && *weight != CHOICE_PLAIN;
    }
    if (!has_weights)
        return;
    is_packable = is_packable && takes_packed(c, node, tokens);
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (node->inputs[i] == 0 || !iso_op_is_weight(op, i))
            continue;
        weight = choice_of(c, graph, node->inputs[i]);
        if (weight != NULL && is_packable)
            *weight = CHOICE_PACK;
        else if (weight != NULL)
            refuse(c, weight);
    }
}

/* Visits every node of every bucket's forward graph. */
static iso_status visit_buckets(chooser *c, iso_error *error)
{
    const iso_model_parts parts = iso_engine_parts(c->engine);
    const iso_engine_options *options = &c->engine->options;
    uint32_t tokens = 0;

    while (tokens < options->step_tokens_max) {
        iso_graph *graph = NULL;
        iso_forward_io io;
        iso_bucket bucket;
        iso_node_info node;

        iso_engine_bucket(c->engine, tokens + 1, options->context_tokens, 1, &bucket);
        ISO_TRY(iso_build_forward(&parts, &bucket, &graph, &io, error));
        for (uint32_t i = 0; i < iso_graph_node_count(graph); i++) {
            iso_graph_node(graph, i, &node);
            visit(c, graph, &node, bucket.tokens);
        }
        iso_graph_destroy(&graph);
        tokens = bucket.tokens;
    }
    return ISO_OK;
}

static uint64_t chosen_bytes(const chooser *c, uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < count; id++)
        if (c->choice[id] == CHOICE_PACK)
            bytes += iso_desc_bytes(iso_weight_desc(c->engine->weights, id));
    return bytes;
}

static iso_status pack(const chooser *c, uint32_t count, iso_error *error)
{
    const iso_engine_options *options = &c->engine->options;
    const uint32_t threads =
        options->thread_count != 0 ? options->thread_count : iso_threads_available();
    const uint64_t total = chosen_bytes(c, count);
    uint64_t done = 0;

    for (uint32_t id = 0; id < count; id++) {
        if (c->choice[id] != CHOICE_PACK)
            continue;
        done += iso_desc_bytes(iso_weight_desc(c->engine->weights, id));
        ISO_TRY(iso_residency_arrange(c->engine->residency, id, ISO_LAYOUT_ROWS32, threads,
                                      error));
        iso_weight_set_layout(c->engine->weights, id, ISO_LAYOUT_ROWS32);
        if (options->progress != NULL
            && !options->progress(options->progress_context, "pack", done, total))
            return iso_fail(error, ISO_CANCELLED, "packing was cancelled");
    }
    if (total == 0 && c->is_forced)
        return iso_fail(error, ISO_UNSUPPORTED, "layout rows32: device %s has no kernel for packed "
                        "weights (%s)", options->device, c->refusal);
    return ISO_OK;
}

iso_status iso_engine_arrange(iso_engine *engine, iso_error *error)
{
    const char *layout = engine->options.layout;
    const uint32_t count = iso_weight_count(engine->weights);
    chooser c = {.engine = engine, .is_changed = true};
    iso_status status = ISO_OK;

    if (layout != NULL && strcmp(layout, "plain") == 0)
        return ISO_OK;
    c.is_forced = layout != NULL && strcmp(layout, "rows32") == 0;
    if (layout != NULL && !c.is_forced && strcmp(layout, "auto") != 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "layout \"%.40s\", expected auto, plain or "
                        "rows32", layout);
    c.choice = iso_alloc_zero(count, sizeof *c.choice, "layouts");
    if (c.choice == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory choosing layouts");
    while (c.is_changed && status == ISO_OK) {
        c.is_changed = false;
        status = visit_buckets(&c, error);
    }
    if (status == ISO_OK)
        status = pack(&c, count, error);
    iso_release(c.choice, count * sizeof *c.choice);
    return status;
}
