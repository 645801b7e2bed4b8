/* The builder. An append either succeeds or leaves the graph as it was. */
#include "core/graph_parts.h"

#include "core/alloc.h"
#include "core/array.h"
#include "core/hash.h"

#include <string.h>

/* A name longer than this is a mistake of the caller. */
enum { NAME_BYTES_MAX = 256, BUCKETS_MIN = 64 };

static iso_status no_memory(iso_error *error, const char *name)
{
    return iso_fail(error, ISO_NO_MEMORY, "graph: out of memory at %s", name);
}

static iso_status copy_name(const char *name, char **copy, iso_error *error)
{
    const size_t bytes = strlen(name) + 1;

    if (bytes == 1 || bytes > NAME_BYTES_MAX)
        return iso_fail(error, ISO_BAD_ARGUMENT, "graph: a name has %zu characters", bytes - 1);
    *copy = iso_alloc(bytes, 1, "graph name");
    if (*copy == NULL)
        return no_memory(error, name);
    memcpy(*copy, name, bytes);
    return ISO_OK;
}

static void free_name(char *name)
{
    if (name != NULL)
        iso_release(name, strlen(name) + 1);
}

static iso_status check_open(const iso_graph *graph, const char *name, iso_error *error)
{
    if (graph->is_sealed)
        return iso_fail(error, ISO_BAD_ARGUMENT, "graph: %s comes after the seal", name);
    return ISO_OK;
}

iso_status iso_graph_create(iso_graph **graph, iso_error *error)
{
    iso_graph *made = iso_alloc_zero(1, sizeof *made, "graph");

    if (made == NULL)
        return no_memory(error, "create");
    *graph = made;
    return ISO_OK;
}

void iso_graph_destroy(iso_graph **graph)
{
    iso_graph *g = graph == NULL ? NULL : *graph;

    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->scalar_count; i++)
        free_name(g->scalars[i].name);
    for (uint32_t i = 0; i < g->value_count; i++)
        free_name(g->values[i].name);
    for (uint32_t i = 0; i < g->node_count; i++)
        free_name(g->nodes[i].name);
    for (uint32_t i = 0; i < g->output_count; i++)
        free_name(g->outputs[i].name);
    iso_array_free(&g->scalars, &g->scalar_capacity, sizeof *g->scalars);
    iso_array_free(&g->values, &g->value_capacity, sizeof *g->values);
    iso_array_free(&g->nodes, &g->node_capacity, sizeof *g->nodes);
    iso_array_free(&g->outputs, &g->output_capacity, sizeof *g->outputs);
    iso_array_free(&g->buckets, &g->bucket_count, sizeof *g->buckets);
    iso_release(g, sizeof *g);
    *graph = NULL;
}

iso_status iso_graph_scalar(iso_graph *graph, const char *name, uint32_t capacity,
                            uint32_t *scalar, iso_error *error)
{
    iso_graph_scalar_row row = {.capacity = capacity};

    ISO_TRY(check_open(graph, name, error));
    if (!iso_array_reserve(&graph->scalars, &graph->scalar_capacity, graph->scalar_count, 1,
                           sizeof row, "graph scalars"))
        return no_memory(error, name);
    ISO_TRY(copy_name(name, &row.name, error));
    graph->scalars[graph->scalar_count] = row;
    *scalar = graph->scalar_count++;
    return ISO_OK;
}

static iso_status check_desc(const iso_graph *graph, const char *name,
                             const iso_tensor_desc *desc, iso_error *error)
{
    ISO_TRY(iso_desc_check(desc, name, error));
    if (!iso_desc_present(desc))
        return iso_fail(error, ISO_BAD_DTYPE, "%s: a value needs a dtype", name);
    if (desc->live_scalar > graph->scalar_count)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: counted by scalar %u of %u", name,
                        desc->live_scalar - 1, graph->scalar_count);
    if (desc->live_scalar != 0 && desc->live_mult == 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: counted by 0 rows per unit", name);
    if (desc->live_scalar != 0 && desc->extent[0] > UINT32_MAX)
        return iso_fail(error, ISO_BAD_SHAPE, "%s: %lld counted rows", name,
                        (long long)desc->extent[0]);
    return ISO_OK;
}

/* Appends a value that no node makes. */
static iso_status add_source(iso_graph *graph, const char *name, const iso_value_info *info,
                             iso_value *value, iso_error *error)
{
    iso_graph_value_row row = {.info = *info};

    ISO_TRY(check_open(graph, name, error));
    ISO_TRY(check_desc(graph, name, &info->desc, error));
    if (!iso_array_reserve(&graph->values, &graph->value_capacity, graph->value_count, 1,
                           sizeof row, "graph values"))
        return no_memory(error, name);
    ISO_TRY(copy_name(name, &row.name, error));
    row.latest = graph->value_count + 1;
    row.info.name = row.name;
    row.info.storage = row.latest;
    graph->values[graph->value_count++] = row;
    *value = row.latest;
    return ISO_OK;
}

