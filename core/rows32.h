/* rows32: the index arithmetic of layout ROWS32, for weights of matrix products: what 32 output
 * features need next lies side by side.
 *
 * A tensor [.., N, K] of rank 2 or more is a list of matrices [N, K], each packed alone. A matrix
 * is cut into tiles of 32 rows, a row's bytes into units; unit u of row r of a tile begins at byte
 * (u * 32 + r) * unit of the tile. A unit is 1 byte of e4m3, ue8m0 and other bytes, and 4 bytes of
 * all the rest: one f32, two bf16, eight e2m1 (even element in the low nibble). Rows that the last
 * tile lacks and bytes that the last unit lacks are zero.
 *
 * Packing has an inverse, and every tile can be packed alone. */
#ifndef ISO_CORE_ROWS32_H
#define ISO_CORE_ROWS32_H

#include "core/tensor.h"

enum { ISO_ROWS32 = 32 };

uint32_t iso_rows32_unit(iso_dtype dtype);                       /* bytes */
/* Of a checked descriptor in either layout. */
uint64_t iso_rows32_tiles(const iso_tensor_desc *desc);          /* of all its matrices */
uint64_t iso_rows32_tile_bytes(const iso_tensor_desc *desc);

/* Tiles [begin, end) of a tensor; plain and packed are the whole tensor's bytes, and overlap
 * nowhere. `desc` may name either layout. */
void iso_rows32_pack(const iso_tensor_desc *desc, uint64_t begin, uint64_t end, const void *plain,
                     void *packed);
void iso_rows32_unpack(const iso_tensor_desc *desc, uint64_t begin, uint64_t end,
                       const void *packed, void *plain);

#endif
