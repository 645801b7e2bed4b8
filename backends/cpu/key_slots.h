/* key_slots: where the keys of one token of `attend` lie: blocks of 64 slots, window blocks first,
 * then the selected entries by rank (numerics 12.1). The checks of the index tables are those of
 * the contract in ggml-style-ops/attend.c. */
#ifndef ISO_BACKENDS_CPU_KEY_SLOTS_H
#define ISO_BACKENDS_CPU_KEY_SLOTS_H

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/rows.h"

typedef struct iso_key_slots {
    const iso_attend_args *a;
    void *const *at;                     /* operands of the call */
    iso_page_table table;
    const int32_t *ids, *seq;            /* selected entries of the token; row of its sequence */
    int64_t lo, hi;                      /* visible raw positions */
    uint32_t window_blocks, blocks, picked;
    int32_t seq_index;
} iso_key_slots;

/* The slots of a block that hold a key: [begin, end), never empty. */
typedef struct iso_key_span {
    uint32_t begin, end;
} iso_key_span;

/* A packed key: e4m3 with ue8m0 per 32 (raw) or e2m1 with e4m3 per 16 (picked). */
typedef struct iso_key_codes {
    const uint8_t *code, *scale;
    bool is_raw;
} iso_key_codes;

/* The keys of a live token; false if the contract demands ISO_FLAG_INDEX and zero rows. */
bool iso_key_slots_find(iso_key_slots *k, const iso_attend_args *args, void *const *at,
                        uint64_t token);

/* block < k->blocks. */
iso_key_span iso_key_slots_span(const iso_key_slots *k, uint32_t block);

/* slot inside the block's span. */
iso_key_codes iso_key_slots_codes(const iso_key_slots *k, uint32_t block, uint32_t slot);

#endif
