/* graph: what is to be computed. Append-only, shapes inferred at append, sealed once, then
 * immutable. It knows operators through iso_op and nothing about devices.
 *
 * Values are written once, except state, which UPDATE operators change in place: their output is
 * the new version of the same storage, and using an old version afterwards is refused at append,
 * so the order of state accesses is the order of the nodes. */
#ifndef ISO_CORE_GRAPH_H
#define ISO_CORE_GRAPH_H

#include "core/op.h"

typedef struct iso_graph iso_graph;
typedef uint32_t iso_value;              /* 0: no value (an absent optional operand) */

typedef enum iso_value_kind {
    ISO_VALUE_INPUT,                     /* written by the host, part of the argument block */
    ISO_VALUE_WEIGHT,                    /* id of the residency manager */
    ISO_VALUE_STATE,                     /* id of the caller */
    ISO_VALUE_RESULT                     /* output of a node */
} iso_value_kind;

typedef struct iso_value_info {
    iso_value_kind kind;
    const char *name;                    /* lent */
    iso_tensor_desc desc;
    uint32_t id;                         /* WEIGHT, STATE */
    uint32_t node, output;               /* RESULT: producer */
    iso_value storage;                   /* the value whose bytes this is: itself, or the STATE */
    bool is_output;                      /* the host reads it after a run */
} iso_value_info;

typedef struct iso_node_info {
    const char *name;                    /* lent, unique in the graph */
    const iso_op_call *call;
    const iso_value *inputs;             /* op->input_count; 0: absent */
    const iso_value *outputs;            /* op->output_count */
} iso_node_info;

iso_status iso_graph_create(iso_graph **graph, iso_error *error);
void iso_graph_destroy(iso_graph **graph);

/* Names are copied. A scalar is one u32 of the argument block; capacity is the largest value it
 * takes. *scalar is its word index; a descriptor counted by it has live_scalar = *scalar + 1. */
iso_status iso_graph_scalar(iso_graph *graph, const char *name, uint32_t capacity,
                            uint32_t *scalar, iso_error *error);
iso_status iso_graph_input(iso_graph *graph, const char *name, iso_tensor_desc desc,
                           iso_value *value, iso_error *error);
iso_status iso_graph_weight(iso_graph *graph, const char *name, iso_tensor_desc desc, uint32_t id,
                            iso_value *value, iso_error *error);
iso_status iso_graph_state(iso_graph *graph, const char *name, iso_tensor_desc desc, uint32_t id,
                           iso_value *value, iso_error *error);
/* params: op->params_bytes bytes (NULL when the operator has none). inputs: op->input_count values.
 * outputs receives op->output_count values. Fails with the name of the node and what infer said. */
iso_status iso_graph_append(iso_graph *graph, const char *name, const iso_op *op,
                            const void *params, const iso_value *inputs, iso_value *outputs,
                            iso_error *error);
/* Marks a RESULT as read by the host; `name` finds it again in the plan. */
iso_status iso_graph_output(iso_graph *graph, const char *name, iso_value value,
                            iso_error *error);
/* No appends afterwards. Hashes everything. */
iso_status iso_graph_seal(iso_graph *graph, iso_error *error);

bool iso_graph_is_sealed(const iso_graph *graph);
void iso_graph_hash(const iso_graph *graph, uint64_t hash[2]);       /* sealed only */
uint32_t iso_graph_node_count(const iso_graph *graph);
void iso_graph_node(const iso_graph *graph, uint32_t index, iso_node_info *info);
uint32_t iso_graph_value_count(const iso_graph *graph);              /* values are 1 .. count */
void iso_graph_value(const iso_graph *graph, iso_value value, iso_value_info *info);
uint32_t iso_graph_scalar_count(const iso_graph *graph);
void iso_graph_scalar_info(const iso_graph *graph, uint32_t scalar, const char **name,
                           uint32_t *capacity);
uint32_t iso_graph_output_count(const iso_graph *graph);
void iso_graph_output_at(const iso_graph *graph, uint32_t index, const char **name,
                         iso_value *value);

#endif
