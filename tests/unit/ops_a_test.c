/* ops_a: embedding, quantisers, norms, rotation and matmuls, run through their operator references:
 * the golden hashes of numerics A.1, the vectors of tests/golden/vectors, and relations between
 * operators. Shapes, splits and flags are the business of the case lists. */
#include "core/json.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/lane/i32.h"
#include "ggml-style-ops/ops.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/quant.h"
#include "tests/unit/golden.h"
#include "tests/unit/unit.h"

enum { K_MAX = 20480, POSITIONS = 65536, PAIRS = 32 };

/* ---- running one operator ---- */

typedef struct operand {
    iso_tensor_desc desc;
    void *data;
} operand;

/* Infers, fills and runs the reference on all units; returns the flags. `out` are host buffers. */
static uint32_t run_op(iso_op_id id, const void *params, const operand *in, void *const *out)
{
    iso_op_call call = {.op = iso_op_get(id)};
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX] = {0};
    void *at[ISO_OP_INPUTS_MAX + ISO_OP_OUTPUTS_MAX] = {0};
    uint32_t flags = 0;
    const iso_tensors tensors = {at, NULL, &flags};
    iso_error error;

    for (uint32_t i = 0; i < call.op->input_count; i++) {
        call.in[i] = in[i].desc;
        at[i] = in[i].data;
    }
    for (uint32_t i = 0; i < call.op->output_count; i++)
        at[call.op->input_count + i] = out[i];
    if (params != NULL)
        memcpy(call.params, params, call.op->params_bytes);
    assert_ok(call.op->infer(&call, &error), error);
    call.op->fill(&call, args);
    call.op->reference(args, &tensors, (iso_range){0, call.op->units(args)});
    return flags;
}

#define RUN(id, params, in, ...) run_op(ISO_OP_ID_##id, params, in, (void *const[]){__VA_ARGS__})

static operand vector(iso_dtype dtype, int64_t n, void *data)
{
    return (operand){iso_desc1(dtype, n), data};
}

static operand matrix(iso_dtype dtype, int64_t rows, int64_t columns, void *data)
{
    return (operand){iso_desc2(dtype, rows, columns), data};
}

/* ---- golden hashes: matmul ---- */

static const uint32_t k_list[] = {1, 64, 77, 128, 512, 588, 1024, 1152, 1280, 2304, 4096, 5120,
                                  20480};

static struct {
    uint16_t a[K_MAX], b[K_MAX];     /* bf16 */
    float f[K_MAX];
    uint8_t ca[K_MAX], cb[K_MAX];    /* e4m3, or packed e2m1 in cb */
    uint8_t sa[K_MAX / 32], sb[K_MAX / 32];
    uint16_t da[K_MAX], db[K_MAX];   /* dequantised */
} mm;

static void fill_matmul(golden *g, uint32_t k, enum golden_dist dist, bool is_packed)
{
    golden_fill_bf16(g, mm.a, k, dist);
    golden_fill_bf16(g, mm.b, k, dist);
    golden_fill_f32(g, mm.f, k, dist);
    for (uint32_t i = 0; i < k; i++) {
        mm.ca[i] = golden_e4m3(g);
        mm.cb[i] = is_packed ? (uint8_t)golden_u32(g) : golden_e4m3(g);
    }
    for (uint32_t i = 0; i < K_MAX / 32; i++) {
        mm.sa[i] = (uint8_t)(dist == GOLDEN_TINY ? 105 : 115 + golden_u32(g) % 12);
        mm.sb[i] = (uint8_t)(dist == GOLDEN_TINY ? 86 : 110 + golden_u32(g) % 20);
    }
}

static float run_bf16(uint16_t *a, uint16_t *b, uint32_t k)
{
    const iso_matmul_params params = {.out_f32 = 1};
    const operand in[3] = {matrix(ISO_DTYPE_BF16, 1, k, a), matrix(ISO_DTYPE_BF16, 1, k, b)};
    float y;

    assert_int_equal(RUN(matmul_bf16, &params, in, &y), 0);
    return y;
}

static float run_f32(uint32_t k)
{
    const operand in[2] = {matrix(ISO_DTYPE_BF16, 1, k, mm.a), matrix(ISO_DTYPE_F32, 1, k, mm.f)};
    float y;

    assert_int_equal(RUN(matmul_f32, NULL, in, &y), 0);
    return y;
}

/* Codes to bf16; K is filled up to whole groups with zeros, which nobody reads. */
static void run_dequant(uint16_t *to, uint8_t *code, uint8_t *scale, uint32_t k, uint32_t group)
{
    const uint32_t scales = (k + group - 1) / group, padded = scales * group;
    const operand in[2] = {matrix(ISO_DTYPE_E4M3, 1, padded, code),
                           matrix(ISO_DTYPE_UE8M0, 1, scales, scale)};

    memset(code + k, 0, padded - k);
    assert_int_equal(RUN(dequant, NULL, in, to), 0);
}

