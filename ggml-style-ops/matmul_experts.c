/* matmul_experts: products with the e2m1 weights of the experts that each token picked.
 *   e = expert[t,i];  s = slot[e];  row = x[t] or x[t,i]
 *   y[t,i,n] = sum_k (row[k] * xs[k / group]) * (w[s,n,k] * ws[s,n,k / 32])
 * Shapes:   x e4m3 [T, K] (one row for all picks) or [T, P, K]; xs ue8m0 with the leading extents
 *           of x and ceil(K / group) last; expert i32 [T, P]; slot i32 [E], where each expert lies
 *           in w, -1 if it is not resident; w e2m1 [S, N, K]; ws ue8m0 [S, N, K / 32];
 *           y bf16 [T, P, N]. T, P >= 0, E, S, N >= 1, K a multiple of 32 in 32 .. 2^20.
 * Units:    one output feature n, for all live tokens and their picks.
 * Order:    numerics 6.5: exact integers per block of 32, one rounding and an exact scaling per
 *           block, then 6.1; one rounding to bf16 at the end.
 * Ranges:   |integer sum of a block| <= 32 * 12 * 229,376 = 88,080,384. Bytes of ws lie in
 *           [64, 168], of xs in [105, 169]: the exponent is in [-95, 73], block values are
 *           multiples of 2^-95 below 2^107 (6.6). No e4m3 code is NaN.
 * Params:   none; the group is 32 (V4.1) or 128 (V4), derived from the shape of xs.
 * Aliasing: none.
 * Errors:   an expert outside 0 .. E - 1 or a slot outside 0 .. S - 1 raises ISO_FLAG_INDEX, reads
 *           nothing and gives a row of +0; a result of 2^50 or more raises ISO_FLAG_RANGE;
 *           ISO_BAD_SHAPE; ISO_BAD_DTYPE.
 * Source:   released inference/kernel.py, fp4_gemm. Differs from it in: order of the sum. */
#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/fp4.h"
#include "ggml-style-ops/lane/fp8.h"
#include "ggml-style-ops/lane/i32.h"
#include "ggml-style-ops/order.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/quant.h"
#include "ggml-style-ops/shape_rules.h"

enum { X, XS, EXPERT, SLOT, W, WS, Y };
enum { BLOCK = 32 };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* k per activation scale: 32 where both would fit (K <= 32, where they mean the same). */
static int64_t scale_group(const iso_op_call *call)
{
    const int64_t scales = iso_desc_last(&call->in[XS]), k = iso_desc_last(&call->in[X]);

    return scales == ceil_div(k, BLOCK) ? BLOCK : 128;
}

