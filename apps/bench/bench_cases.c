/* bench_cases: real shapes of the released V4.1-Flash, by operator. */
#include "apps/bench/bench.h"
#include "ggml-style-ops/params.h"

#include <string.h>

static const bench_shape shapes[] = {
    {"fp4 expert w1, 1 row", ISO_OP_ID_matmul_experts, 1, 5120, 2304},
    {"fp4 expert w2, 1 row", ISO_OP_ID_matmul_experts, 1, 2304, 5120},
    {"fp8 wq_a, 1 row", ISO_OP_ID_matmul_fp8, 1, 5120, 1280},
    {"fp8 wq_b, 1 row", ISO_OP_ID_matmul_fp8, 1, 1280, 32768},
    {"fp8 wkv, 1 row", ISO_OP_ID_matmul_fp8, 1, 5120, 512},
    {"fp8 wo_b, 1 row", ISO_OP_ID_matmul_fp8, 1, 8192, 5120},
    {"fp8 wq_a, 6 rows", ISO_OP_ID_matmul_fp8, 6, 5120, 1280},
    {"fp8 shared w1, 1 row", ISO_OP_ID_matmul_fp8, 1, 5120, 2304},
    {"fp8 wo_a grouped, 1 row", ISO_OP_ID_matmul_groups, 1, 4096, 8192},
    {"bf16 head (16,160 rows), 1 row", ISO_OP_ID_matmul_bf16, 1, 5120, 16160},
    {"bf16 router, 1 row", ISO_OP_ID_matmul_bf16, 1, 5120, 384},
    {"f32 hyper-connection mix, 1 row", ISO_OP_ID_matmul_f32, 1, 20480, 24},
    {"fp8 wq_a, 512 rows", ISO_OP_ID_matmul_fp8, 512, 5120, 1280},
    {"fp4 expert w1, 512 rows", ISO_OP_ID_matmul_experts, 512, 5120, 2304},
    {"bf16 router, 512 rows", ISO_OP_ID_matmul_bf16, 512, 5120, 384},
    {"rms_norm 5120, 64 rows", ISO_OP_ID_rms_norm, 64, 5120, 0},
    {"quant_fp8 5120, 64 rows", ISO_OP_ID_quant_fp8, 64, 5120, 0},
    {"hc_collapse 5120, 64 rows", ISO_OP_ID_hc_collapse, 64, 5120, 0},
};

/* Operators without weights are timed on a test case of their own, inputs included. */
typedef struct named {
    const char *name;
    iso_op_id op;
    const char *test;                    /* name of the case */
    uint32_t heads;                      /* attend: query heads instead of the case's */
    double operations;
} named;

static const named nameds[] = {
    {"attend 64 heads, 640 keys, 1 row", ISO_OP_ID_attend, "real_1x2x512_w128_b5000_s512", 64,
     4.0 * 64 * 640 * 512},
    {"index_score 32 heads, 2 rows", ISO_OP_ID_index_score, "real_2x32x128_m2_b315_e160",
     0, 2.0 * 2 * 158 * 32 * 128},
    {"topk_rows 512 of 4096, 2 rows", ISO_OP_ID_topk_rows, "real_2x4096_m1_b4090_k512", 0, 0},
    {"candidate_blocks 1024, 2 rows", ISO_OP_ID_candidate_blocks, "real_2x1024_m1_b1010_100x8",
     0, 0},
    {"hc_split 97 rows", ISO_OP_ID_hc_split, "mild_97_i20", 0, 0},
    {"hc_expand 5120, 3 rows", ISO_OP_ID_hc_expand, "mild_3x5120", 0,
     8.0 * 3 * 4 * 5120},
    {"rope 64 heads of 512, 3 rows", ISO_OP_ID_rope, "mild_3x64x512_p32", 0,
     3.0 * 3 * 64 * 64},
    {"quant_nvfp4 512, 3 rows", ISO_OP_ID_quant_nvfp4, "mild_3x512", 0,
     2.0 * 3 * 512},
    {"dequant engram 6144, 3 rows", ISO_OP_ID_dequant, "mild_e4m3_3x6144_g32", 0,
     3.0 * 6144},
};

size_t bench_case_count(void) { return ISO_COUNT_OF(shapes) + ISO_COUNT_OF(nameds); }

typedef struct search {
    const char *name;
    iso_case found;
    bool is_found;
} search;

static void compare(void *context, const iso_case *test)
{
    search *s = context;

    if (strcmp(test->name, s->name) == 0) {
        s->found = *test;
        s->is_found = true;
    }
}

/* The case stays valid until the next call. */
static iso_status named_case(const named *row, bench_case *out, iso_error *error)
{
    static search s;
    iso_case_sink sink = {compare, &s};
    const iso_op *op = iso_op_get(row->op);

    s = (search){.name = row->test};
    op->cases(&sink);
    if (!s.is_found)
        return iso_fail(error, ISO_NOT_FOUND, "bench: %s has no case %s", op->name, row->test);
    if (row->heads != 0) {
        s.found.call.in[0].extent[1] = row->heads;
        s.found.call.in[11].extent[0] = row->heads;
    }
    *out = (bench_case){.name = row->name, .call = s.found.call, .weight = -1,
                        .weight_scale = -1, .source = &s.found,
                        .operations = row->operations};
    return op->infer(&out->call, error);
}

static void set_params(bench_case *c, const void *params, size_t bytes)
{
    memcpy(c->call.params, params, bytes);
}

