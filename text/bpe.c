#include "text/bpe.h"

#include "core/alloc.h"

#include <string.h>

#define RANK_NONE UINT32_MAX

/* Pieces up to here are merged by scanning for the minimum: quadratic, but on the stack and
 * without a heap. Nearly all pieces of real text are shorter. */
#define SHORT_MAX 48

typedef struct merge {
    uint64_t pair;           /* left << 32 | right */
    uint32_t rank;           /* RANK_NONE: free slot */
    int32_t result;
} merge;

struct iso_bpe {
    int32_t byte_ids[256];
    merge *merges;           /* open addressing over `pair` */
    size_t slot_count;       /* a power of two, at least twice the merges */
    size_t used, used_max;
    unsigned shift;          /* 64 - log2(slot_count) */
};

iso_status iso_bpe_create(const int32_t byte_ids[256], size_t merge_count, iso_bpe **bpe,
                          iso_error *error)
{
    iso_bpe *made = iso_alloc_zero(1, sizeof *made, "bpe");

    ISO_ASSERT(merge_count <= SIZE_MAX / 8);
    if (made == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "bpe: out of memory");
    memcpy(made->byte_ids, byte_ids, sizeof made->byte_ids);
    made->slot_count = 16;
    made->shift = 60;
    for (; made->slot_count < merge_count * 2; made->slot_count *= 2)
        made->shift--;
    made->used_max = merge_count;
    made->merges = iso_alloc_zero(made->slot_count, sizeof *made->merges, "bpe");
    if (made->merges == NULL) {
        iso_bpe_destroy(&made);
        return iso_fail(error, ISO_NO_MEMORY, "bpe: %zu merges: out of memory", merge_count);
    }
    for (size_t i = 0; i < made->slot_count; i++)
        made->merges[i].rank = RANK_NONE;
    *bpe = made;
    return ISO_OK;
}

void iso_bpe_destroy(iso_bpe **bpe)
{
    if (*bpe == NULL)
        return;
    iso_release((*bpe)->merges, (*bpe)->slot_count * sizeof *(*bpe)->merges);
    iso_release(*bpe, sizeof **bpe);
    *bpe = NULL;
}

/* The slot of a pair: the one that holds it, or the free one where it belongs. */
static merge *slot_of(const iso_bpe *bpe, int32_t left, int32_t right)
{
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)(pair * 0x9e3779b97f4a7c15u >> bpe->shift);

    while (bpe->merges[i].rank != RANK_NONE && bpe->merges[i].pair != pair)
        i = (i + 1) & (bpe->slot_count - 1);
    return &bpe->merges[i];
}

bool iso_bpe_add(iso_bpe *bpe, uint32_t rank, int32_t left, int32_t right, int32_t result)
{
    merge *slot = slot_of(bpe, left, right);

    if (slot->rank != RANK_NONE)
        return false;
    ISO_ASSERT(rank != RANK_NONE && bpe->used < bpe->used_max);
    slot->pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    slot->rank = rank;
    slot->result = result;
    bpe->used++;
    return true;
}

/* symbol[i] and symbol[i + 1] merge with candidate[i]; the last candidate has no rank. */
static void encode_short(const iso_bpe *bpe, const char *piece, size_t bytes, iso_ids *ids)
{
    int32_t symbol[SHORT_MAX];
    const merge *candidate[SHORT_MAX];
    uint32_t rank[SHORT_MAX];
    size_t count = bytes;

    for (size_t i = 0; i < bytes; i++)
        symbol[i] = bpe->byte_ids[(uint8_t)piece[i]];
    for (size_t i = 0; i + 1 < bytes; i++) {
        candidate[i] = slot_of(bpe, symbol[i], symbol[i + 1]);
        rank[i] = candidate[i]->rank;
    }
    while (count > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < count; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == RANK_NONE)
            break;
        symbol[best] = candidate[best]->result;
        count--;
        for (size_t i = best + 1; i < count; i++) {
            symbol[i] = symbol[i + 1];
            candidate[i - 1] = candidate[i];
            rank[i - 1] = rank[i];
        }
        /* The pairs left and right of the new symbol are new. */
        for (size_t i = best == 0 ? 0 : best - 1; i <= best && i + 1 < count; i++) {
            candidate[i] = slot_of(bpe, symbol[i], symbol[i + 1]);
            rank[i] = candidate[i]->rank;
        }
    }
    for (size_t i = 0; i < count; i++)
        iso_ids_add(ids, symbol[i]);
}