iso_status iso_matmul_experts_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *x = &call->in[X], *expert = &call->in[EXPERT], *w = &call->in[W];
    const uint32_t rank = x->rank == 3 ? 3 : 2;
    int64_t k;

    ISO_TRY(iso_rule_input(call, X, "x", ISO_DTYPE_E4M3, rank, error));
    ISO_TRY(iso_rule_multiple(call, X, "x", rank - 1, BLOCK, error));
    ISO_TRY(iso_rule_within(call, X, "x", rank - 1, BLOCK, 1 << 20, error));
    k = iso_desc_last(x);
    ISO_TRY(iso_rule_input(call, EXPERT, "expert", ISO_DTYPE_I32, 2, error));
    ISO_TRY(iso_rule_extent(call, EXPERT, "expert", 0, x->extent[0], error));
    if (rank == 3)
        ISO_TRY(iso_rule_extent(call, X, "x", 1, expert->extent[1], error));
    ISO_TRY(iso_rule_input(call, XS, "xs", ISO_DTYPE_UE8M0, rank, error));
    for (uint32_t axis = 0; axis + 1 < rank; axis++)
        ISO_TRY(iso_rule_extent(call, XS, "xs", axis, x->extent[axis], error));
    ISO_TRY(iso_rule_extent(call, XS, "xs", rank - 1, ceil_div(k, scale_group(call)), error));
    ISO_TRY(iso_rule_input(call, SLOT, "slot", ISO_DTYPE_I32, 1, error));
    ISO_TRY(iso_rule_within(call, SLOT, "slot", 0, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_input(call, W, "w", ISO_DTYPE_E2M1, 3, error));
    ISO_TRY(iso_rule_within(call, W, "w", 0, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_within(call, W, "w", 1, 1, INT32_MAX, error));
    ISO_TRY(iso_rule_extent(call, W, "w", 2, k, error));
    ISO_TRY(iso_rule_input(call, WS, "ws", ISO_DTYPE_UE8M0, 3, error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 0, w->extent[0], error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 1, w->extent[1], error));
    ISO_TRY(iso_rule_extent(call, WS, "ws", 2, k / BLOCK, error));
    call->out[0] = iso_desc3(ISO_DTYPE_BF16, x->extent[0], expert->extent[1], w->extent[1]);
    iso_live_copy(&call->out[0], x, 1);
    return ISO_OK;
}

void iso_matmul_experts_fill(const iso_op_call *call, void *args)
{
    const iso_tensor_desc *x = &call->in[X];

    *(iso_matmul_experts_args *)args = (iso_matmul_experts_args){
        .rows = iso_live_of(x),
        .picks = (uint32_t)call->in[EXPERT].extent[1],
        .x_per_token = x->rank == 3 ? (uint32_t)x->extent[1] : 1,
        .k = (uint32_t)iso_desc_last(x),
        .n = (uint32_t)call->in[W].extent[1],
        .group = (uint32_t)scale_group(call),
        .experts = (uint32_t)call->in[SLOT].extent[0],
        .slots = (uint32_t)call->in[W].extent[0],
    };
}

uint64_t iso_matmul_experts_units(const void *args)
{
    const iso_matmul_experts_args *a = args;

    return a->n;
}

/* One row of x and one of w with their scales. */
typedef struct operands {
    const uint8_t *x, *xs, *w, *ws;
} operands;

/* The exact sum of the 32 products of a block, times the power of two of its scales. */
static float block_value(const operands *o, uint32_t begin, uint32_t group)
{
    const int32_t exponent = (int32_t)o->xs[begin / group] + o->ws[begin / BLOCK] - 254 - 10;
    int32_t sum = 0;

    for (uint32_t i = begin; i < begin + BLOCK; i++)             /* |sum| <= 88,080,384 */
        sum += lane_e2m1_int(iso_e2m1_at(o->w, i)) * lane_e4m3_int(o->x[i]);
    return lane_i32_f32(sum) * lane_pow2(exponent);
}

static float dot(const operands *o, uint32_t k, uint32_t group)
{
    iso_sum3 sum = {0};

    for (uint32_t begin = 0; begin < k; begin += LANE_CHUNK) {
        const uint32_t end = k - begin < LANE_CHUNK ? k : begin + LANE_CHUNK;
        float chunk = block_value(o, begin, group);

        for (uint32_t block = begin + BLOCK; block < end; block += BLOCK)
            chunk = chunk + block_value(o, block, group);
        iso_sum3_push(&sum, chunk);
    }
    return iso_sum3_end(&sum);
}

/* The slot of pick `pair`, or -1. */
static int64_t slot_of(const iso_matmul_experts_args *a, const int32_t *expert,
                       const int32_t *slot, uint64_t pair)
{
    const int32_t e = expert[pair];

    if (e < 0 || (uint32_t)e >= a->experts || slot[e] < 0 || (uint32_t)slot[e] >= a->slots)
        return -1;
    return slot[e];
}

void iso_matmul_experts_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_matmul_experts_args *a = args;
    const uint8_t *x = tensors->at[X], *xs = tensors->at[XS];
    const uint8_t *w = tensors->at[W], *ws = tensors->at[WS];
    const uint64_t groups = (a->k - 1) / a->group + 1;
    uint16_t *y = tensors->at[Y];
    uint32_t flags = 0;

    for (uint64_t n = units.begin; n < units.end; n++)
        for (uint64_t pair = 0; pair < (uint64_t)a->rows.count * a->picks; pair++) {
            const int64_t slot = slot_of(a, tensors->at[EXPERT], tensors->at[SLOT], pair);
            const uint64_t row = a->x_per_token == 1 ? pair / a->picks : pair;
            const uint64_t feature = (uint64_t)(slot < 0 ? 0 : slot) * a->n + n;
            const operands o = {x + row * a->k, xs + row * groups, w + feature * (a->k / 2),
                                ws + feature * (a->k / BLOCK)};

            if (slot < 0)
                flags |= ISO_FLAG_INDEX;
            y[pair * a->n + n] = slot < 0 ? 0
                               : (uint16_t)lane_bf16(dot(&o, a->k, a->group), &flags);
        }
    iso_flags_raise(tensors->flags, flags);
}

typedef struct shape {
    int64_t t, picks, n, k;
    bool row_per_pick;
} shape;

typedef struct bytes {
    int64_t x_low, x_high, w_low, w_high;
} bytes;

static const bytes mild = {115, 126, 110, 129};
enum { EXPERTS = 7, SLOTS = 5 };

