#include "model/build.h"

#include "core/alloc.h"
#include "ggml-style-ops/rows.h"
#include "model/blocks.h"
#include "model/engram.h"
#include "model/rope_freq.h"

#include <stdio.h>

uint32_t iso_bucket_groups(const iso_bucket *bucket, uint32_t ratio)
{
    (void)ratio;
    return bucket->tokens;
}

/* ---- inputs ---- */

static iso_tensor_desc counted(iso_tensor_desc desc, uint32_t scalar)
{
    desc.live_scalar = scalar + 1;
    desc.live_mult = 1;
    return desc;
}

static uint32_t scalar(iso_builder *b, const char *name, uint32_t capacity)
{
    uint32_t index = 0;

    if (b->status == ISO_OK)
        b->status = iso_graph_scalar(b->graph, name, capacity, &index, b->error);
    return index;
}

static iso_value input(iso_builder *b, const char *name, iso_tensor_desc desc, uint32_t count)
{
    iso_value value = 0;

    if (b->status == ISO_OK)
        b->status = iso_graph_input(b->graph, name, counted(desc, count), &value, b->error);
    return value;
}

static void ratio_inputs(iso_builder *b, uint32_t ratio)
{
    const int64_t groups = iso_bucket_groups(&b->bucket, ratio);
    char name[32];

    snprintf(name, sizeof name, "pages.%u", ratio);
    b->io.pages[ratio] = input(b, name,
                               iso_desc2(ISO_DTYPE_I32, b->bucket.sequences,
                                         iso_state_pages_per_seq(b->state, ratio)),
                               b->io.sequences);
    if (ratio == 1) {                    /* entry j of ratio 1 is position j: {seq, position} */
        b->io.group_list[1] = b->io.rows;
        b->io.group_angles[1] = b->io.angles[1];
        return;
    }
    snprintf(name, sizeof name, "groups.%u", ratio);
    b->io.groups[ratio] = scalar(b, name, (uint32_t)groups);
    snprintf(name, sizeof name, "group_list.%u", ratio);
    b->io.group_list[ratio] = input(b, name, iso_desc2(ISO_DTYPE_I32, groups, ISO_GROUP_WORDS),
                                    b->io.groups[ratio]);
    snprintf(name, sizeof name, "group_angles.%u", ratio);
    b->io.group_angles[ratio] = input(b, name, iso_desc3(ISO_DTYPE_F32, groups, ISO_ROPE_PAIRS, 2),
                                      b->io.groups[ratio]);
}

static void engram_inputs(iso_builder *b)
{
    const int64_t width = (int64_t)iso_engram_columns(b->config) * b->config->engram_dim;
    char name[48];

    for (uint32_t i = 0; i < b->config->engram_layers.count; i++) {
        snprintf(name, sizeof name, "engram.%u.codes", i);
        b->io.engram_codes[i] = input(b, name, iso_desc2(ISO_DTYPE_E4M3, b->bucket.tokens, width),
                                      b->io.tokens);
        snprintf(name, sizeof name, "engram.%u.scales", i);
        b->io.engram_scales[i] =
            input(b, name, iso_desc2(ISO_DTYPE_UE8M0, b->bucket.tokens, width / 32), b->io.tokens);
    }
}

static void forward_inputs(iso_builder *b)
{
    const int64_t tokens = b->bucket.tokens;
    const iso_tensor_desc angles = iso_desc3(ISO_DTYPE_F32, tokens, ISO_ROPE_PAIRS, 2);

    b->io.tokens = scalar(b, "tokens", b->bucket.tokens);
    b->io.sequences = scalar(b, "sequences", b->bucket.sequences);
    b->io.logit_rows = scalar(b, "logit_rows", b->bucket.logit_rows);
    b->io.ids = input(b, "ids", iso_desc1(ISO_DTYPE_I32, tokens), b->io.tokens);
    b->io.rows = input(b, "rows", iso_desc2(ISO_DTYPE_I32, tokens, ISO_ROW_WORDS), b->io.tokens);
    b->io.seqs = input(b, "seqs", iso_desc2(ISO_DTYPE_I32, b->bucket.sequences, ISO_SEQ_WORDS),
                       b->io.sequences);
    b->io.logit_ids = input(b, "logit_ids", iso_desc1(ISO_DTYPE_I32, b->bucket.logit_rows),
                            b->io.logit_rows);
    b->io.angles[0] = input(b, "angles.plain", angles, b->io.tokens);
    if (b->config->kv_sources.count != 0)
        b->io.angles[1] = input(b, "angles.yarn", angles, b->io.tokens);
    for (uint32_t ratio = 1; ratio <= ISO_RATIO_MAX; ratio++)
        if (iso_state_uses_ratio(b->config, ratio))
            ratio_inputs(b, ratio);
    if (b->config->has_engram)
        engram_inputs(b);
}

