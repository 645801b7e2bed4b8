/* positions: all of a step that depends on positions and ids only: row and sequence tables, page
 * tables, emitted groups, rotary angles, Engram history and rows. Writes argument blocks; the
 * formats are those of ggml-style-ops/rows.h. */
#include "model/engine.h"

#include "ggml-style-ops/rows.h"
#include "model/engram.h"
#include "model/rope_freq.h"

#include <string.h>

typedef struct writer {
    iso_engine *engine;
    iso_bucket_plan *plan;
    const iso_batch_item *items;
    uint32_t item_count;
    uint32_t rows;
    iso_error *error;
} writer;

static void write_rows(writer *w)
{
    const iso_forward_io *io = &w->plan->io;
    int32_t *ids = iso_ready_input(&w->plan->forward, io->ids);
    int32_t *rows = iso_ready_input(&w->plan->forward, io->rows);
    int32_t *seqs = iso_ready_input(&w->plan->forward, io->seqs);
    int32_t *positions = iso_ready_input(&w->plan->prelude, w->plan->prelude_io.positions);

    for (uint32_t s = 0; s < w->item_count; s++) {
        const iso_batch_item *item = &w->items[s];
        int32_t *seq = seqs + s * ISO_SEQ_WORDS;

        seq[ISO_SEQ_SLOT] = item->session->slot;
        seq[ISO_SEQ_BASE] = (int32_t)item->session->length;
        seq[ISO_SEQ_FIRST] = (int32_t)w->rows;
        seq[ISO_SEQ_COUNT] = (int32_t)item->count;
        for (uint32_t i = 0; i < item->count; i++, w->rows++) {
            const int32_t position = (int32_t)(item->session->length + i);

            ids[w->rows] = item->ids[i];
            positions[w->rows] = position;
            rows[w->rows * ISO_ROW_WORDS + ISO_ROW_SEQ] = (int32_t)s;
            rows[w->rows * ISO_ROW_WORDS + ISO_ROW_POSITION] = position;
        }
    }
    *iso_ready_scalar(&w->plan->forward, io->tokens) = w->rows;
    *iso_ready_scalar(&w->plan->forward, io->sequences) = w->item_count;
    *iso_ready_scalar(&w->plan->prelude, w->plan->prelude_io.tokens) = w->rows;
}

static void write_logit_rows(writer *w)
{
    int32_t *logit_ids = iso_ready_input(&w->plan->forward, w->plan->io.logit_ids);
    uint32_t count = 0, end = 0;

    for (uint32_t s = 0; s < w->item_count; s++) {
        end += w->items[s].count;
        for (uint32_t i = w->items[s].logit_rows; i > 0; i--)
            logit_ids[count++] = (int32_t)(end - i);
    }
    *iso_ready_scalar(&w->plan->forward, w->plan->io.logit_rows) = count;
}

static void write_pages(writer *w, uint32_t ratio)
{
    const uint32_t per_seq = iso_state_pages_per_seq(iso_state_spec_of(w->engine->state), ratio);
    int32_t *pages = iso_ready_input(&w->plan->forward, w->plan->io.pages[ratio]);

    for (uint32_t s = 0; s < w->item_count; s++)
        memcpy(pages + (size_t)s * per_seq, w->items[s].session->pages[ratio],
               per_seq * sizeof *pages);
}

/* Entries whose last position is among this step's rows. */
static void write_groups(writer *w, uint32_t ratio)
{
    int32_t *list = iso_ready_input(&w->plan->forward, w->plan->io.group_list[ratio]);
    int32_t *first =
        iso_ready_input(&w->plan->prelude, w->plan->prelude_io.group_positions[ratio]);
    uint32_t count = 0;

    for (uint32_t s = 0; s < w->item_count; s++) {
        const uint32_t base = w->items[s].session->length, end = base + w->items[s].count;

        for (uint32_t entry = base / ratio; (entry + 1) * ratio <= end; entry++, count++) {
            list[count * ISO_GROUP_WORDS + ISO_GROUP_SEQ] = (int32_t)s;
            list[count * ISO_GROUP_WORDS + ISO_GROUP_ENTRY] = (int32_t)entry;
            first[count] = (int32_t)(entry * ratio);
        }
    }
    *iso_ready_scalar(&w->plan->forward, w->plan->io.groups[ratio]) = count;
    *iso_ready_scalar(&w->plan->prelude, w->plan->prelude_io.groups[ratio]) = count;
}