/* The f32 sum of dequantised operands; matmul_fp8 has to be its rounding to bf16. */
static float run_fp8(uint32_t k, uint32_t tile)
{
    const iso_tile_params params = {.tile = tile};
    const int64_t scales = (k + tile - 1) / tile;
    const operand in[4] = {matrix(ISO_DTYPE_E4M3, 1, k, mm.ca),
                           matrix(ISO_DTYPE_UE8M0, 1, scales, mm.sa),
                           matrix(ISO_DTYPE_E4M3, 1, k, mm.cb),
                           matrix(ISO_DTYPE_UE8M0, 1, scales, mm.sb)};
    uint32_t flags = 0;
    uint16_t y;
    float sum;

    run_dequant(mm.da, mm.ca, mm.sa, k, tile);
    run_dequant(mm.db, mm.cb, mm.sb, k, tile);
    sum = run_bf16(mm.da, mm.db, k);
    assert_int_equal(RUN(matmul_fp8, &params, in, &y), 0);
    assert_int_equal(y, lane_bf16(sum, &flags));
    return sum;
}

/* The exact class once more, written from numerics 6.5. */
static float exact_sum(uint32_t k)
{
    iso_sum3 sum = {0};

    for (uint32_t c = 0; c < k; c += 128) {
        float chunk = 0.0f;

        for (uint32_t b = c; b < c + 128 && b < k; b += 32) {
            const int32_t e = mm.sa[b / 32] + mm.sb[b / 32] - 254 - 10;
            int64_t s = 0;

            for (uint32_t i = b; i < b + 32 && i < k; i++)
                s += (int64_t)lane_e2m1_int(iso_e2m1_at(mm.cb, i)) * lane_e4m3_int(mm.ca[i]);
            chunk = chunk + (float)s * lane_pow2(e);
        }
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

/* The f32 sum of the exact class; matmul_experts has to be its rounding to bf16. */
static float run_experts(uint32_t k)
{
    const int64_t blocks = (k + 31) / 32, padded = blocks * 32;
    int32_t expert = 0, slot = 0;
    const operand in[6] = {matrix(ISO_DTYPE_E4M3, 1, padded, mm.ca),
                           matrix(ISO_DTYPE_UE8M0, 1, blocks, mm.sa),
                           matrix(ISO_DTYPE_I32, 1, 1, &expert),
                           vector(ISO_DTYPE_I32, 1, &slot),
                           {iso_desc3(ISO_DTYPE_E2M1, 1, 1, padded), mm.cb},
                           {iso_desc3(ISO_DTYPE_UE8M0, 1, 1, blocks), mm.sb}};
    uint32_t flags = 0;
    const float sum = lane_clean(exact_sum(k), &flags);
    uint16_t y;

    memset(mm.ca + k, 0, (size_t)(padded - k));
    assert_int_equal(RUN(matmul_experts, NULL, in, &y), 0);
    assert_int_equal(y, lane_bf16(sum, &flags));
    assert_int_equal(flags, 0);
    return sum;
}

static void expect_matmul(uint64_t seed, uint64_t hash)
{
    golden g = golden_begin(seed);

    for (uint32_t t = 0; t < ISO_COUNT_OF(k_list) * 24; t++) {
        const uint32_t k = k_list[t % ISO_COUNT_OF(k_list)];

        fill_matmul(&g, k, (enum golden_dist)(t / ISO_COUNT_OF(k_list) % 3), seed == 14);
        golden_put_f32(&g, seed == 10 ? run_bf16(mm.a, mm.b, k)
                           : seed == 11 ? run_fp8(k, 32)
                           : seed == 12 ? run_fp8(k, 128)
                           : seed == 13 ? run_f32(k) : run_experts(k));
    }
    assert_int_equal(g.hash, hash);
}

static void matmul_bf16_golden(void **state)
{
    (void)state;
    expect_matmul(10, 0xad4fcc65ac1e5cc2u);
}

static void matmul_fp8_golden_tile_32(void **state)
{
    (void)state;
    expect_matmul(11, 0x2283d16c6ecd2d61u);
}

static void matmul_fp8_golden_tile_128(void **state)
{
    (void)state;
    expect_matmul(12, 0xa3d90d636a92162bu);
}

static void matmul_f32_golden(void **state)
{
    (void)state;
    expect_matmul(13, 0x6025667b858d9e08u);
}

static void matmul_experts_golden(void **state)
{
    (void)state;
    expect_matmul(14, 0x9d4e05178a520664u);
}

/* ---- golden hashes: rows ---- */

static const uint32_t n_list[] = {128, 512, 1024, 1280, 1536, 4096, 5120, 7168, 20480};

static void row_sum_golden(void **state)
{
    golden g = golden_begin(20);
    uint32_t flags = 0;

    (void)state;
    for (uint32_t t = 0; t < 90; t++) {
        const uint32_t n = n_list[t % 9];
        iso_row_sum sum = {0};

        golden_fill_f32(&g, mm.f, n, (enum golden_dist)(t / 9 % 3));
        for (uint32_t i = 0; i < n; i++)
            iso_row_sum_add(&sum, mm.f[i]);
        golden_put_f32(&g, lane_clean(iso_row_sum_end(&sum), &flags));
    }
    assert_int_equal(flags, 0);
    assert_int_equal(g.hash, 0x092e3046f793e2adu);
}

static uint64_t rms_norm_hash(uint32_t eps)
{
    const iso_norm_params params = {.eps = lane_float(eps)};
    golden g = golden_begin(21);

    for (uint32_t t = 0; t < 90; t++) {
        const uint32_t n = n_list[t % 8];
        const enum golden_dist dist = (enum golden_dist)(t / 9 % 3);
        const operand in[2] = {matrix(ISO_DTYPE_BF16, 1, n, mm.a),
                               vector(ISO_DTYPE_BF16, n, mm.b)};
        float r;

        golden_fill_bf16(&g, mm.a, n, dist);
        golden_fill_bf16(&g, mm.b, n, t % 7 != 0 ? GOLDEN_MILD : dist);
        assert_int_equal(RUN(rms_norm, &params, in, mm.da), 0);
        assert_int_equal(RUN(row_rms, &params, in, &r), 0);
        for (uint32_t i = 0; i < n; i++) {
            const float scaled = lane_bf16_f32(mm.a[i]) * r;     /* row_rms is the same r */
            uint32_t flags = 0;

            golden_put(&g, mm.da[i]);
            assert_int_equal(mm.da[i], lane_bf16(scaled * lane_bf16_f32(mm.b[i]), &flags));
        }
    }
    return g.hash;
}

static void rms_norm_and_row_rms_golden(void **state)
{
    (void)state;
    assert_int_equal(rms_norm_hash(LANE_EPS_1E20), 0xd243b23f41a73ecfu);
    assert_int_equal(rms_norm_hash(LANE_EPS_1E6), 0xadb4c68e4eaf6e78u);
}

/* ---- quantisers ---- */

enum quantiser { Q8, Q4I, Q4KV };

typedef struct group {
    uint16_t x[32], value[32];       /* input, dequantised output */
    uint8_t code[32];                /* one byte per element */
    uint8_t scale;
} group;

/* Quantises and dequantises one group (32, or 16 for Q4kv); returns the quantiser's flags. */
static uint32_t run_quantiser(enum quantiser q, group *g)
{
    const int64_t n = q == Q4KV ? 16 : 32;
    const iso_dtype dtype = q == Q8 ? ISO_DTYPE_E4M3 : ISO_DTYPE_E2M1;
    const iso_quant_params params = {.group = 32};
    uint8_t packed[16], *code = q == Q8 ? g->code : packed;
    const operand x[1] = {matrix(ISO_DTYPE_BF16, 1, n, g->x)};
    const operand coded[2] = {
        matrix(dtype, 1, n, code),
        matrix(q == Q4KV ? ISO_DTYPE_E4M3 : ISO_DTYPE_UE8M0, 1, 1, &g->scale),
    };
    const uint32_t flags = q == Q8 ? RUN(quant_fp8, &params, x, code, &g->scale)
                         : q == Q4I ? RUN(quant_mxfp4, NULL, x, code, &g->scale)
                                    : RUN(quant_nvfp4, NULL, x, code, &g->scale);

    for (uint32_t i = 0; q != Q8 && i < (uint32_t)n; i++)
        g->code[i] = (uint8_t)iso_e2m1_at(packed, i);
    if (flags == 0)
        assert_int_equal(RUN(dequant, NULL, coded, g->value), 0);
    return flags;
}

static uint64_t quantiser_hash(enum quantiser q)
{
    golden g = golden_begin(30);
    group one;

    for (uint32_t t = 0; t < 6000; t++) {
        golden_fill_bf16(&g, one.x, 32, (enum golden_dist)(t % 3));
        assert_int_equal(run_quantiser(q, &one), 0);
        golden_put(&g, one.scale);
        for (uint32_t i = 0; i < (q == Q4KV ? 16 : 32); i++)
            golden_put(&g, one.code[i] | (uint32_t)one.value[i] << 16);
    }
    return g.hash;
}

static void quantisers_golden(void **state)
{
    (void)state;
    assert_int_equal(quantiser_hash(Q8), 0x31c09a1723f66ed3u);
    assert_int_equal(quantiser_hash(Q4I), 0x16f2d4f845de06efu);
    assert_int_equal(quantiser_hash(Q4KV), 0x3e4eacf655735638u);
}

/* ---- vectors ---- */

static iso_json_doc *open_vectors(const char *name)
{
    char path[512];
    iso_json_doc *doc = NULL;
    iso_error error;

    snprintf(path, sizeof path, "%s/tests/golden/vectors/%s", ISO_SOURCE_DIR, name);
    assert_ok(iso_json_read(path, 1 << 20, &doc, &error), error);
    return doc;
}

static const iso_json *get(const iso_json *object, const char *key)
{
    const iso_json *value = iso_json_get(object, key);

    if (value == NULL)
        fail_msg("no key %s", key);
    return value;
}

static const char *text_of(const iso_json *value)
{
    const char *text = iso_json_string(value, NULL);

    assert_non_null(text);
    return text;
}

static uint32_t bits_of(const iso_json *value)                   /* "0x1234" */
{
    return (uint32_t)strtoul(text_of(value), NULL, 16);
}

static int64_t int_of(const iso_json *value)
{
    int64_t number;

    assert_true(iso_json_int(value, &number));
    return number;
}

/* Byte `index` of a string of hex digits. */
static uint8_t hex_at(const char *hex, size_t index)
{
    const char digits[3] = {hex[2 * index], hex[2 * index + 1], '\0'};

    return (uint8_t)strtoul(digits, NULL, 16);
}

/* Vectors of the released formulas that numerics.md narrows (its A.3): by name, with what differs.
 * `clean` is applied to the input of these first. The dequantised value -0 is +0 everywhere. */
static const struct {
    enum quantiser q;
    const char *name;
    uint8_t scale;                   /* by the contract's floor */
    bool has_codes;                  /* the codes of the vector still hold */
    uint32_t flags;
} exceptions[] = {
    {Q4I, "all_zero", 86, true, 0},                              /* byte 1 there */
    {Q4I, "negative_zero", 86, false, 0},                        /* -0 in, byte 1 there */
    {Q4I, "small", 86, false, 0},                                /* all below 2^-50 */
    {Q8, "negative_zero", 105, false, 0},                        /* -0 in */
    {Q8, "large", 247, true, ISO_FLAG_RANGE},                    /* all above 2^50 */
};

static void check_group(enum quantiser q, const iso_json *row)
{
    const char *name = text_of(get(row, "name"));
    const char *hex = text_of(get(row, q == Q8 ? "codes_e4m3_hex" : "codes_packed_hex"));
    const iso_json *input = get(row, "input_bf16"), *output = get(row, "output_bf16");
    const uint32_t n = q == Q4KV ? 16 : 32;
    uint32_t scale = q == Q4KV ? bits_of(get(row, "scale_e4m3"))
                               : (uint32_t)int_of(get(row, "scale_e8m0"));
    bool has_codes = true, is_exception = false;
    uint32_t flags = 0, cleaned = 0;
    group g;

    for (size_t e = 0; e < ISO_COUNT_OF(exceptions); e++)
        if (exceptions[e].q == q && strcmp(exceptions[e].name, name) == 0) {
            is_exception = true;
            scale = exceptions[e].scale;
            has_codes = exceptions[e].has_codes;
            flags = exceptions[e].flags;
        }
    for (uint32_t i = 0; i < n; i++) {
        g.x[i] = (uint16_t)bits_of(iso_json_at(input, i));
        if (is_exception && flags == 0)
            g.x[i] = (uint16_t)lane_bf16(lane_bf16_f32(g.x[i]), &cleaned);
    }
    assert_int_equal(run_quantiser(q, &g), flags);
    assert_int_equal(g.scale, scale);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t byte = hex_at(hex, q == Q8 ? i : i / 2);
        const uint32_t code = q == Q8 ? byte : byte >> i % 2 * 4 & 15u;
        const uint32_t value = bits_of(iso_json_at(output, i));

        assert_int_equal(g.code[i], has_codes ? code : 0);
        if (flags == 0)
            assert_int_equal(g.value[i], has_codes && (value & 0x7fffu) != 0 ? value : 0);
    }
}

static void quantisers_match_vectors(void **state)
{
    static const char *const key[] = {"q8", "q4i", "q4kv"};
    iso_json_doc *doc = open_vectors("quantizers.json");

    (void)state;
    for (int q = Q8; q <= Q4KV; q++) {
        const iso_json *rows = get(iso_json_root(doc), key[q]);

        assert_int_equal(iso_json_size(rows), q == Q4I ? 6 : 9);
        for (size_t i = 0; i < iso_json_size(rows); i++)
            check_group((enum quantiser)q, iso_json_at(rows, i));
    }
    iso_json_free(&doc);
}

static void conversions_match_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("quantizers.json");
    const iso_json *root = iso_json_root(doc), *rows = get(root, "e4m3_encode");
    uint32_t flags = 0;

    (void)state;
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        const iso_json *row = iso_json_at(rows, i);
        const uint32_t code = lane_e4m3(lane_float(bits_of(get(row, "f32"))), &flags);

        assert_int_equal(code, bits_of(get(row, "code")));
        assert_true(lane_e4m3_f32(code) == lane_float(bits_of(get(row, "value"))));
    }
    rows = get(root, "e2m1_encode");
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        const iso_json *row = iso_json_at(rows, i);
        const uint32_t code = lane_e2m1(lane_float(bits_of(get(row, "f32"))));

        assert_int_equal(code, int_of(get(row, "code")));
        assert_true(lane_e2m1_f32(code) == lane_float(bits_of(get(row, "value"))));
    }
    assert_int_equal(flags, 0);
    rows = get(root, "bf16_round");
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        const iso_json *row = iso_json_at(rows, i);
        const uint32_t bits = bits_of(get(row, "f32")), want = bits_of(get(row, "bf16"));
        const bool is_exception = bits == 0x80000000u || bits == 0x00018000u;  /* clean: +0 */

        flags = 0;
        assert_int_equal(lane_bf16(lane_float(bits), &flags), is_exception ? 0 : want);
        assert_int_equal(flags, bits == 0x7f7f7fffu ? LANE_RANGE : 0);
    }
    rows = get(root, "scale_exponents");
    for (size_t i = 0; i < iso_json_size(rows); i++) {
        const iso_json *row = iso_json_at(rows, i);
        const float a = lane_float(bits_of(get(row, "amax"))), least = lane_float(0x38d1b717u);
        const float t = (a < least ? least : a) * lane_float(0x3b124925u);
        const float u = a * lane_float(0x3e2aaaabu);

        assert_int_equal((int)lane_ue8m0_ceil(t) - 127, int_of(get(row, "k_448")));
        assert_int_equal((int)lane_ue8m0_ceil(u) - 127, int_of(get(row, "k_6")));
    }
    iso_json_free(&doc);
}

