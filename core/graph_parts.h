/* graph_parts: the inside of a graph; for graph.c and graph_read.c only. */
#ifndef ISO_CORE_GRAPH_PARTS_H
#define ISO_CORE_GRAPH_PARTS_H

#include "core/graph.h"

typedef struct iso_graph_scalar_row {
    char *name;
    uint32_t capacity;
} iso_graph_scalar_row;

typedef struct iso_graph_value_row {
    iso_value_info info;         /* info.name is `name`, or the producer's name */
    char *name;                  /* owned; NULL for a RESULT */
    iso_value latest;            /* of a STATE: its newest version */
} iso_graph_value_row;

typedef struct iso_graph_node_row {
    char *name;
    iso_op_call call;
    iso_value inputs[ISO_OP_INPUTS_MAX];
    iso_value outputs[ISO_OP_OUTPUTS_MAX];
} iso_graph_node_row;

typedef struct iso_graph_output_row {
    char *name;
    iso_value value;
} iso_graph_output_row;

struct iso_graph {
    bool is_sealed;
    uint64_t hash[2];
    iso_graph_scalar_row *scalars;
    uint32_t scalar_count, scalar_capacity;
    iso_graph_value_row *values;         /* value v is row v - 1 */
    uint32_t value_count, value_capacity;
    iso_graph_node_row *nodes;
    uint32_t node_count, node_capacity;
    iso_graph_output_row *outputs;
    uint32_t output_count, output_capacity;
    uint32_t *buckets;                   /* open addressing, 1 + node index; power of two */
    uint32_t bucket_count;
};

#endif