static iso_case start(shape s, int64_t group, bytes b, const char *name)
{
    const int64_t scales = ceil_div(s.k, group);
    const iso_dtype e4m3 = ISO_DTYPE_E4M3, ue8m0 = ISO_DTYPE_UE8M0;
    iso_case test = iso_case_start(ISO_OP_ID_matmul_experts, "%s_%lldx%lldx%lldx%lld_g%lld%s",
                                   name, (long long)s.t, (long long)s.picks, (long long)s.n,
                                   (long long)s.k, (long long)group,
                                   s.row_per_pick ? "_rows" : "");

    iso_case_in(&test, X, s.row_per_pick ? iso_desc3(e4m3, s.t, s.picks, s.k)
                                         : iso_desc2(e4m3, s.t, s.k), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, XS, s.row_per_pick ? iso_desc3(ue8m0, s.t, s.picks, scales)
                                          : iso_desc2(ue8m0, s.t, scales), ISO_FILL_RANGE,
                b.x_low, b.x_high);
    iso_case_in(&test, EXPERT, iso_desc2(ISO_DTYPE_I32, s.t, s.picks), ISO_FILL_RANGE, 0,
                EXPERTS - 1);
    iso_case_in(&test, SLOT, iso_desc1(ISO_DTYPE_I32, EXPERTS), ISO_FILL_RANGE, 0, SLOTS - 1);
    iso_case_in(&test, W, iso_desc3(ISO_DTYPE_E2M1, SLOTS, s.n, s.k), ISO_FILL_CODES, 0, 0);
    iso_case_in(&test, WS, iso_desc3(ue8m0, SLOTS, s.n, s.k / BLOCK), ISO_FILL_RANGE, b.w_low,
                b.w_high);
    return test;
}

/* Largest block sums of both signs: codes 0x7e and 0xfe against +-6, and sums that cancel. */
static void make_largest(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X], *w = inputs[W];

    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i++)
        x[i] = (uint8_t)(0x7e - (i % 97 == 5) * 0x7d);           /* a few 0x01 */
    for (uint64_t i = 0; i < (uint64_t)iso_desc_elems(&test->call.in[W]); i++) {
        const uint64_t sign = i / BLOCK % 3 == 2 ? i % 2 : i / BLOCK % 3;

        iso_e2m1_put(w, i, (uint32_t)sign << 3 | 7u);
    }
}

/* Every e4m3 code that is not NaN against every e2m1 code. */
static void make_pairs(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X], *w = inputs[W];
    const int64_t k = test->call.in[X].extent[1];

    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i++)
        x[i] = (uint8_t)((i & 0x7f) == 0x7f ? 0 : i);
    for (uint64_t i = 0; i < (uint64_t)iso_desc_elems(&test->call.in[W]); i++)
        iso_e2m1_put(w, i, (uint32_t)(i / (uint64_t)k) & 15u);
}

/* The second half of k is the first with the sign of w turned: the sum is what the order of the
 * additions leaves. */
static void make_cancel(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X], *xs = inputs[XS], *w = inputs[W], *ws = inputs[WS];
    const int64_t half = iso_desc_last(&test->call.in[X]) / 2;
    const int64_t scales = iso_desc_last(&test->call.in[XS]) / 2;

    for (int64_t row = 0; row < iso_desc_rows(&test->call.in[X]); row++) {
        memcpy(x + (2 * row + 1) * half, x + 2 * row * half, (size_t)half);
        memcpy(xs + (2 * row + 1) * scales, xs + 2 * row * scales, (size_t)scales);
    }
    for (int64_t row = 0; row < iso_desc_rows(&test->call.in[W]); row++) {
        for (int64_t i = 0; i < half / 2; i++)
            w[(2 * row + 1) * half / 2 + i] = w[row * half + i] ^ 0x88;
        memcpy(ws + (2 * row + 1) * half / BLOCK, ws + 2 * row * half / BLOCK,
               (size_t)(half / BLOCK));
    }
}

/* Every second chunk of 128 k holds large codes only: kernels that split activations into digits
 * may leave the lowest one out there. */
static void make_large_codes(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X];

    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i++)
        if (i / 128 % 2 == 0) {
            x[i] |= 0x20;
            if ((x[i] & 0x7f) == 0x7f)
                x[i] ^= 1;
        }
}

/* Neighbours cancel: equal large activations against weights of opposite sign, but for one pair in
 * 97 that leaves a small code alone. What is left of the sum is the lowest digit. */
