/* args: what a kernel receives, one POD per operator (<= 96 bytes, u32, i32 and f32 only), the same
 * bytes on every backend. Each begins with the live rows of the step (core/op.h). */
#ifndef ISO_OPS_ARGS_H
#define ISO_OPS_ARGS_H

#include "core/op.h"

typedef struct iso_embed_rows_args {
    iso_live rows;
    uint32_t dim, table_rows;
} iso_embed_rows_args;
typedef struct iso_stream_fill_args {
    iso_live rows;
    uint32_t dim, streams;
} iso_stream_fill_args;
typedef struct iso_fill_row_args {
    iso_live rows;
    uint32_t count;
    float value[8];
} iso_fill_row_args;
typedef struct iso_quant_fp8_args {
    iso_live rows;
    uint32_t per_row, dim, group;
} iso_quant_fp8_args;
typedef struct iso_quant_mxfp4_args {
    iso_live rows;
    uint32_t per_row, dim;
} iso_quant_mxfp4_args;
typedef struct iso_quant_nvfp4_args {
    iso_live rows;
    uint32_t per_row, dim;
} iso_quant_nvfp4_args;
typedef struct iso_dequant_args {
    iso_live rows;
    uint32_t per_row, dim, group;    /* group: 16 (e4m3 scale) or dim / scales (ue8m0) */
    uint32_t is_e2m1, is_e4m3_scale;
} iso_dequant_args;
typedef struct iso_rms_norm_args {
    iso_live rows;
    uint32_t per_row, dim;
    float eps;
} iso_rms_norm_args;
typedef struct iso_row_rms_args { iso_live rows; uint32_t dim; float eps; } iso_row_rms_args;
typedef struct iso_rope_args {
    iso_live rows;
    uint32_t heads, dim, pairs, inverse;
} iso_rope_args;
typedef struct iso_rope_angles_args { iso_live rows; uint32_t pairs; } iso_rope_angles_args;
typedef struct iso_matmul_fp8_args {
    iso_live rows;
    uint32_t k, n;
    uint32_t group;                  /* k per activation scale */
    uint32_t tile;                   /* weight tile, square */
} iso_matmul_fp8_args;
typedef struct iso_matmul_bf16_args {
    iso_live rows;
    uint32_t k, n, out_f32, has_bias;
} iso_matmul_bf16_args;
typedef struct iso_matmul_f32_args { iso_live rows; uint32_t k, n; } iso_matmul_f32_args;
typedef struct iso_matmul_groups_args {
    iso_live rows;
    uint32_t groups, k;
    uint32_t n;                      /* output features per group */
    uint32_t tile;                   /* weight tile, square */
} iso_matmul_groups_args;
typedef struct iso_matmul_experts_args {
    iso_live rows;                   /* tokens */
    uint32_t picks;                  /* experts per token */
    uint32_t x_per_token;            /* rows of x per token: 1 or picks */
    uint32_t k, n;
    uint32_t group;                  /* k per activation scale */
    uint32_t experts, slots;
} iso_matmul_experts_args;
typedef struct iso_hc_split_args {
    iso_live rows;
    uint32_t iterations;
    float eps;
} iso_hc_split_args;
typedef struct iso_hc_collapse_args { iso_live rows; uint32_t dim; } iso_hc_collapse_args;
typedef struct iso_hc_expand_args { iso_live rows; uint32_t dim; } iso_hc_expand_args;
typedef struct iso_compress_pool_args {
    iso_live rows;                   /* emitted groups */
    uint32_t dim, ratio, tokens, slots, seqs;
} iso_compress_pool_args;
typedef struct iso_index_score_args {
    iso_live rows;
    uint32_t heads, dim, entries, pool_rows, seqs, pages, page_rows, ratio;
    float scale;
} iso_index_score_args;
typedef struct iso_candidate_blocks_args {
    iso_live rows;
    uint32_t entries, ratio, block, count;
} iso_candidate_blocks_args;
typedef struct iso_topk_rows_args {
    iso_live rows;
    uint32_t entries, ratio, count;
} iso_topk_rows_args;
typedef struct iso_attend_args {
    iso_live rows;
    uint32_t heads, dim, window, slots, tokens, seqs;
    uint32_t pool_rows, pages, page_rows, picks; /* 0 without compressed rows */
    uint32_t has_sink;
    float scale;
} iso_attend_args;
typedef struct iso_route_args {
    iso_live rows;
    uint32_t experts, count;
    float tiny, scale, temperature;
} iso_route_args;
typedef struct iso_swiglu_args {
    iso_live rows;
    uint32_t per_row, dim;
    float limit;
} iso_swiglu_args;
typedef struct iso_moe_sum_args { iso_live rows; uint32_t picks, dim; } iso_moe_sum_args;
typedef struct iso_engram_hash_args {
    iso_live rows;
    uint32_t orders, heads;
    int32_t pad;
} iso_engram_hash_args;
typedef struct iso_engram_gate_args {
    iso_live rows;
    uint32_t streams, dim;
    float eps;
} iso_engram_gate_args;
typedef struct iso_state_append_args {
    iso_live rows;                   /* rows to append */
    uint32_t row_bytes, pool_rows, seqs, pages, page_rows;
} iso_state_append_args;
typedef struct iso_state_keep_args { iso_live rows; uint32_t row_bytes; } iso_state_keep_args;
typedef struct iso_state_commit_args {
    iso_live rows;                   /* sequences */
    uint32_t row_bytes, slots, window, tokens;
} iso_state_commit_args;
typedef struct iso_argmax_args { iso_live rows; uint32_t dim; } iso_argmax_args;
typedef struct iso_sample_args { iso_live rows; uint32_t dim; } iso_sample_args;

#define OP(name, inputs, outputs, params, flags)                                                  \
    ISO_STATIC_ASSERT(sizeof(iso_##name##_args) <= ISO_OP_ARGS_MAX, #name " args are too large");
#include "ggml-style-ops/ops.def"
#undef OP

#endif