/* A long piece is a doubly linked list of symbols and a min-heap of rank << 32 | position: equal
 * ranks come out leftmost first. Entries are not removed when a neighbour merges away; they are
 * stale when the pair at their position has another rank by then. */
typedef struct node {
    int32_t id;
    int32_t previous, next;  /* -1: none. `previous` is DEAD in a node that was merged away */
} node;

#define DEAD INT32_MIN

typedef struct long_piece {
    node *nodes;
    uint64_t *heap;
    size_t heap_count;       /* <= 3 * bytes: one entry per byte, two per merge */
} long_piece;

static void heap_push(long_piece *piece, uint64_t entry)
{
    size_t i = piece->heap_count++;

    while (i > 0 && piece->heap[(i - 1) / 2] > entry) {
        piece->heap[i] = piece->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    piece->heap[i] = entry;
}

static uint64_t heap_pop(long_piece *piece)
{
    const uint64_t top = piece->heap[0];
    const uint64_t last = piece->heap[--piece->heap_count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= piece->heap_count)
            break;
        if (child + 1 < piece->heap_count && piece->heap[child + 1] < piece->heap[child])
            child++;
        if (piece->heap[child] >= last)
            break;
        piece->heap[i] = piece->heap[child];
        i = child;
    }
    piece->heap[i] = last;
    return top;
}

/* Queues the pair that starts at `position`, if it has a rank. */
static void offer(const iso_bpe *bpe, long_piece *piece, int32_t position)
{
    const node *left;
    uint32_t rank;

    if (position < 0 || piece->nodes[position].next < 0)
        return;
    left = &piece->nodes[position];
    rank = slot_of(bpe, left->id, piece->nodes[left->next].id)->rank;
    if (rank != RANK_NONE)
        heap_push(piece, (uint64_t)rank << 32 | (uint32_t)position);
}

static void merge_all(const iso_bpe *bpe, long_piece *piece)
{
    while (piece->heap_count > 0) {
        const uint64_t entry = heap_pop(piece);
        const int32_t position = (int32_t)(uint32_t)entry;
        node *left = &piece->nodes[position];
        node *right;
        const merge *found;

        if (left->previous == DEAD || left->next < 0)
            continue;
        right = &piece->nodes[left->next];
        found = slot_of(bpe, left->id, right->id);
        if (found->rank != (uint32_t)(entry >> 32))
            continue;
        left->id = found->result;
        left->next = right->next;
        right->previous = DEAD;
        if (left->next >= 0)
            piece->nodes[left->next].previous = position;
        offer(bpe, piece, left->previous);
        offer(bpe, piece, position);
    }
}

static iso_status encode_long(const iso_bpe *bpe, const char *text, size_t bytes, iso_ids *ids,
                              iso_error *error)
{
    long_piece piece = {
        .nodes = iso_alloc(bytes * sizeof *piece.nodes, 16, "bpe"),
        .heap = iso_alloc(3 * bytes * sizeof *piece.heap, 16, "bpe"),
    };
    iso_status status = ISO_OK;

    if (piece.nodes == NULL || piece.heap == NULL) {
        status = iso_fail(error, ISO_NO_MEMORY, "bpe: piece of %zu bytes: out of memory", bytes);
        goto done;
    }
    for (size_t i = 0; i < bytes; i++)
        piece.nodes[i] = (node){bpe->byte_ids[(uint8_t)text[i]], (int32_t)i - 1,
                                i + 1 < bytes ? (int32_t)i + 1 : -1};
    for (size_t i = 0; i + 1 < bytes; i++)
        offer(bpe, &piece, (int32_t)i);
    merge_all(bpe, &piece);
    for (int32_t i = 0; i >= 0; i = piece.nodes[i].next)
        iso_ids_add(ids, piece.nodes[i].id);
done:
    iso_release(piece.nodes, bytes * sizeof *piece.nodes);
    iso_release(piece.heap, 3 * bytes * sizeof *piece.heap);
    return status;
}

iso_status iso_bpe_encode(const iso_bpe *bpe, const char *piece, size_t bytes, iso_ids *ids,
                          iso_error *error)
{
    ISO_ASSERT(bytes <= ISO_BPE_PIECE_MAX);
    if (bytes > SHORT_MAX)
        return encode_long(bpe, piece, bytes, ids, error);
    encode_short(bpe, piece, bytes, ids);
    return ISO_OK;
}
