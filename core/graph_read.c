/* Sealing, hashing and reading a graph. */
#include "core/graph_parts.h"

#include "core/hash.h"

#include <string.h>

static void hash_text(iso_hasher *hasher, const char *text)
{
    iso_hasher_add(hasher, text, strlen(text) + 1);
}

static void hash_words(iso_hasher *hasher, uint32_t a, uint32_t b)
{
    const uint32_t words[2] = {a, b};

    iso_hasher_add(hasher, words, sizeof words);
}

static void hash_desc(iso_hasher *hasher, const iso_tensor_desc *desc)
{
    const uint32_t words[5] = {(uint32_t)desc->dtype, (uint32_t)desc->layout, desc->rank,
                               desc->live_scalar, desc->live_mult};

    iso_hasher_add(hasher, words, sizeof words);
    iso_hasher_add(hasher, desc->extent, sizeof desc->extent);
}

static void hash_node(iso_hasher *hasher, const iso_graph_node_row *node)
{
    const iso_op *op = node->call.op;

    hash_text(hasher, node->name);
    hash_text(hasher, op->name);
    iso_hasher_add(hasher, node->call.params, sizeof node->call.params);
    iso_hasher_add(hasher, node->inputs, sizeof node->inputs);
    iso_hasher_add(hasher, node->outputs, sizeof node->outputs);
}

iso_status iso_graph_seal(iso_graph *graph, iso_error *error)
{
    iso_hasher hasher;

    if (graph->is_sealed)
        return iso_fail(error, ISO_BAD_ARGUMENT, "graph: sealed already");
    iso_hasher_init(&hasher);
    hash_words(&hasher, graph->scalar_count, graph->value_count);
    hash_words(&hasher, graph->node_count, graph->output_count);
    for (uint32_t i = 0; i < graph->scalar_count; i++) {
        hash_text(&hasher, graph->scalars[i].name);
        hash_words(&hasher, i, graph->scalars[i].capacity);
    }
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const iso_value_info *info = &graph->values[i].info;

        hash_text(&hasher, info->name);
        hash_words(&hasher, (uint32_t)info->kind, info->id);
        hash_words(&hasher, info->storage, info->output);
        hash_desc(&hasher, &info->desc);
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        hash_node(&hasher, &graph->nodes[i]);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        hash_text(&hasher, graph->outputs[i].name);
        hash_words(&hasher, i, graph->outputs[i].value);
    }
    iso_hasher_end(&hasher, graph->hash);
    graph->is_sealed = true;
    return ISO_OK;
}

bool iso_graph_is_sealed(const iso_graph *graph) { return graph->is_sealed; }

void iso_graph_hash(const iso_graph *graph, uint64_t hash[2])
{
    ISO_ASSERT(graph->is_sealed);
    hash[0] = graph->hash[0];
    hash[1] = graph->hash[1];
}

uint32_t iso_graph_node_count(const iso_graph *graph) { return graph->node_count; }

void iso_graph_node(const iso_graph *graph, uint32_t index, iso_node_info *info)
{
    const iso_graph_node_row *node;

    ISO_ASSERT(index < graph->node_count);
    node = &graph->nodes[index];
    *info = (iso_node_info){.name = node->name, .call = &node->call, .inputs = node->inputs,
                            .outputs = node->outputs};
}

uint32_t iso_graph_value_count(const iso_graph *graph) { return graph->value_count; }

void iso_graph_value(const iso_graph *graph, iso_value value, iso_value_info *info)
{
    ISO_ASSERT(value >= 1 && value <= graph->value_count);
    *info = graph->values[value - 1].info;
}

uint32_t iso_graph_scalar_count(const iso_graph *graph) { return graph->scalar_count; }

void iso_graph_scalar_info(const iso_graph *graph, uint32_t scalar, const char **name,
                           uint32_t *capacity)
{
    ISO_ASSERT(scalar < graph->scalar_count);
    *name = graph->scalars[scalar].name;
    *capacity = graph->scalars[scalar].capacity;
}

uint32_t iso_graph_output_count(const iso_graph *graph) { return graph->output_count; }

void iso_graph_output_at(const iso_graph *graph, uint32_t index, const char **name,
                         iso_value *value)
{
    ISO_ASSERT(index < graph->output_count);
    *name = graph->outputs[index].name;
    *value = graph->outputs[index].value;
}