/* One group of 32 codes under one byte; flags of the operator. */
static uint32_t decode_group(uint16_t value[32], uint8_t code[32], uint8_t scale)
{
    const operand in[2] = {matrix(ISO_DTYPE_E4M3, 1, 32, code),
                           matrix(ISO_DTYPE_UE8M0, 1, 1, &scale)};

    return RUN(dequant, NULL, in, value);
}

/* Bytes outside [64, 168] (0, 1 and 254 in these rows) over nonzero codes are range errors here. */
static void row_decode_matches_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("engram_row_decode.json");
    const iso_json *rows = get(iso_json_root(doc), "rows");
    uint32_t refused = 0;

    (void)state;
    assert_int_equal(iso_json_size(rows), 2);
    for (size_t r = 0; r < 2; r++) {
        const iso_json *row = iso_json_at(rows, r), *scales = get(row, "scales");
        const char *codes = text_of(get(row, "codes_hex"));
        const char *values = text_of(get(row, "bf16_hex_le"));

        for (uint32_t b = 0; b < 8; b++) {
            const int64_t scale = int_of(iso_json_at(scales, b));
            uint8_t code[32];
            uint16_t value[32];
            uint32_t flags;

            for (uint32_t i = 0; i < 32; i++)
                code[i] = hex_at(codes, b * 32 + i);
            flags = decode_group(value, code, (uint8_t)scale);
            if (scale < 64 || scale > 168) {
                assert_int_equal(flags, ISO_FLAG_RANGE);
                refused++;
                continue;
            }
            assert_int_equal(flags, 0);
            for (uint32_t i = 0; i < 32; i++) {
                const size_t at = 2 * (b * 32 + i);
                const uint32_t want = hex_at(values, at) | (uint32_t)hex_at(values, at + 1) << 8;

                assert_int_equal(value[i], (want & 0x7fffu) == 0 ? 0 : want);
            }
        }
    }
    assert_int_equal(refused, 3);
    iso_json_free(&doc);
}