/* ---- forward ---- */

/* One block: attention site, then MoE site; each site's pre is used one site later. */
static iso_stream block(iso_builder *b, iso_stream in)
{
    const iso_site attn = iso_block_mix(b, "attn", in.x);
    iso_value u = iso_block_collapse(b, "attn", "attn_norm.weight", in.x, in.pre);
    iso_value x = iso_block_expand(b, "attn", iso_block_attention(b, u), in.x, &attn);
    const iso_site ffn = iso_block_mix(b, "ffn", x);

    u = iso_block_collapse(b, "ffn", "ffn_norm.weight", x, attn.pre);
    x = iso_block_expand(b, "ffn", iso_block_moe(b, u), x, &ffn);
    return (iso_stream){x, ffn.pre};
}

static void forward(iso_builder *b)
{
    iso_stream stream = iso_block_embed(b);
    iso_value logits;

    for (b->layer = 0; b->layer < b->config->layer_count; b->layer++) {
        snprintf(b->prefix, sizeof b->prefix, "layers.%u.", b->layer);
        if (iso_config_engram_index(b->config, b->layer) >= 0)
            stream.x = iso_block_engram(b, stream.x);
        stream = block(b, stream);
    }
    b->prefix[0] = '\0';
    logits = iso_block_head(b, stream);
    if (b->status == ISO_OK)
        b->status = iso_graph_output(b->graph, "logits", logits, b->error);
}

static iso_status builder_init(iso_builder *b, const iso_model_parts *parts,
                               const iso_bucket *bucket, iso_error *error)
{
    *b = (iso_builder){.config = parts->config, .weights = parts->weights, .state = parts->state,
                       .bucket = *bucket, .error = error, .status = ISO_OK};
    b->state_value = iso_alloc_zero(ISO_STATE_KIND_COUNT * parts->config->layer_count,
                                    sizeof *b->state_value, "builder");
    b->status = b->state_value == NULL
                    ? iso_fail(error, ISO_NO_MEMORY, "out of memory building a graph")
                    : iso_graph_create(&b->graph, error);
    return b->status;
}

/* Seals and hands over, or destroys. */
static iso_status builder_end(iso_builder *b, iso_graph **graph)
{
    if (b->status == ISO_OK)
        b->status = iso_graph_seal(b->graph, b->error);
    if (b->status == ISO_OK)
        *graph = b->graph;
    else
        iso_graph_destroy(&b->graph);
    if (b->state_value != NULL)
        iso_release(b->state_value, ISO_STATE_KIND_COUNT * b->config->layer_count
                                        * sizeof *b->state_value);
    return b->status;
}

iso_status iso_build_forward(const iso_model_parts *parts, const iso_bucket *bucket,
                             iso_graph **graph, iso_forward_io *io, iso_error *error)
{
    iso_builder b;

    if (builder_init(&b, parts, bucket, error) == ISO_OK) {
        forward_inputs(&b);
        forward(&b);
    }
    ISO_TRY(builder_end(&b, graph));
    *io = b.io;
    return ISO_OK;
}

/* ---- prelude ---- */

static int32_t host_output(iso_builder *b, const char *name, iso_value value)
{
    if (b->status == ISO_OK)
        b->status = iso_graph_output(b->graph, name, value, b->error);
    return b->status == ISO_OK ? (int32_t)iso_graph_output_count(b->graph) - 1 : -1;
}

static int32_t angles(iso_builder *b, const char *name, const char *table, iso_value positions)
{
    return host_output(b, name, iso_emit(b, name, ISO_OP_ID_rope_angles, NULL,
                                         ISO_IN(positions, iso_weight(b, table))));
}

static void prelude_groups(iso_builder *b, iso_prelude_io *io, uint32_t ratio)
{
    const uint32_t groups = iso_bucket_groups(&b->bucket, ratio);
    char name[32];

    snprintf(name, sizeof name, "groups.%u", ratio);
    io->groups[ratio] = scalar(b, name, groups);
    snprintf(name, sizeof name, "group_positions.%u", ratio);
    io->group_positions[ratio] = input(b, name, iso_desc1(ISO_DTYPE_I32, groups),
                                       io->groups[ratio]);
    snprintf(name, sizeof name, "group_angles.%u", ratio);
    io->out_group_angles[ratio] = angles(b, name, "rope.yarn", io->group_positions[ratio]);
}

