/* bench_cases: real shapes of the released V4.1-Flash, by operator. */
#include "apps/bench/bench.h"
#include "ggml-style-ops/params.h"

#include <string.h>

typedef struct shape {
    const char *name;
    iso_op_id op;
    uint32_t rows, k, n;
} shape;

static const shape shapes[] = {
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
    {"rms_norm 5120, 64 rows", ISO_OP_ID_rms_norm, 64, 5120, 0},
    {"quant_fp8 5120, 64 rows", ISO_OP_ID_quant_fp8, 64, 5120, 0},
    {"hc_collapse 5120, 64 rows", ISO_OP_ID_hc_collapse, 64, 5120, 0},
};

size_t bench_case_count(void) { return ISO_COUNT_OF(shapes); }

static void set_params(bench_case *c, const void *params, size_t bytes)
{
    memcpy(c->call.params, params, bytes);
}

static void fp8_case(bench_case *c, const shape *s)
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

static void groups_case(bench_case *c, const shape *s)
{
    const iso_groups_params groups = {.tile = 32, .groups = 8};

    c->call.in[0] = iso_desc3(ISO_DTYPE_BF16, s->rows, 8, s->k);
    c->call.in[1] = iso_desc2(ISO_DTYPE_E4M3, s->n, s->k);
    c->call.in[2] = iso_desc2(ISO_DTYPE_UE8M0, s->n / 32, s->k / 32);
    set_params(c, &groups, sizeof groups);
    c->weight = 1;
    c->weight_scale = 2;
}

/* One token, six picks of six resident experts. */
static void experts_case(bench_case *c, const shape *s)
{
    const int64_t picks = 6;

    c->call.in[0] = iso_desc2(ISO_DTYPE_E4M3, s->rows, s->k);
    c->call.in[1] = iso_desc2(ISO_DTYPE_UE8M0, s->rows, s->k / 32);
    c->call.in[2] = iso_desc2(ISO_DTYPE_I32, s->rows, picks);
    c->call.in[3] = iso_desc1(ISO_DTYPE_I32, picks);
    c->call.in[4] = iso_desc3(ISO_DTYPE_E2M1, picks, s->n, s->k);
    c->call.in[5] = iso_desc3(ISO_DTYPE_UE8M0, picks, s->n, s->k / 32);
    c->index_inputs = 1u << 2 | 1u << 3;
    c->weight = 4;
    c->weight_scale = 5;
    c->operations *= (double)picks;
}

static void row_case(bench_case *c, const shape *s)
{
    const iso_norm_params norm = {1e-20f};
    const iso_quant_params quant = {32};

    c->call.in[0] = iso_desc2(ISO_DTYPE_BF16, s->rows, s->k);
    c->weight = 0;
    c->operations = 0;
    if (s->op == ISO_OP_ID_rms_norm) {
        c->call.in[1] = iso_desc1(ISO_DTYPE_BF16, s->k);
        set_params(c, &norm, sizeof norm);
    } else if (s->op == ISO_OP_ID_quant_fp8) {
        set_params(c, &quant, sizeof quant);
    } else {
        c->call.in[0] = iso_desc3(ISO_DTYPE_BF16, s->rows, 4, s->k);
        c->call.in[1] = iso_desc2(ISO_DTYPE_F32, s->rows, 4);
    }
}

iso_status bench_case_at(size_t index, bench_case *out, iso_error *error)
{
    const shape *s = &shapes[index];
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