static void decode_tables_match_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("engram_row_decode.json");
    const iso_json *root = iso_json_root(doc), *vectors = get(root, "vectors");
    const iso_json *e4m3 = get(root, "e4m3_to_f32"), *ue8m0 = get(root, "e8m0_to_f32");
    const iso_json *e2m1 = get(root, "e2m1_to_f32");

    (void)state;
    assert_int_equal(iso_json_size(vectors), 31);
    for (size_t i = 0; i < 31; i++) {
        const iso_json *row = iso_json_at(vectors, i);
        const int64_t scale = int_of(get(row, "scale"));
        uint8_t code[32] = {(uint8_t)bits_of(get(row, "code"))};
        const uint32_t want = bits_of(get(row, "bf16"));
        const uint32_t is_refused = (scale < 64 || scale > 168) && (code[0] & 0x7fu) != 0;
        uint16_t value[32];

        assert_int_equal(decode_group(value, code, (uint8_t)scale),
                         is_refused ? ISO_FLAG_RANGE : 0);
        if (!is_refused)
            assert_int_equal(value[0], want);
    }
    for (uint32_t c = 0; c < 256; c++) {
        if ((c & 0x7fu) == 0x7fu)
            assert_string_equal(text_of(iso_json_at(e4m3, c)), "nan");
        else
            assert_true(lane_e4m3_f32(c) == lane_float(bits_of(iso_json_at(e4m3, c))));
        if (c == 255)
            assert_string_equal(text_of(iso_json_at(ue8m0, c)), "nan");
        else
            assert_int_equal(lane_bits(lane_ue8m0_f32(c)), bits_of(iso_json_at(ue8m0, c)));
    }
    for (uint32_t c = 0; c < 16; c++)
        assert_true(lane_e2m1_f32(c) == lane_float(bits_of(iso_json_at(e2m1, c))));
    iso_json_free(&doc);
}

