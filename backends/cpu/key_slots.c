#include "backends/cpu/key_slots.h"

#include "core/check.h"
#include "ggml-style-ops/lane/lane.h"

enum {
    Q, RING_CODE, RING_SCALE, PEND_CODE, PEND_SCALE, KV_CODE, KV_SCALE, PAGES, IDS, ROWS, SEQS
};
enum { KEYS = LANE_KEY_BLOCK, RAW_GROUP = 32, KV_GROUP = 16 };

static bool find_raw(iso_key_slots *k, uint64_t token)
{
    const iso_attend_args *a = k->a;
    const int32_t *row = (const int32_t *)k->at[ROWS] + token * ISO_ROW_WORDS;
    const int64_t window = a->window;
    int64_t base, first;

    k->seq_index = row[ISO_ROW_SEQ];
    k->hi = row[ISO_ROW_POSITION];
    if (k->seq_index < 0 || (uint32_t)k->seq_index >= a->seqs || k->hi < 0)
        return false;
    k->seq = (const int32_t *)k->at[SEQS] + (uint64_t)(uint32_t)k->seq_index * ISO_SEQ_WORDS;
    k->lo = k->hi >= window ? k->hi - window + 1 : 0;
    k->window_blocks = (uint32_t)(k->hi / KEYS - k->lo / KEYS + 1);
    base = k->seq[ISO_SEQ_BASE];
    first = k->seq[ISO_SEQ_FIRST];
    if (k->hi >= base && (base < 0 || first < 0 || k->hi - base >= k->seq[ISO_SEQ_COUNT]
                          || first + k->hi - base >= a->rows.count))
        return false;
    return k->lo >= base || (k->seq[ISO_SEQ_SLOT] >= 0
                             && (uint32_t)k->seq[ISO_SEQ_SLOT] < a->slots
                             && base - k->lo <= window);
}

static bool find_picked(iso_key_slots *k, uint64_t token)
{
    const iso_attend_args *a = k->a;
    uint32_t index;

    k->picked = 0;
    k->blocks = k->window_blocks;
    if (a->picks == 0)
        return true;
    k->table = (iso_page_table){k->at[PAGES], a->seqs, a->pages, a->page_rows, a->pool_rows};
    k->ids = (const int32_t *)k->at[IDS] + token * a->picks;
    for (; k->picked < a->picks && k->ids[k->picked] != -1; k->picked++)
        if (!iso_page_row(&k->table, k->seq_index, k->ids[k->picked], &index)
            || (k->picked != 0 && k->ids[k->picked] <= k->ids[k->picked - 1]))
            return false;
    k->blocks += (k->picked + KEYS - 1) / KEYS;
    return true;
}

bool iso_key_slots_find(iso_key_slots *k, const iso_attend_args *args, void *const *at,
                        uint64_t token)
{
    *k = (iso_key_slots){.a = args, .at = at};
    return find_raw(k, token) && find_picked(k, token);
}

iso_key_span iso_key_slots_span(const iso_key_slots *k, uint32_t block)
{
    iso_key_span span = {0, KEYS};

    if (block < k->window_blocks) {
        if (block == 0)
            span.begin = (uint32_t)(k->lo % KEYS);
        if (block == k->window_blocks - 1)
            span.end = (uint32_t)(k->hi % KEYS) + 1;
    } else if (k->picked - (block - k->window_blocks) * KEYS < KEYS) {
        span.end = k->picked % KEYS;
    }
    return span;
}

static iso_key_codes raw_codes(const iso_key_slots *k, int64_t position)
{
    const uint32_t dim = k->a->dim;
    const int64_t base = k->seq[ISO_SEQ_BASE];
    const bool own = position >= base;
    const uint64_t index =
        own ? (uint64_t)(k->seq[ISO_SEQ_FIRST] + position - base)
            : (uint64_t)(uint32_t)k->seq[ISO_SEQ_SLOT] * k->a->window
                  + (uint64_t)position % k->a->window;

    return (iso_key_codes){
        (const uint8_t *)k->at[own ? PEND_CODE : RING_CODE] + index * dim,
        (const uint8_t *)k->at[own ? PEND_SCALE : RING_SCALE] + index * (dim / RAW_GROUP), true};
}

iso_key_codes iso_key_slots_codes(const iso_key_slots *k, uint32_t block, uint32_t slot)
{
    const uint32_t dim = k->a->dim;
    uint32_t index = 0;

    if (block < k->window_blocks)
        return raw_codes(k, (k->lo / KEYS + block) * KEYS + slot);
    if (!iso_page_row(&k->table, k->seq_index,
                      k->ids[(block - k->window_blocks) * KEYS + slot], &index))
        ISO_ASSERT(false);               /* find_picked has checked every entry */
    return (iso_key_codes){
        (const uint8_t *)k->at[KV_CODE] + (uint64_t)index * (dim / 2),
        (const uint8_t *)k->at[KV_SCALE] + (uint64_t)index * (dim / KV_GROUP), false};
}
