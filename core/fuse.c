#include "core/fuse.h"

#include "core/alloc.h"

#include <string.h>

#define NOT_FUSED UINT32_MAX

/* A match: one node per part. */
typedef struct match {
    const iso_fusion *fusion;
    uint32_t node[ISO_FUSION_PARTS_MAX];
    uint32_t anchor;                     /* the node at whose place the step runs */
    iso_fused_call call;
    iso_support support;
} match;

typedef struct fuser {
    const iso_graph *graph;
    const iso_plan_device *device;
    const iso_plan_options *options;
    uint32_t node_count, value_count;
    /* When a node runs: the number of a node; those of one step share their anchor's. Every value
     * is made before it is read: position[producer] < position[reader], or they are one step. */
    uint32_t *position;                  /* [node_count] */
    uint32_t *step;                      /* [node_count]: index into made->fused, or NOT_FUSED */
    uint32_t *use_begin, *use;           /* nodes that read value v: use[use_begin[v] ..) */
    uint32_t use_count;
    iso_fuse_steps *made;
} fuser;

static const iso_op *op_of(const fuser *f, uint32_t n, iso_node_info *info)
{
    iso_graph_node(f->graph, n, info);
    return info->call->op;
}

/* ---- who reads a value ---- */

static void count_uses(fuser *f)
{
    iso_node_info node;

    for (uint32_t n = 0; n < f->node_count; n++)
        for (uint32_t i = 0; i < op_of(f, n, &node)->input_count; i++)
            f->use_begin[node.inputs[i] + 1]++;
    f->use_begin[1] = 0;                 /* absent operands */
    for (uint32_t v = 0; v <= f->value_count; v++)
        f->use_begin[v + 1] += f->use_begin[v];
    f->use_count = f->use_begin[f->value_count + 1];
}

static void list_uses(fuser *f)
{
    iso_node_info node;

    for (uint32_t n = f->node_count; n-- > 0;)
        for (uint32_t i = op_of(f, n, &node)->input_count; i-- > 0;)
            if (node.inputs[i] != 0)
                f->use[--f->use_begin[node.inputs[i] + 1]] = n;
    /* What was the end of v is its beginning now, one place too far. */
    for (uint32_t v = 0; v <= f->value_count; v++)
        f->use_begin[v] = f->use_begin[v + 1];
    f->use_begin[f->value_count + 1] = f->use_count;
}

/* ---- matching ---- */

static bool is_member(const match *m, uint32_t count, uint32_t n)
{
    for (uint32_t k = 0; k < count; k++)
        if (m->node[k] == n)
            return true;
    return false;
}

/* The first free node of the part's operator that reads `value`; keeps *best if that is earlier. */
static void find_reader(const fuser *f, const match *m, uint32_t k, iso_value value,
                        uint32_t *best)
{
    iso_node_info node;

    for (uint32_t u = f->use_begin[value]; value != 0 && u < f->use_begin[value + 1]; u++) {
        const uint32_t n = f->use[u];

        if (n < *best && f->step[n] == NOT_FUSED && !is_member(m, k, n)
            && strcmp(op_of(f, n, &node)->name, m->fusion->part[k]) == 0)
            *best = n;
    }
}

static bool find_part(const fuser *f, match *m, uint32_t k)
{
    uint32_t best = UINT32_MAX;
    iso_node_info node;

    for (uint32_t j = 0; j < k; j++)
        for (uint32_t o = 0; o < op_of(f, m->node[j], &node)->output_count; o++)
            find_reader(f, m, k, node.outputs[o], &best);
    if (strcmp(m->fusion->part[k], m->fusion->part[k - 1]) == 0) {
        iso_graph_node(f->graph, m->node[k - 1], &node);
        find_reader(f, m, k, node.inputs[0], &best);
    }
    m->node[k] = best;
    return best != UINT32_MAX;
}

/* Who of the match makes a value. */
static iso_fused_link link_of(const fuser *f, const match *m, uint32_t k, iso_value value)
{
    iso_node_info node;

    for (uint32_t j = 0; j < k; j++)
        for (uint32_t o = 0; o < op_of(f, m->node[j], &node)->output_count; o++)
            if (node.outputs[o] == value)
                return (iso_fused_link){j + 1, o};
    return (iso_fused_link){0, 0};
}

static bool is_read_outside(const fuser *f, const match *m, iso_value value)
{
    iso_value_info info;

    iso_graph_value(f->graph, value, &info);
    if (info.is_output || info.storage != value)
        return true;
    for (uint32_t u = f->use_begin[value]; u < f->use_begin[value + 1]; u++)
        if (!is_member(m, m->fusion->part_count, f->use[u]))
            return true;
    return false;
}