/* ---- rotation ---- */

static float table[POSITIONS * PAIRS * 2];                       /* {cos, sin} */
static int32_t positions[POSITIONS];

/* Positions 0 .. count - 1 with the frequencies of rope.json; the vector's samples are checked. */
static void build_table(const iso_json *one)
{
    const iso_json *freq = get(one, "freq"), *samples = get(one, "samples");
    float f[PAIRS];
    const operand in[2] = {vector(ISO_DTYPE_I32, POSITIONS, positions),
                           vector(ISO_DTYPE_F32, PAIRS, f)};
    uint32_t checked = 0;

    assert_int_equal(iso_json_size(freq), PAIRS);
    for (uint32_t i = 0; i < PAIRS; i++)
        f[i] = lane_float(bits_of(iso_json_at(freq, i)));
    for (size_t s = 0; s < iso_json_size(samples); s++) {
        const iso_json *row = iso_json_at(samples, s);
        const int64_t i = int_of(iso_json_at(row, 1));
        int32_t position = (int32_t)int_of(iso_json_at(row, 0));
        const operand sample[2] = {vector(ISO_DTYPE_I32, 1, &position),
                                   vector(ISO_DTYPE_F32, PAIRS, f)};

        assert_int_equal(RUN(rope_angles, NULL, sample, table), 0);
        assert_int_equal(lane_bits((float)position * f[i]), bits_of(iso_json_at(row, 2)));
        assert_int_equal(lane_bits(table[2 * i]), bits_of(iso_json_at(row, 3)));
        assert_int_equal(lane_bits(table[2 * i + 1]), bits_of(iso_json_at(row, 4)));
        checked++;
    }
    assert_int_equal(checked, 80);
    for (int32_t p = 0; p < POSITIONS; p++)
        positions[p] = p;
    assert_int_equal(RUN(rope_angles, NULL, in, table), 0);
}