static void make_small_rest(const iso_case *test, void *const *inputs)
{
    uint8_t *x = inputs[X], *w = inputs[W];

    make_large_codes(test, inputs);
    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[X]); i += 2) {
        x[i] = (uint8_t)((x[i] | 0x20) == 0x7f ? 0x7e : x[i] | 0x20);
        x[i] = (uint8_t)((x[i] & 0x7f) == 0x7f ? x[i] ^ 1 : x[i]);
        x[i + 1] = x[i];
        if (i / 2 % 97 == 13) {
            x[i] = (uint8_t)(iso_case_random(test, 50, (uint32_t)i) & 0x9f);
            x[i + 1] = 0;
        }
    }
    for (int64_t i = 0; i < iso_desc_elems(&test->call.in[W]) / 2; i++)
        w[i] = (uint8_t)((w[i] & 15) | ((w[i] & 15) ^ 8) << 4);
}

static void make_low_expert(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((int32_t *)inputs[EXPERT])[1] = -1;
}

static void make_high_expert(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((int32_t *)inputs[EXPERT])[5] = EXPERTS;
}

static void make_low_slot(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((int32_t *)inputs[EXPERT])[4] = 2;
    ((int32_t *)inputs[SLOT])[2] = -1;
}

static void make_high_slot(const iso_case *test, void *const *inputs)
{
    (void)test;
    ((int32_t *)inputs[EXPERT])[0] = EXPERTS - 1;
    ((int32_t *)inputs[SLOT])[EXPERTS - 1] = SLOTS;
}

static void add_values(iso_case_sink *sink, int64_t group)
{
    static const struct {
        const char *name;
        bytes b;
        iso_case_make_fn *make;
        uint32_t flags;
    } value[] = {
        {"tiny", {105, 105, 64, 86}, NULL, 0},
        {"low_bytes", {105, 108, 64, 168}, NULL, 0},
        {"act_bytes", {105, 169, 64, 66}, NULL, 0},
        {"equal", {120, 120, 120, 120}, NULL, 0},
        {"largest", {120, 120, 120, 120}, make_largest, 0},
        {"large_codes", {115, 126, 110, 129}, make_large_codes, 0},
        {"small_rest", {120, 120, 115, 120}, make_small_rest, 0},
        {"low_expert", {115, 126, 110, 129}, make_low_expert, ISO_FLAG_INDEX},
        {"high_expert", {115, 126, 110, 129}, make_high_expert, ISO_FLAG_INDEX},
        {"low_slot", {115, 126, 110, 129}, make_low_slot, ISO_FLAG_INDEX},
        {"high_slot", {115, 126, 110, 129}, make_high_slot, ISO_FLAG_INDEX},
        {"overflow", {160, 169, 160, 168}, NULL, ISO_FLAG_RANGE},
    };
    iso_case test;

    for (size_t i = 0; i < ISO_COUNT_OF(value); i++) {
        test = start((shape){2, 3, 9, 1312, false}, group, value[i].b, value[i].name);
        test.make = value[i].make;
        test.flags_expected = value[i].flags;
        iso_case_add(sink, &test);
    }
    test = start((shape){2, 3, 9, 1536, false}, group, mild, "cancel");
    test.make = make_cancel;
    iso_case_add(sink, &test);
    test = start((shape){1, 6, 17, 256, false}, group, mild, "pairs");
    test.make = make_pairs;
    iso_case_add(sink, &test);
}

void iso_matmul_experts_cases(iso_case_sink *sink)
{
    static const shape shapes[] = {
        {1, 1, 1, 32, false}, {2, 3, 7, 64, false}, {3, 2, 33, 96, true}, {1, 6, 5, 128, false},
        {2, 3, 9, 160, true}, {5, 1, 7, 224, false}, {2, 2, 8, 256, true}, {2, 6, 4, 512, false},
        {1, 3, 5, 1056, true}, {1, 6, 16, 1152, false}, {1, 6, 3, 2304, true},
        {1, 6, 8, 5120, false}, {17, 2, 3, 96, false}, {130, 2, 5, 64, true},
        {1, 6, 128, 5120, false}, {0, 6, 7, 64, false}, {3, 0, 7, 64, false},
    };
    static const int64_t groups[] = {32, 128};
    iso_case test;

    for (size_t g = 0; g < ISO_COUNT_OF(groups); g++) {
        for (size_t i = 0; i < ISO_COUNT_OF(shapes); i++) {
            test = start(shapes[i], groups[g], mild, "mild");
            iso_case_add(sink, &test);
        }
        add_values(sink, groups[g]);
        for (int rows = 0; rows < 2; rows++) {
            test = start((shape){9, 2, 7, 160, rows != 0}, groups[g], mild, "live5");
            iso_case_live(&test, X, 1);
            iso_case_live(&test, XS, 1);
            iso_case_live(&test, EXPERT, 1);
            test.live = 5;
            iso_case_add(sink, &test);
        }
    }
}