/* Compressed ids of each row and its ngram - 1 predecessors; -1 before the start. The latch over
 * dead positions is the operator's. */
static void write_history(writer *w)
{
    const uint32_t ngram = w->engine->config->engram_ngram;
    int32_t *history = iso_ready_input(&w->plan->prelude, w->plan->prelude_io.history);

    for (uint32_t s = 0; s < w->item_count; s++) {
        const iso_session *session = w->items[s].session;

        for (uint32_t i = 0; i < w->items[s].count; i++, history += ngram)
            for (uint32_t back = 0; back < ngram; back++) {
                const int64_t at = (int64_t)session->length + i - back;
                int32_t id = -1;

                if (at >= session->length)
                    id = w->items[s].ids[at - session->length];
                else if (at >= 0)
                    id = session->ids[at];
                history[back] = id < 0 ? -1 : w->engine->token_map[id];
            }
    }
}

static void copy_angles(writer *w, int32_t output, iso_value input, uint32_t count)
{
    if (output >= 0)
        memcpy(iso_ready_input(&w->plan->forward, input),
               iso_plan_output(w->plan->prelude.plan, (uint32_t)output),
               (size_t)count * ISO_ROPE_PAIRS * 2 * sizeof(float));
}

static iso_status fetch(writer *w, uint32_t index, const char *part, const uint32_t *rows,
                        iso_value input)
{
    const uint32_t columns = iso_engram_columns(w->engine->config);
    char name[ISO_WEIGHT_NAME_MAX];
    iso_tensor_desc desc;
    uint32_t id;

    snprintf(name, sizeof name, "layers.%d.engram.embed.%s",
             w->engine->config->engram_layers.at[index], part);
    if (!iso_weight_find(w->engine->weights, name, &id, &desc))
        ISO_ASSERT(false && "engram tables are loaded");
    return iso_residency_rows(w->engine->residency, id, rows, w->rows * columns,
                              iso_ready_input(&w->plan->forward, input), w->error);
}

static iso_status fetch_engram(writer *w)
{
    for (uint32_t i = 0; i < w->engine->config->engram_layers.count; i++) {
        const uint32_t *rows = iso_plan_output(w->plan->prelude.plan,
                                               (uint32_t)w->plan->prelude_io.out_engram[i]);

        ISO_TRY(fetch(w, i, "weight", rows, w->plan->io.engram_codes[i]));
        ISO_TRY(fetch(w, i, "scale", rows, w->plan->io.engram_scales[i]));
    }
    return ISO_OK;
}

iso_status iso_positions_write(iso_engine *engine, iso_bucket_plan *plan,
                               const iso_batch_item *items, uint32_t item_count,
                               iso_error *error)
{
    writer w = {.engine = engine, .plan = plan, .items = items, .item_count = item_count,
                .error = error};

    write_rows(&w);
    write_logit_rows(&w);
    for (uint32_t ratio = 1; ratio <= ISO_RATIO_MAX; ratio++) {
        if (!iso_state_uses_ratio(engine->config, ratio))
            continue;
        write_pages(&w, ratio);
        if (ratio > 1)
            write_groups(&w, ratio);
    }
    if (engine->config->has_engram)
        write_history(&w);
    ISO_TRY(iso_engine_run(engine, &plan->prelude, false, error));
    copy_angles(&w, plan->prelude_io.out_angles[0], plan->io.angles[0], w.rows);
    copy_angles(&w, plan->prelude_io.out_angles[1], plan->io.angles[1], w.rows);
    for (uint32_t ratio = 2; ratio <= ISO_RATIO_MAX; ratio++)
        if (iso_state_uses_ratio(engine->config, ratio))
            copy_angles(&w, plan->prelude_io.out_group_angles[ratio],
                        plan->io.group_angles[ratio],
                        *iso_ready_scalar(&plan->forward, plan->io.groups[ratio]));
    return engine->config->has_engram ? fetch_engram(&w) : ISO_OK;
}