static uint64_t table_hash(void)
{
    golden g = golden_begin(60);

    for (uint32_t which = 0; which < 2; which++)                 /* all cosines, then all sines */
        for (uint32_t i = 0; i < POSITIONS * PAIRS; i++)
            golden_put_f32(&g, table[2 * i + which]);
    return g.hash;
}

static uint64_t rotation_hash(void)
{
    golden g = golden_begin(61);

    for (uint32_t t = 0; t < 3000; t++) {
        const iso_rope_params params = {.inverse = t & 1};
        const uint32_t p = golden_u32(&g) % POSITIONS;
        uint16_t x[2 * PAIRS], y[2 * PAIRS];
        const operand in[2] = {matrix(ISO_DTYPE_BF16, 1, 2 * PAIRS, x),
                               {iso_desc3(ISO_DTYPE_F32, 1, PAIRS, 2), table + 2 * PAIRS * p}};

        golden_fill_bf16(&g, x, 2 * PAIRS, (enum golden_dist)(t % 3));
        assert_int_equal(RUN(rope, &params, in, y), 0);
        for (uint32_t i = 0; i < 2 * PAIRS; i++)
            golden_put(&g, y[i]);
    }
    return g.hash;
}

static void rotation_golden_and_vectors(void **state)
{
    iso_json_doc *doc = open_vectors("rope.json");

    (void)state;
    build_table(get(iso_json_root(doc), "plain"));
    assert_int_equal(table_hash(), 0x687ba95fe588fea2u);
    build_table(get(iso_json_root(doc), "yarn"));
    assert_int_equal(table_hash(), 0xb2e6722421839998u);
    assert_int_equal(rotation_hash(), 0xec15e570348349abu);
    iso_json_free(&doc);
}