static void describe(const fuser *f, match *m)
{
    m->call = (iso_fused_call){.fusion = m->fusion};
    for (uint32_t k = 0; k < m->fusion->part_count; k++) {
        iso_node_info node;
        const iso_op *op = op_of(f, m->node[k], &node);

        m->call.part[k] = node.call;
        for (uint32_t i = 0; i < op->input_count; i++)
            if (node.inputs[i] != 0)
                m->call.link[k][i] = link_of(f, m, k, node.inputs[i]);
        for (uint32_t o = 0; o < op->output_count; o++)
            if (is_read_outside(f, m, node.outputs[o]))
                m->call.stored[k] |= 1u << o;
    }
}

/* ---- the place in the order ---- */

/* Values from outside are made before `anchor`, and read outside after it. */
static bool values_allow(const fuser *f, const match *m, uint32_t k, uint32_t anchor)
{
    iso_node_info node;
    const iso_op *op = op_of(f, m->node[k], &node);

    for (uint32_t i = 0; i < op->input_count; i++) {
        iso_value_info info;

        if (node.inputs[i] == 0 || m->call.link[k][i].part != 0)
            continue;
        iso_graph_value(f->graph, node.inputs[i], &info);
        if (info.kind == ISO_VALUE_RESULT
            && (is_member(m, m->fusion->part_count, info.node)
                || f->position[info.node] >= anchor))
            return false;                /* a later part's result is no input of an earlier one */
    }
    for (uint32_t o = 0; o < op->output_count; o++)
        for (uint32_t u = f->use_begin[node.outputs[o]];
             u < f->use_begin[node.outputs[o] + 1]; u++)
            if (!is_member(m, m->fusion->part_count, f->use[u])
                && f->position[f->use[u]] <= anchor)
                return false;
    return true;
}

/* How a node touches a storage: 0 not at all, 1 reads, 2 changes it. */
static int access_of(const fuser *f, uint32_t n, iso_value storage)
{
    int access = 0;
    iso_node_info node;
    const iso_op *op = op_of(f, n, &node);

    for (uint32_t i = 0; i < op->input_count; i++) {
        iso_value_info info;

        if (node.inputs[i] == 0)
            continue;
        iso_graph_value(f->graph, node.inputs[i], &info);
        if (info.storage == storage)
            access = i == 0 && (op->flags & ISO_OP_UPDATE) != 0 ? 2 : access == 0 ? 1 : access;
    }
    return access;
}

/* Accesses to the states of part k keep their order. */
static bool states_allow(const fuser *f, const match *m, uint32_t k, uint32_t anchor)
{
    iso_node_info node;
    const iso_op *op = op_of(f, m->node[k], &node);

    for (uint32_t i = 0; i < op->input_count; i++) {
        iso_value_info info;
        int mine;

        if (node.inputs[i] == 0)
            continue;
        iso_graph_value(f->graph, node.inputs[i], &info);
        iso_graph_value(f->graph, info.storage, &info);
        if (info.kind != ISO_VALUE_STATE)
            continue;
        mine = access_of(f, m->node[k], info.storage);
        for (uint32_t n = 0; n < f->node_count; n++) {
            const int other = is_member(m, m->fusion->part_count, n)
                                  ? 0 : access_of(f, n, info.storage);

            if (other != 0 && (mine == 2 || other == 2)
                && (n < m->node[k]) != (f->position[n] < anchor))
                return false;
        }
    }
    return true;
}

static bool find_anchor(const fuser *f, match *m)
{
    for (uint32_t a = 0; a < m->fusion->part_count; a++) {
        bool is_allowed = true;

        for (uint32_t k = 0; k < m->fusion->part_count && is_allowed; k++)
            is_allowed = values_allow(f, m, k, m->node[a]) && states_allow(f, m, k, m->node[a]);
        if (is_allowed) {
            m->anchor = m->node[a];
            return true;
        }
    }
    return false;
}

/* ---- taking ---- */

static bool is_alone(const fuser *f, uint32_t n)
{
    iso_node_info node;

    /* Scratch memory is a node's own, host operators run elsewhere. */
    return (op_of(f, n, &node)->flags & (ISO_OP_SCRATCH | ISO_OP_HOST)) != 0;
}

static bool try_row(const fuser *f, const iso_fusion *fusion, uint32_t n, match *m)
{
    iso_node_info node;

    ISO_ASSERT(fusion->part_count >= 2 && fusion->part_count <= ISO_FUSION_PARTS_MAX);
    if (strcmp(op_of(f, n, &node)->name, fusion->part[0]) != 0)
        return false;
    *m = (match){.fusion = fusion, .node = {n}};
    for (uint32_t k = 1; k < fusion->part_count; k++)
        if (!find_part(f, m, k) || is_alone(f, m->node[k]))
            return false;
    describe(f, m);
    if (!find_anchor(f, m))
        return false;
    f->device->backend->query_fused(f->device->device, &m->call, f->options->num_class,
                                    &m->support);
    return m->support.ok;
}

