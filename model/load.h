/* load: the weight directory of an engine: every weight the graphs use, by name, with its
 * descriptor and its id in the residency manager; and the loading of their bytes from a store.
 *
 * Trunk weights keep their tensor names. The routed experts of a layer become arenas
 * "layers.N.ffn.experts.w1.weight" e2m1 [E,F,D] and ".scale" ue8m0, with a slot table
 * "layers.N.ffn.experts.slot" i32 [E]. Derived constants (rotary frequencies, Engram multipliers,
 * primes, offsets) are weights too. Values are checked and cleaned on the way in (numerics 2.8).
 * Weights of draft stages and of the vision tower are not loaded: nothing uses them yet. */
#ifndef ISO_MODEL_LOAD_H
#define ISO_MODEL_LOAD_H

#include "core/residency.h"
#include "model/weights.h"

typedef struct iso_weight_directory iso_weight_directory;

typedef struct iso_load_progress {
    iso_progress_fn *report;             /* NULL: none */
    void *context;
} iso_load_progress;

/* Declares, checks and fills every weight. ISO_CANCELLED when progress says stop. */
iso_status iso_weights_load(const iso_config *config, const iso_store *store,
                            iso_residency *residency, const iso_load_progress *progress,
                            iso_weight_directory **directory, iso_error *error);
void iso_weight_directory_destroy(iso_weight_directory **directory);

/* False if no such weight was loaded. */
bool iso_weight_find(const iso_weight_directory *directory, const char *name, uint32_t *id,
                     iso_tensor_desc *desc);
/* Weights of a directory: ids are 0 .. count - 1. The layout is what descriptors say from now on;
 * the bytes are the residency manager's business. */
uint32_t iso_weight_count(const iso_weight_directory *directory);
const iso_tensor_desc *iso_weight_desc(const iso_weight_directory *directory, uint32_t id);
void iso_weight_set_layout(iso_weight_directory *directory, uint32_t id, iso_layout layout);
/* Ids of the weights a lease covers: all but the ROWS tables. */
const uint32_t *iso_weight_leased(const iso_weight_directory *directory, uint32_t *count);
uint64_t iso_weights_cleaned(const iso_weight_directory *directory);

#endif