/* ---- relations and rules ---- */

static void matmul_groups_is_matmul_bf16_of_each_group(void **state)
{
    enum { GROUPS = 3, R = 5, K = 1184, TILE = 32, ROWS = GROUPS * R };
    static uint16_t x[GROUPS * K], b[ROWS * K], y[ROWS];
    static uint8_t w[ROWS * K], ws[K / TILE];                    /* 15 rows: one row of tiles */
    const iso_groups_params params = {.tile = TILE, .groups = GROUPS};
    const operand in[3] = {{iso_desc3(ISO_DTYPE_BF16, 1, 2 * GROUPS, K / 2), x},
                           matrix(ISO_DTYPE_E4M3, ROWS, K, w),
                           matrix(ISO_DTYPE_UE8M0, 1, K / TILE, ws)};
    golden g = golden_begin(90);
    uint32_t flags = 0;

    (void)state;
    golden_fill_bf16(&g, x, GROUPS * K, GOLDEN_WIDE);
    for (uint32_t i = 0; i < ROWS * K; i++)
        w[i] = golden_e4m3(&g);
    for (uint32_t i = 0; i < K / TILE; i++)
        ws[i] = (uint8_t)(110 + golden_u32(&g) % 20);
    for (uint32_t j = 0; j < ROWS; j++)
        run_dequant(b + j * K, w + j * K, ws, K, TILE);
    assert_int_equal(RUN(matmul_groups, &params, in, y), 0);
    for (uint32_t j = 0; j < ROWS; j++)
        assert_int_equal(y[j], lane_bf16(run_bf16(x + j / R * K, b + j * K, K), &flags));
    assert_int_equal(flags, 0);
}

static void matmul_bf16_bias_is_added_to_the_clean_sum(void **state)
{
    uint16_t x[2] = {0x2680, 0x2700}, w[1] = {0x3f00}, bias[1] = {0x2680}, y[2];
    const iso_matmul_params params = {.out_f32 = 0};
    const operand in[3] = {matrix(ISO_DTYPE_BF16, 2, 1, x), matrix(ISO_DTYPE_BF16, 1, 1, w),
                           vector(ISO_DTYPE_BF16, 1, bias)};

    (void)state;
    assert_int_equal(RUN(matmul_bf16, &params, in, y), 0);
    assert_int_equal(y[0], 0x2680);               /* 2^-51 is cleaned away, 2^-50 + 0 */
    assert_int_equal(y[1], 0x2700);               /* 2^-50 + 2^-50 */
}

static void bad_indices_give_zero_rows(void **state)
{
    int32_t ids[3] = {1, 2, -1}, experts[3] = {0, 1, 2}, slot[2] = {0, 1};
    uint16_t rows[4] = {0x3f80, 0x4000, 0x4040, 0x4080}, y[6];
    uint8_t x[32] = {0x38}, xs[1] = {127}, w[16] = {0x22}, ws[1] = {127};
    const operand embed[2] = {vector(ISO_DTYPE_I32, 3, ids), matrix(ISO_DTYPE_BF16, 2, 2, rows)};
    const operand expert[6] = {matrix(ISO_DTYPE_E4M3, 1, 32, x),
                               matrix(ISO_DTYPE_UE8M0, 1, 1, xs),
                               matrix(ISO_DTYPE_I32, 1, 3, experts),
                               vector(ISO_DTYPE_I32, 2, slot),
                               {iso_desc3(ISO_DTYPE_E2M1, 1, 1, 32), w},
                               {iso_desc3(ISO_DTYPE_UE8M0, 1, 1, 1), ws}};
    static const uint16_t want[6] = {0x4040, 0x4080, 0, 0, 0, 0};

    (void)state;
    assert_int_equal(RUN(embed_rows, NULL, embed, y), ISO_FLAG_INDEX);
    assert_memory_equal(y, want, sizeof want);
    assert_int_equal(RUN(matmul_experts, NULL, expert, y), ISO_FLAG_INDEX);
    assert_int_equal(y[0], 0x3f80);
    assert_int_equal(y[1], 0);                    /* slot 1 does not exist */
    assert_int_equal(y[2], 0);                    /* expert 2 does not exist */
}

