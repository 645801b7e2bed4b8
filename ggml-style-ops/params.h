/* params: what a node stores and hashes, one POD per operator (<= 64 bytes), zero-padded. */
#ifndef ISO_OPS_PARAMS_H
#define ISO_OPS_PARAMS_H

#include <stdint.h>

typedef struct iso_none_params { uint32_t unused; } iso_none_params;
typedef struct iso_stream_params { uint32_t streams; } iso_stream_params;
typedef struct iso_fill_row_params { uint32_t count; float value[8]; } iso_fill_row_params;
typedef struct iso_quant_params { uint32_t group; } iso_quant_params;       /* 32, 64, 128 */
typedef struct iso_norm_params { float eps; } iso_norm_params;
typedef struct iso_rope_params { uint32_t inverse; } iso_rope_params;       /* 0, 1 */
typedef struct iso_tile_params {
    uint32_t tile;           /* 32 or 128, square */
    uint32_t heads;          /* 0: result [T,N]; else it is shaped [T,heads,N/heads] */
} iso_tile_params;
typedef struct iso_groups_params { uint32_t tile, groups; } iso_groups_params;
typedef struct iso_matmul_params { uint32_t out_f32; } iso_matmul_params;   /* else bf16 */
typedef struct iso_hc_params { uint32_t iterations; float eps; } iso_hc_params;
typedef struct iso_pool_params { uint32_t ratio; } iso_pool_params;         /* m >= 2 */
typedef struct iso_index_params {
    uint32_t ratio;          /* m: entry j is visible at position p when (j + 1) m <= p + 1 */
    uint32_t page_rows;      /* power of two */
    uint32_t entries;        /* R: capacity of the score row, a multiple of 32 */
    float scale;             /* (heads * head size)^-0.5 */
} iso_index_params;
typedef struct iso_candidate_params {
    uint32_t ratio;
    uint32_t block;          /* entries per block */
    uint32_t count;          /* blocks kept */
} iso_candidate_params;
typedef struct iso_topk_params { uint32_t ratio; uint32_t count; } iso_topk_params;
typedef struct iso_attend_params {
    uint32_t window;         /* visible raw positions, this one included */
    uint32_t page_rows;      /* power of two; unused without compressed rows */
    float scale;
} iso_attend_params;
typedef struct iso_route_params {
    uint32_t count;          /* experts per token */
    float tiny;              /* added to the sum of scores: 1e-20 (V4.1) */
    float scale;             /* route_scale */
    float temperature;       /* gate_temp; 1 means no division */
} iso_route_params;
typedef struct iso_swiglu_params { float limit; } iso_swiglu_params;
typedef struct iso_engram_params {
    uint32_t heads;          /* per n-gram order */
    int32_t pad;             /* compressed pad id */
} iso_engram_params;
typedef struct iso_page_params { uint32_t page_rows; } iso_page_params;

#endif