static void prelude_engram(iso_builder *b, iso_prelude_io *io)
{
    const iso_engram_params params = {b->config->engram_heads, (int32_t)b->config->engram_pad};

    io->history = input(b, "history",
                        iso_desc2(ISO_DTYPE_I32, b->bucket.tokens, b->config->engram_ngram),
                        io->tokens);
    for (uint32_t i = 0; i < b->config->engram_layers.count; i++) {
        char name[32];
        iso_value rows;

        snprintf(b->prefix, sizeof b->prefix, "layers.%d.", b->config->engram_layers.at[i]);
        rows = iso_emit(b, "engram.hash", ISO_OP_ID_engram_hash, &params,
                        ISO_IN(io->history, iso_weight(b, "engram.multiplier"),
                               iso_weight(b, "engram.prime"), iso_weight(b, "engram.offset")));
        b->prefix[0] = '\0';
        snprintf(name, sizeof name, "engram.%u", i);
        io->out_engram[i] = host_output(b, name, rows);
    }
}

iso_status iso_build_prelude(const iso_model_parts *parts, const iso_bucket *bucket,
                             iso_graph **graph, iso_prelude_io *io, iso_error *error)
{
    iso_builder b;
    iso_prelude_io made = {.out_angles = {-1, -1}};

    if (builder_init(&b, parts, bucket, error) == ISO_OK) {
        made.tokens = scalar(&b, "tokens", bucket->tokens);
        made.positions = input(&b, "positions", iso_desc1(ISO_DTYPE_I32, bucket->tokens),
                               made.tokens);
        made.out_angles[0] = angles(&b, "angles.plain", "rope.plain", made.positions);
        if (parts->config->kv_sources.count != 0)
            made.out_angles[1] = angles(&b, "angles.yarn", "rope.yarn", made.positions);
        for (uint32_t ratio = 2; ratio <= ISO_RATIO_MAX; ratio++)
            if (iso_state_uses_ratio(parts->config, ratio))
                prelude_groups(&b, &made, ratio);
        if (parts->config->has_engram)
            prelude_engram(&b, &made);
    }
    ISO_TRY(builder_end(&b, graph));
    *io = made;
    return ISO_OK;
}

/* ---- commit ---- */

static void commit_ring(iso_builder *b, const iso_commit_io *io, iso_state_kind ring,
                        iso_state_kind pending)
{
    char name[64];

    if (!iso_state_has(b->config, ring, b->layer))
        return;
    snprintf(name, sizeof name, "layers.%u.commit.%s", b->layer, iso_state_kind_name(ring));
    iso_emit(b, name, ISO_OP_ID_state_commit, NULL,
             ISO_IN(iso_state_get(b, ring, b->layer), iso_state_get(b, pending, b->layer),
                    io->seqs, io->commit));
}

iso_status iso_build_commit(const iso_model_parts *parts, uint32_t sequences, iso_graph **graph,
                            iso_commit_io *io, iso_error *error)
{
    const iso_bucket bucket = {.tokens = parts->state->step_rows, .sequences = sequences,
                               .logit_rows = 1, .context = parts->state->context};
    iso_builder b;
    iso_commit_io made = {0};

    if (builder_init(&b, parts, &bucket, error) == ISO_OK) {
        made.sequences = scalar(&b, "sequences", sequences);
        made.seqs = input(&b, "seqs", iso_desc2(ISO_DTYPE_I32, sequences, ISO_SEQ_WORDS),
                          made.sequences);
        made.commit = input(&b, "commit", iso_desc1(ISO_DTYPE_I32, sequences), made.sequences);
        for (b.layer = 0; b.layer < parts->config->layer_count; b.layer++) {
            commit_ring(&b, &made, ISO_STATE_ring_code, ISO_STATE_pend_code);
            commit_ring(&b, &made, ISO_STATE_ring_scale, ISO_STATE_pend_scale);
            commit_ring(&b, &made, ISO_STATE_group_v, ISO_STATE_pend_v);
            commit_ring(&b, &made, ISO_STATE_group_g, ISO_STATE_pend_g);
        }
    }
    ISO_TRY(builder_end(&b, graph));
    *io = made;
    return ISO_OK;
}