static void take(fuser *f, const match *m)
{
    iso_fused *fused = &f->made->fused[f->made->fused_count];

    *fused = (iso_fused){.fusion = m->fusion, .support = m->support};
    for (uint32_t k = 0; k < m->fusion->part_count; k++) {
        fused->stored[k] = m->call.stored[k];
        fused->node[k] = m->node[k];
        f->position[m->node[k]] = m->anchor;
        f->step[m->node[k]] = f->made->fused_count;
    }
    f->made->fused_count++;
}

static void fuse_all(fuser *f)
{
    match m;

    for (uint32_t n = 0; n < f->node_count; n++) {
        if (f->step[n] != NOT_FUSED || is_alone(f, n))
            continue;
        for (uint32_t r = 0; r < f->options->fusion_count; r++)
            if (try_row(f, &f->options->fusions[r], n, &m)) {
                take(f, &m);
                break;
            }
    }
}

/* ---- the list of steps ---- */

static void list_steps(const fuser *f)
{
    iso_fuse_steps *made = f->made;
    uint32_t used = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        const iso_fused *fused =
            f->step == NULL || f->step[n] == NOT_FUSED ? NULL : &made->fused[f->step[n]];
        const uint32_t count = fused == NULL ? 1 : fused->fusion->part_count;

        if (fused != NULL && f->position[n] != n)
            continue;                    /* runs at its anchor's place */
        memcpy(made->order + used, fused == NULL ? &n : fused->node, count * sizeof n);
        made->steps[made->step_count++] = (iso_fuse_step){used, count, fused};
        used += count;
    }
    ISO_ASSERT(used == f->node_count);
}

static bool prepare(fuser *f)
{
    f->position = iso_alloc_zero((size_t)f->node_count + 1, sizeof *f->position, "fuse");
    f->step = iso_alloc_zero((size_t)f->node_count + 1, sizeof *f->step, "fuse");
    f->use_begin = iso_alloc_zero((size_t)f->value_count + 2, sizeof *f->use_begin, "fuse");
    f->made->fused = iso_alloc_zero(f->node_count / 2 + 1, sizeof *f->made->fused, "plan steps");
    f->made->fused_capacity = f->node_count / 2 + 1;
    if (f->position == NULL || f->step == NULL || f->use_begin == NULL || f->made->fused == NULL)
        return false;
    for (uint32_t n = 0; n < f->node_count; n++) {
        f->position[n] = n;
        f->step[n] = NOT_FUSED;
    }
    count_uses(f);
    f->use = iso_alloc_zero((size_t)f->use_count + 1, sizeof *f->use, "fuse");
    if (f->use == NULL)
        return false;
    list_uses(f);
    return true;
}

static void release(fuser *f)
{
    iso_release(f->position, ((size_t)f->node_count + 1) * sizeof *f->position);
    iso_release(f->step, ((size_t)f->node_count + 1) * sizeof *f->step);
    iso_release(f->use_begin, ((size_t)f->value_count + 2) * sizeof *f->use_begin);
    iso_release(f->use, ((size_t)f->use_count + 1) * sizeof *f->use);
}

iso_status iso_fuse_nodes(const iso_graph *graph, const iso_plan_device *device,
                          const iso_plan_options *options, iso_fuse_steps *steps,
                          iso_error *error)
{
    fuser f = {.graph = graph, .device = device, .options = options, .made = steps,
               .node_count = iso_graph_node_count(graph),
               .value_count = iso_graph_value_count(graph)};
    bool is_ready;

    *steps = (iso_fuse_steps){.node_count = f.node_count};
    steps->steps = iso_alloc_zero((size_t)f.node_count + 1, sizeof *steps->steps, "plan steps");
    steps->order = iso_alloc_zero((size_t)f.node_count + 1, sizeof *steps->order, "plan steps");
    is_ready = steps->steps != NULL && steps->order != NULL;
    if (is_ready && !options->step_by_step && options->fusion_count != 0
        && device->backend->query_fused != NULL) {
        is_ready = prepare(&f);
        if (is_ready)
            fuse_all(&f);
    }
    if (is_ready)
        list_steps(&f);
    release(&f);
    return is_ready ? ISO_OK : iso_fail(error, ISO_NO_MEMORY, "plan: out of memory for its steps");
}

void iso_fuse_release(iso_fuse_steps *steps)
{
    iso_release(steps->steps, ((size_t)steps->node_count + 1) * sizeof *steps->steps);
    iso_release(steps->order, ((size_t)steps->node_count + 1) * sizeof *steps->order);
    iso_release(steps->fused, steps->fused_capacity * sizeof *steps->fused);
    *steps = (iso_fuse_steps){0};
}
