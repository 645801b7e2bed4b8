/* engine: a model on a device: weights, state memory, plans by bucket, and the sessions' shared
 * buffers. Internal view of iso_engine, iso_session and iso_mark. */
#ifndef ISO_MODEL_ENGINE_H
#define ISO_MODEL_ENGINE_H

#include "core/residency.h"
#include "core/run.h"
#include "model/build.h"
#include "model/model.h"

/* A graph with its plan, ready to run. */
typedef struct iso_ready {
    iso_graph *graph;
    iso_plan *plan;
    iso_buffer *workspace;               /* its own, when the engine's is too small; else NULL */
} iso_ready;

/* Plans of one bucket: forward and the prelude that feeds it. */
typedef struct iso_bucket_plan {
    iso_bucket bucket;
    iso_ready forward, prelude;
    iso_forward_io io;
    iso_prelude_io prelude_io;
    struct iso_bucket_plan *next;
} iso_bucket_plan;

struct iso_engine {
    const iso_model *model;
    const iso_config *config;
    iso_engine_options options;
    const iso_backend *backend;
    iso_device *device;
    iso_residency *residency;
    iso_weight_directory *weights;
    iso_lease lease;
    iso_state *state;
    bool is_traced;                      /* forward plans are made step by step */
    iso_tap_fn *tap;                     /* tests: lends every output of forward steps */
    void *tap_context;
    int32_t *token_map;                  /* [vocab] or NULL */
    iso_buffer *workspace;
    uint64_t workspace_bytes;
    iso_bucket_plan *plans;
    iso_ready commit;
    iso_commit_io commit_io;
    iso_ready sampler;
    iso_value sampler_logits, sampler_words;
    iso_session *sessions;               /* alive, linked */
    uint32_t session_count;
};

/* Rows of a session in the step that ran last, waiting for commit. */
typedef struct iso_pending {
    uint32_t count, first;               /* rows, and the first of them in the step */
    const float *logits;                 /* lent by the plan, [logit_rows, vocab] */
    uint32_t logit_rows;
    uint32_t end;                        /* position after the last row of the step */
} iso_pending;

struct iso_session {
    iso_engine *engine;
    int32_t slot;
    uint32_t length;                     /* committed tokens */
    int32_t *ids;                        /* [context]: committed, then pending ones */
    int32_t *pages[ISO_RATIO_MAX + 1];   /* [pages per sequence], -1: none */
    uint32_t page_count[ISO_RATIO_MAX + 1];
    iso_pending pending;
    iso_mark *marks;                     /* linked; a rollback ends those beyond it */
    iso_session *next;
};

/* Takes pages so that `tokens` tokens have room. */
iso_status iso_session_reserve(iso_session *session, uint32_t tokens, iso_error *error);

/* layouts.c: brings loaded weights into the layouts that options.layout asks for; before weights
 * are leased and plans are made. */
iso_status iso_engine_arrange(iso_engine *engine, iso_error *error);

/* engine_plan.c */
iso_status iso_engine_plan(iso_engine *engine, const iso_bucket *bucket, iso_bucket_plan **plan,
                           iso_error *error);
void iso_engine_bucket(const iso_engine *engine, uint32_t tokens, uint32_t context,
                       uint32_t logit_rows, iso_bucket *bucket);
iso_model_parts iso_engine_parts(const iso_engine *engine);
iso_status iso_engine_prepare(iso_engine *engine, iso_error *error);
iso_status iso_engine_make_sampler(iso_engine *engine, iso_error *error);
void iso_ready_destroy(const iso_engine *engine, iso_ready *ready);
void iso_engine_drop_plans(iso_engine *engine);
iso_status iso_engine_run(iso_engine *engine, iso_ready *ready, bool traced, iso_error *error);
/* Host addresses in the argument block of a plan. */
uint32_t *iso_ready_scalar(const iso_ready *ready, uint32_t scalar);
void *iso_ready_input(const iso_ready *ready, iso_value input);

/* positions.c: writes the argument blocks of prelude and forward for a step. */
iso_status iso_positions_write(iso_engine *engine, iso_bucket_plan *plan,
                               const iso_batch_item *items, uint32_t item_count,
                               iso_error *error);

#endif