static void fp8_case(bench_case *c, const bench_shape *s)
{
    const iso_tile_params tile = {.tile = 32};

    c->call.in[0] = iso_desc2(ISO_DTYPE_E4M3, s->rows, s->k);
    c->call.in[1] = iso_desc2(ISO_DTYPE_UE8M0, s->rows, s->k / 32);
    c->call.in[2] = iso_desc2(ISO_DTYPE_E4M3, s->n, s->k);
    c->call.in[3] = iso_desc2(ISO_DTYPE_UE8M0, s->n / 32, s->k / 32);
    set_params(c, &tile, sizeof tile);
    c->weight = 2;
    c->weight_scale = 3;
}

static void groups_case(bench_case *c, const bench_shape *s)
{
    const iso_groups_params groups = {.tile = 32, .groups = 8};

    c->call.in[0] = iso_desc3(ISO_DTYPE_BF16, s->rows, 8, s->k);
    c->call.in[1] = iso_desc2(ISO_DTYPE_E4M3, s->n, s->k);
    c->call.in[2] = iso_desc2(ISO_DTYPE_UE8M0, s->n / 32, s->k / 32);
    set_params(c, &groups, sizeof groups);
    c->weight = 1;
    c->weight_scale = 2;
}

/* One token picks six of six resident experts; more rows are those of one expert. */
static void experts_case(bench_case *c, const bench_shape *s)
{
    const int64_t picks = s->rows == 1 ? 6 : 1;

    c->call.in[0] = iso_desc2(ISO_DTYPE_E4M3, s->rows, s->k);
    c->call.in[1] = iso_desc2(ISO_DTYPE_UE8M0, s->rows, s->k / 32);
    c->call.in[2] = iso_desc2(ISO_DTYPE_I32, s->rows, picks);
    c->call.in[3] = iso_desc1(ISO_DTYPE_I32, picks);
    c->call.in[4] = iso_desc3(ISO_DTYPE_E2M1, picks, s->n, s->k);
    c->call.in[5] = iso_desc3(ISO_DTYPE_UE8M0, picks, s->n, s->k / 32);
    c->index_inputs = 1u << 2 | 1u << 3;
    c->index_count = (uint32_t)picks;
    c->weight = 4;
    c->weight_scale = 5;
    c->operations *= (double)picks;
}

static void row_case(bench_case *c, const bench_shape *s)
{
    const iso_norm_params norm = {1e-20f};
    const iso_quant_params quant = {32};

    c->call.in[0] = iso_desc2(ISO_DTYPE_BF16, s->rows, s->k);
    c->weight = 0;
    if (s->op == ISO_OP_ID_rms_norm) {
        c->operations = 4.0 * s->rows * s->k;            /* square, add, two products */
        c->call.in[1] = iso_desc1(ISO_DTYPE_BF16, s->k);
        set_params(c, &norm, sizeof norm);
    } else if (s->op == ISO_OP_ID_quant_fp8) {
        c->operations = 2.0 * s->rows * s->k;            /* largest, product */
        set_params(c, &quant, sizeof quant);
    } else {
        c->operations = 8.0 * s->rows * s->k;            /* four streams */
        c->call.in[0] = iso_desc3(ISO_DTYPE_BF16, s->rows, 4, s->k);
        c->call.in[1] = iso_desc2(ISO_DTYPE_F32, s->rows, 4);
    }
}

iso_status bench_case_make(const bench_shape *s, bench_case *out, iso_error *error)
{
    bench_case c = {.name = s->name, .weight = -1, .weight_scale = -1,
                    .operations = 2.0 * s->rows * s->k * s->n};

    c.call.op = iso_op_get(s->op);
    switch (s->op) {
    case ISO_OP_ID_matmul_fp8:
        fp8_case(&c, s);
        break;
    case ISO_OP_ID_matmul_groups:
        groups_case(&c, s);
        break;
    case ISO_OP_ID_matmul_experts:
        experts_case(&c, s);
        break;
    case ISO_OP_ID_matmul_bf16:
        c.call.in[0] = iso_desc2(ISO_DTYPE_BF16, s->rows, s->k);
        c.call.in[1] = iso_desc2(ISO_DTYPE_BF16, s->n, s->k);
        c.weight = 1;
        break;
    case ISO_OP_ID_matmul_f32:
        c.call.in[0] = iso_desc2(ISO_DTYPE_BF16, s->rows, s->k);
        c.call.in[1] = iso_desc2(ISO_DTYPE_F32, s->n, s->k);
        c.weight = 1;
        break;
    default:
        row_case(&c, s);
    }
    ISO_TRY(c.call.op->infer(&c.call, error));
    *out = c;
    return ISO_OK;
}

iso_status bench_case_at(size_t index, bench_case *out, iso_error *error)
{
    if (index < ISO_COUNT_OF(shapes))
        return bench_case_make(&shapes[index], out, error);
    return named_case(&nameds[index - ISO_COUNT_OF(shapes)], out, error);
}

iso_status bench_case_named(const char *name, bench_case *out, iso_error *error)
{
    for (size_t i = 0; i < bench_case_count(); i++) {
        ISO_TRY(bench_case_at(i, out, error));
        if (strcmp(out->name, name) == 0)
            return ISO_OK;
    }
    return iso_fail(error, ISO_NOT_FOUND, "bench: no case \"%s\"", name);
}
