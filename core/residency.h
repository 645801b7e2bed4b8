/* residency: the only room that holds a weight's address. Everything else names a weight by id and
 * reaches it through a lease, so that streaming can move in without moving walls. This version
 * keeps every declared weight resident.
 *
 * Groups: TRUNK weights are leased for the engine's life. EXPERT arenas are slots behind a slot
 * table. ROWS tables (Engram) are never resident as a whole: rows are fetched by number. */
#ifndef ISO_CORE_RESIDENCY_H
#define ISO_CORE_RESIDENCY_H

#include "core/backend.h"

typedef struct iso_residency iso_residency;

typedef enum iso_weight_group { ISO_GROUP_TRUNK, ISO_GROUP_EXPERT, ISO_GROUP_ROWS }
    iso_weight_group;

typedef struct iso_weight_decl {
    const char *name;                    /* copied */
    iso_weight_group group;
    iso_tensor_desc desc;
} iso_weight_decl;

typedef struct iso_residency_stats {
    uint64_t resident_bytes;             /* copied to device memory */
    uint64_t mapped_bytes;               /* used in place */
    uint64_t rows_read, row_bytes_read;
    uint64_t budget_bytes;
} iso_residency_stats;

/* budget_bytes: upper bound of resident bytes; 0: none. */
iso_status iso_residency_create(const iso_backend *backend, iso_device *device,
                                uint64_t budget_bytes, iso_residency **residency,
                                iso_error *error);
void iso_residency_destroy(iso_residency **residency);   /* no lease may be open */

iso_status iso_residency_declare(iso_residency *residency, const iso_weight_decl *decl,
                                 uint32_t *id, iso_error *error);

/* Fills a weight. `import` uses host memory in place (it must outlive the residency): for ROWS
 * always possible; for others ISO_UNSUPPORTED when alignment or the device forbids it, and the
 * caller writes instead. `write` copies bytes at an offset; the memory is taken at the first write
 * (ISO_OVER_BUDGET with the bytes needed, ISO_NO_MEMORY). */
iso_status iso_residency_import(iso_residency *residency, uint32_t id, const void *data,
                                iso_error *error);
iso_status iso_residency_write(iso_residency *residency, uint32_t id, uint64_t offset,
                               const void *data, uint64_t bytes, iso_error *error);

typedef struct iso_lease {
    uint32_t open;                       /* 0: closed */
} iso_lease;

/* Brings a filled weight (no ROWS) into a layout, and frees its old memory or leaves its mapping:
 * both are there while it works. No lease may be open. thread_count >= 1. ISO_OVER_BUDGET,
 * ISO_NO_MEMORY, ISO_BAD_LAYOUT: the weight is then what it was. */
iso_status iso_residency_arrange(iso_residency *residency, uint32_t id, iso_layout layout,
                                 uint32_t thread_count, iso_error *error);

/* Leases weights; addresses are valid until release. ISO_BAD_TENSOR if one was never filled. */
iso_status iso_residency_acquire(iso_residency *residency, const uint32_t *ids, uint32_t count,
                                 iso_lease *lease, iso_error *error);
iso_slice iso_residency_slice(const iso_residency *residency, uint32_t id);
void iso_residency_release(iso_residency *residency, iso_lease *lease);

/* Copies rows of a ROWS weight (desc rank 2: [rows, row elements]) to dst, in order. A row outside
 * the table is ISO_BAD_INDEX. */
iso_status iso_residency_rows(iso_residency *residency, uint32_t id, const uint32_t *rows,
                              uint32_t count, void *dst, iso_error *error);

void iso_residency_get_stats(const iso_residency *residency, iso_residency_stats *stats);

#endif