static void rope_keeps_the_leading_lanes(void **state)
{
    uint16_t x[6] = {0x3f80, 0x4000, 0x4040, 0x3f80, 0x4000, 0x4040}, y[6];
    float angles[4] = {0.0f, 1.0f, 1.0f, 0.0f};                  /* a quarter turn, then none */
    const operand in[2] = {matrix(ISO_DTYPE_BF16, 2, 3, x),
                           {iso_desc3(ISO_DTYPE_F32, 2, 1, 2), angles}};
    static const uint16_t forward[6] = {0x3f80, 0xc040, 0x4000, 0x3f80, 0x4000, 0x4040};
    static const uint16_t back[6] = {0x3f80, 0x4040, 0xc000, 0x3f80, 0x4000, 0x4040};
    iso_rope_params params = {.inverse = 0};

    (void)state;
    assert_int_equal(RUN(rope, &params, in, y), 0);
    assert_memory_equal(y, forward, sizeof forward);
    params.inverse = 1;
    assert_int_equal(RUN(rope, &params, in, y), 0);
    assert_memory_equal(y, back, sizeof back);
}

static void expect_refused(iso_op_call *call, iso_status status, const char *text)
{
    iso_error error = {0};

    assert_int_equal(call->op->infer(call, &error), status);
    assert_string_equal(error.text, text);
}

static void rules_say_what_was_found(void **state)
{
    iso_op_call call = {.op = iso_op_get(ISO_OP_ID_matmul_bf16)};

    (void)state;
    expect_refused(&call, ISO_BAD_DTYPE, "matmul_bf16: x is absent, expected bf16 of rank 2");
    call.in[0] = iso_desc2(ISO_DTYPE_F32, 3, 64);
    expect_refused(&call, ISO_BAD_DTYPE, "matmul_bf16: x is f32[3,64], expected bf16");
    call.in[0] = iso_desc3(ISO_DTYPE_BF16, 3, 64, 2);
    expect_refused(&call, ISO_BAD_SHAPE, "matmul_bf16: x is bf16[3,64,2], expected rank 2");
    call.in[0] = iso_desc2(ISO_DTYPE_BF16, 3, 0);
    expect_refused(&call, ISO_BAD_SHAPE,
                   "matmul_bf16: x is bf16[3,0], expected 1 to 1048576 in extent 1");
    call.in[0] = iso_desc2(ISO_DTYPE_BF16, -1, 64);
    expect_refused(&call, ISO_BAD_SHAPE, "matmul_bf16: x: extent 0 is -1");
    call.in[0] = iso_desc2(ISO_DTYPE_BF16, (int64_t)1 << 31, 64);
    expect_refused(&call, ISO_BAD_SHAPE, "matmul_bf16: x is bf16[2147483648,64], more than "
                                         "2147483647 elements in a row");
    call.in[0] = iso_desc2(ISO_DTYPE_BF16, 3, 64);
    call.in[1] = iso_desc2(ISO_DTYPE_BF16, 7, 32);
    expect_refused(&call, ISO_BAD_SHAPE, "matmul_bf16: w is bf16[7,32], expected bf16[7,64]");
    call.in[1].extent[1] = 64;
    call.params[0] = 2;
    expect_refused(&call, ISO_BAD_PARAM, "matmul_bf16: out_f32 is not 0 or 1");
    call.op = iso_op_get(ISO_OP_ID_quant_mxfp4);
    expect_refused(&call, ISO_OK, "");
    call.in[0].extent[1] = 48;
    expect_refused(&call, ISO_BAD_SHAPE, "quant_mxfp4: x is bf16[3,48], expected a positive "
                                         "multiple of 32 in extent 1");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_bf16_golden),
        cmocka_unit_test(matmul_fp8_golden_tile_32),
        cmocka_unit_test(matmul_fp8_golden_tile_128),
        cmocka_unit_test(matmul_f32_golden),
        cmocka_unit_test(matmul_experts_golden),
        cmocka_unit_test(row_sum_golden),
        cmocka_unit_test(rms_norm_and_row_rms_golden),
        cmocka_unit_test(quantisers_golden),
        cmocka_unit_test(quantisers_match_vectors),
        cmocka_unit_test(conversions_match_vectors),
        cmocka_unit_test(row_decode_matches_vectors),
        cmocka_unit_test(decode_tables_match_vectors),
        cmocka_unit_test(rotation_golden_and_vectors),
        cmocka_unit_test(matmul_groups_is_matmul_bf16_of_each_group),
        cmocka_unit_test(matmul_bf16_bias_is_added_to_the_clean_sum),
        cmocka_unit_test(bad_indices_give_zero_rows),
        cmocka_unit_test(rope_keeps_the_leading_lanes),
        cmocka_unit_test(rules_say_what_was_found),
    };

    return cmocka_run_group_tests_name("ops_a", tests, NULL, NULL);
}
