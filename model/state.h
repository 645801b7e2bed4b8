/* state: the device memory of all sequences of an engine, from the rows of state.def, and who owns
 * which part of it: slots (rings, open groups) and pages (compressed entries).
 *
 * A sequence owns one slot and, per compress ratio, a growing list of pages. Nothing in here knows
 * tokens; model/session.c decides what is committed. */
#ifndef ISO_MODEL_STATE_H
#define ISO_MODEL_STATE_H

#include "core/backend.h"
#include "model/config.h"

typedef enum iso_state_kind {
#define STATE(kind, scope, growth, dtype, row) ISO_STATE_##kind,
#include "model/state.def"
#undef STATE
    ISO_STATE_KIND_COUNT
} iso_state_kind;

typedef enum iso_state_growth {
    ISO_GROWTH_RING, ISO_GROWTH_GROUP, ISO_GROWTH_PAGED, ISO_GROWTH_STEP
} iso_state_growth;

enum { ISO_RATIO_MAX = 2 };          /* compress ratios are 1 .. ISO_RATIO_MAX in this family */

typedef struct iso_state_spec {
    const iso_config *config;
    uint32_t slots;                  /* sequences alive at a time */
    uint32_t context;                /* tokens per sequence */
    uint32_t step_rows;              /* pending rows */
    uint32_t page_rows;              /* entries per page, a power of two */
    bool poison;                     /* new memory holds NaN patterns instead of zeros */
} iso_state_spec;

typedef struct iso_state iso_state;

iso_status iso_state_create(const iso_backend *backend, iso_device *device,
                            const iso_state_spec *spec, iso_state **state, iso_error *error);
void iso_state_destroy(iso_state **state);

const iso_state_spec *iso_state_spec_of(const iso_state *state);
uint64_t iso_state_bytes(const iso_state *state);

/* Id of a state tensor in graphs, whether a layer has it, and its descriptor; STEP tensors are
 * described with `step_rows` rows (at most the spec's). */
uint32_t iso_state_id(const iso_config *config, iso_state_kind kind, uint32_t layer);
bool iso_state_has(const iso_config *config, iso_state_kind kind, uint32_t layer);
iso_state_growth iso_state_growth_of(iso_state_kind kind);
const char *iso_state_kind_name(iso_state_kind kind);
iso_tensor_desc iso_state_desc(const iso_state_spec *spec, iso_state_kind kind, uint32_t layer,
                               uint32_t step_rows);
iso_slice iso_state_slice(const iso_state *state, uint32_t id);
/* Host address of a tensor's first byte. */
unsigned char *iso_state_host(const iso_state *state, iso_state_kind kind, uint32_t layer);
uint64_t iso_state_row_bytes(const iso_config *config, iso_state_kind kind);
/* Rows of a ring of this kind in a layer: the window, or m. */
uint32_t iso_state_ring_rows(const iso_config *config, iso_state_kind kind, uint32_t layer);

/* Entries of ratio m that a context of `tokens` has, and pages they need. */
uint32_t iso_state_pages_per_seq(const iso_state_spec *spec, uint32_t ratio);
uint32_t iso_state_pool_rows(const iso_state_spec *spec, uint32_t ratio);
bool iso_state_uses_ratio(const iso_config *config, uint32_t ratio);

/* Slots and pages; -1 when none is free. */
int32_t iso_state_slot_take(iso_state *state);
void iso_state_slot_give(iso_state *state, int32_t slot);
int32_t iso_state_page_take(iso_state *state, uint32_t ratio);
void iso_state_page_give(iso_state *state, uint32_t ratio, int32_t page);

#endif