iso_status iso_graph_input(iso_graph *graph, const char *name, iso_tensor_desc desc,
                           iso_value *value, iso_error *error)
{
    const iso_value_info info = {.kind = ISO_VALUE_INPUT, .desc = desc};

    return add_source(graph, name, &info, value, error);
}

iso_status iso_graph_weight(iso_graph *graph, const char *name, iso_tensor_desc desc, uint32_t id,
                            iso_value *value, iso_error *error)
{
    const iso_value_info info = {.kind = ISO_VALUE_WEIGHT, .desc = desc, .id = id};

    return add_source(graph, name, &info, value, error);
}

iso_status iso_graph_state(iso_graph *graph, const char *name, iso_tensor_desc desc, uint32_t id,
                           iso_value *value, iso_error *error)
{
    const iso_value_info info = {.kind = ISO_VALUE_STATE, .desc = desc, .id = id};

    /* Two values of one storage would hide the order of its accesses. */
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].info.kind == ISO_VALUE_STATE && graph->values[i].info.id == id)
            return iso_fail(error, ISO_BAD_ARGUMENT, "%s: state %u is already %s", name, id,
                            graph->values[i].name);
    return add_source(graph, name, &info, value, error);
}

/* The bucket of a name: the node's, or the empty one where it would go. */
static uint32_t find_bucket(const iso_graph *graph, const char *name)
{
    uint64_t hash[2];
    uint32_t i;

    iso_hash(name, strlen(name), hash);
    for (i = (uint32_t)hash[0] & (graph->bucket_count - 1); graph->buckets[i] != 0;
         i = (i + 1) & (graph->bucket_count - 1))
        if (strcmp(graph->nodes[graph->buckets[i] - 1].name, name) == 0)
            break;
    return i;
}

/* Keeps the table at most half full with one more node. */
static bool grow_buckets(iso_graph *graph)
{
    iso_graph larger = *graph;

    if (graph->bucket_count != 0 && graph->node_count + 1 <= graph->bucket_count / 2)
        return true;
    larger.bucket_count = graph->bucket_count == 0 ? BUCKETS_MIN : graph->bucket_count * 2;
    larger.buckets = iso_alloc_zero(larger.bucket_count, sizeof *larger.buckets, "graph names");
    if (larger.buckets == NULL)
        return false;
    for (uint32_t i = 0; i < graph->node_count; i++)
        larger.buckets[find_bucket(&larger, graph->nodes[i].name)] = i + 1;
    iso_release(graph->buckets, graph->bucket_count * sizeof *graph->buckets);
    graph->buckets = larger.buckets;
    graph->bucket_count = larger.bucket_count;
    return true;
}

static iso_status check_inputs(const iso_graph *graph, const char *name, const iso_op *op,
                               const iso_value *inputs, iso_error *error)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const iso_graph_value_row *row;
        iso_value storage;

        if (inputs[i] == 0)
            continue;
        if (inputs[i] > graph->value_count)
            return iso_fail(error, ISO_BAD_ARGUMENT, "%s: input %u is value %u of %u", name, i,
                            inputs[i], graph->value_count);
        row = &graph->values[inputs[i] - 1];
        storage = row->info.storage;
        if (graph->values[storage - 1].info.kind == ISO_VALUE_STATE
            && graph->values[storage - 1].latest != inputs[i])
            return iso_fail(error, ISO_BAD_ARGUMENT,
                            "%s: input %u is an old version of state %s", name, i,
                            graph->values[storage - 1].name);
    }
    return ISO_OK;
}

/* An UPDATE operator changes input 0, which must be state, and returns it with its shape. */
static iso_status check_update(const iso_graph *graph, const char *name,
                               const iso_graph_node_row *node, iso_error *error)
{
    const iso_op *op = node->call.op;
    iso_value storage;

    if (!(op->flags & ISO_OP_UPDATE))
        return ISO_OK;
    storage = node->inputs[0] == 0 ? 0 : graph->values[node->inputs[0] - 1].info.storage;
    if (storage == 0 || graph->values[storage - 1].info.kind != ISO_VALUE_STATE)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: %s changes its input 0: it must be state",
                        name, op->name);
    if (!iso_desc_equal(&node->call.out[0], &node->call.in[0]))
        return iso_fail(error, ISO_BAD_SHAPE, "%s: %s changes the shape of a state", name,
                        op->name);
    /* A second operand of the same storage would be read while it is changed. */
    for (uint32_t i = 1; i < op->input_count; i++)
        if (node->inputs[i] != 0 && graph->values[node->inputs[i] - 1].info.storage == storage)
            return iso_fail(error, ISO_BAD_ARGUMENT, "%s: %s reads the state it changes", name,
                            op->name);
    return ISO_OK;
}

static iso_status infer(const iso_graph *graph, const char *name, const void *params,
                        iso_graph_node_row *node, iso_error *error)
{
    const iso_op *op = node->call.op;
    iso_status status;

    if (params != NULL)
        memcpy(node->call.params, params, op->params_bytes);
    for (uint32_t i = 0; i < op->input_count; i++)
        if (node->inputs[i] != 0)
            node->call.in[i] = graph->values[node->inputs[i] - 1].info.desc;
    status = op->infer(&node->call, error);
    if (status != ISO_OK)
        return iso_fail_in(error, status, "%s", name);
    for (uint32_t i = 0; i < op->output_count; i++)
        ISO_TRY(check_desc(graph, name, &node->call.out[i], error));
    return check_update(graph, name, node, error);
}

static void add_results(iso_graph *graph, iso_graph_node_row *node)
{
    const iso_op *op = node->call.op;

    for (uint32_t i = 0; i < op->output_count; i++) {
        const iso_value value = graph->value_count + 1;
        iso_graph_value_row row = {
            .info = {.kind = ISO_VALUE_RESULT, .name = node->name, .desc = node->call.out[i],
                     .node = graph->node_count, .output = i, .storage = value},
        };

        if (i == 0 && (op->flags & ISO_OP_UPDATE)) {
            row.info.storage = graph->values[node->inputs[0] - 1].info.storage;
            graph->values[row.info.storage - 1].latest = value;
        }
        node->outputs[i] = value;
        graph->values[graph->value_count++] = row;
    }
}

iso_status iso_graph_append(iso_graph *graph, const char *name, const iso_op *op,
                            const void *params, const iso_value *inputs, iso_value *outputs,
                            iso_error *error)
{
    iso_graph_node_row node = {.call = {.op = op}};

    ISO_ASSERT(op->input_count <= ISO_OP_INPUTS_MAX && op->output_count <= ISO_OP_OUTPUTS_MAX
               && op->params_bytes <= ISO_OP_PARAMS_MAX && op->args_bytes <= ISO_OP_ARGS_MAX);
    ISO_TRY(check_open(graph, name, error));
    ISO_TRY(check_inputs(graph, name, op, inputs, error));
    memcpy(node.inputs, inputs, op->input_count * sizeof *inputs);
    ISO_TRY(infer(graph, name, params, &node, error));
    if (!iso_array_reserve(&graph->nodes, &graph->node_capacity, graph->node_count, 1,
                           sizeof node, "graph nodes")
        || !iso_array_reserve(&graph->values, &graph->value_capacity, graph->value_count,
                              op->output_count, sizeof *graph->values, "graph values")
        || !grow_buckets(graph))
        return no_memory(error, name);
    if (graph->buckets[find_bucket(graph, name)] != 0)
        return iso_fail(error, ISO_BAD_ARGUMENT, "%s: there is a node of this name", name);
    ISO_TRY(copy_name(name, &node.name, error));
    add_results(graph, &node);
    graph->buckets[find_bucket(graph, name)] = graph->node_count + 1;
    memcpy(outputs, node.outputs, op->output_count * sizeof *outputs);
    graph->nodes[graph->node_count++] = node;
    return ISO_OK;
}

iso_status iso_graph_output(iso_graph *graph, const char *name, iso_value value, iso_error *error)
{
    iso_graph_output_row row = {.value = value};
    iso_value_info *info;

    ISO_TRY(check_open(graph, name, error));
    if (value == 0 || value > graph->value_count)
        return iso_fail(error, ISO_BAD_ARGUMENT, "output %s: value %u of %u", name, value,
                        graph->value_count);
    info = &graph->values[value - 1].info;
    if (info->kind != ISO_VALUE_RESULT || info->storage != value)
        return iso_fail(error, ISO_BAD_ARGUMENT, "output %s: %s is no result of an operator",
                        name, info->name);
    if (info->is_output)
        return iso_fail(error, ISO_BAD_ARGUMENT, "output %s: %s is an output already", name,
                        info->name);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (strcmp(graph->outputs[i].name, name) == 0)
            return iso_fail(error, ISO_BAD_ARGUMENT, "output %s: there is one already", name);
    if (!iso_array_reserve(&graph->outputs, &graph->output_capacity, graph->output_count,
                           1, sizeof row, "graph outputs"))
        return no_memory(error, name);
    ISO_TRY(copy_name(name, &row.name, error));
    graph->outputs[graph->output_count++] = row;
    info->is_output = true;
    return ISO_OK;
}
