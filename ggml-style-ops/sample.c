/* sample: draw a token from the filtered softmax of a row of logits.
 *   w_i = trunc(exp((l_i - max) * inv_t) * 2^31); top-k, top-p, min-p set w_i = 0, in this order,
 *   each on what is left; the token is the first whose prefix sum exceeds floor(R * sum w / 2^64),
 *   R from Philox4x32-10 with key seed and counter (position, 0, draw 0, stream 0).
 * Shapes:   logits f32 [L,V]; params u32 [L,8] (the words of sample.h); id i32 [L]; scratch u32
 *           [L,V]: the weights. L >= 0, V >= 1.
 * Units:    one row.
 * Order:    numerics 18: integers after the exponential; prefix sums in ascending id.
 * Ranges:   logits in the domain; sum w < 2^62.
 * Params:   none; per row: inv_t in (0, 2^50) unless greedy (a temperature below 1e-5).
 * Aliasing: none.
 * Errors:   ISO_BAD_SHAPE; ISO_BAD_DTYPE. ISO_FLAG_RANGE and the greedy token if inv_t is not in
 *           (0, 2^50).
 * Source:   released inference/generate.py draws argmax(p / e), e ~ Exp(1); the same distribution
 *           on a grid of 2^-31, isobit's own random stream. */
#include "ggml-style-ops/sample.h"

#include "ggml-style-ops/args.h"
#include "ggml-style-ops/cases.h"
#include "ggml-style-ops/params.h"
#include "ggml-style-ops/select.h"
#include "ggml-style-ops/shape_rules.h"

enum { LOGITS, PARAMS, ID, WEIGHT };

iso_status iso_sample_infer(iso_op_call *call, iso_error *error)
{
    const iso_tensor_desc *logits = &call->in[LOGITS];

    ISO_TRY(iso_rule_input(call, LOGITS, "logits", ISO_DTYPE_F32, 2, error));
    ISO_TRY(iso_rule_within(call, LOGITS, "logits", 1, 1, 1 << 30, error));
    ISO_TRY(iso_rule_input(call, PARAMS, "params", ISO_DTYPE_U32, 2, error));
    ISO_TRY(iso_rule_extent(call, PARAMS, "params", 0, logits->extent[0], error));
    ISO_TRY(iso_rule_extent(call, PARAMS, "params", 1, ISO_SAMPLE_WORDS, error));
    call->out[0] = iso_desc1(ISO_DTYPE_I32, logits->extent[0]);
    iso_live_copy(&call->out[0], logits, 1);
    return ISO_OK;
}

iso_tensor_desc iso_sample_scratch(const iso_op_call *call)
{
    const iso_tensor_desc *logits = &call->in[LOGITS];

    return iso_desc2(ISO_DTYPE_U32, logits->extent[0], logits->extent[1]);
}

void iso_sample_fill(const iso_op_call *call, void *args)
{
    *(iso_sample_args *)args = (iso_sample_args){
        .rows = iso_live_of(&call->in[LOGITS]),
        .dim = (uint32_t)call->in[LOGITS].extent[1],
    };
}

uint64_t iso_sample_units(const void *args)
{
    const iso_sample_args *a = args;

    return a->rows.count;
}

typedef struct token_list {
    const float *logits;
    uint32_t *weight;
    uint32_t count;
    uint32_t *flags;
} token_list;

static uint32_t token_high(const token_list *list, uint32_t i)
{
    return lane_key_high(list->logits[i], list->flags);
}

static uint32_t best_token(const token_list *list)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < list->count; i++)
        if (token_high(list, i) > token_high(list, best))
            best = i;
    return best;
}

static uint64_t count_tokens(const void *context, uint32_t high)
{
    const token_list *list = context;
    uint64_t count = 0;

    for (uint32_t i = 0; i < list->count; i++)
        count += token_high(list, i) >= high;
    return count;
}

static uint64_t sum_weights(const void *context, uint32_t high)
{
    const token_list *list = context;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < list->count; i++)
        sum += token_high(list, i) >= high ? list->weight[i] : 0;
    return sum;
}

static void keep_top_k(const token_list *list, uint32_t k)
{
    iso_cut cut = iso_cut_find(count_tokens, list, k);

    for (uint32_t i = 0; i < list->count; i++)
        if (!iso_cut_take(&cut, token_high(list, i), 1))
            list->weight[i] = 0;
}

/* The shortest prefix, best token first, with sum >= max(1, floor(p * W / 2^32)). */
static void keep_top_p(const token_list *list, uint32_t p)
{
    const uint64_t total = sum_weights(list, 0);
    const uint64_t target = (total >> 32) * p + ((total & UINT32_MAX) * p >> 32);
    iso_cut cut = iso_cut_find(sum_weights, list, target == 0 ? 1 : target);

    for (uint32_t i = 0; i < list->count; i++)
        if (!iso_cut_take(&cut, token_high(list, i), list->weight[i]))
            list->weight[i] = 0;
}

static uint32_t sample_token(const token_list *list, const uint32_t *params)
{
    const uint32_t inv_bits = params[ISO_SAMPLE_INV_T], best = best_token(list);
    const float inv = lane_float(inv_bits), max = list->logits[best];

    if ((params[ISO_SAMPLE_FLAGS] & ISO_SAMPLE_GREEDY) != 0)
        return best;
    if (inv_bits == 0 || inv_bits >= LANE_CLEAN_MAX) {       /* also negative, Inf, NaN */
        *list->flags |= ISO_FLAG_RANGE;
        return best;
    }
    for (uint32_t i = 0; i < list->count; i++)
        list->weight[i] = iso_sample_weight(list->logits[i], max, inv);
    if (params[ISO_SAMPLE_TOP_K] != 0)
        keep_top_k(list, params[ISO_SAMPLE_TOP_K]);
    if (params[ISO_SAMPLE_TOP_P] != 0)
        keep_top_p(list, params[ISO_SAMPLE_TOP_P]);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->weight[i] < params[ISO_SAMPLE_MIN_P])
            list->weight[i] = 0;
    return iso_sample_pick(list->weight, list->count,
                           iso_sample_random(params[ISO_SAMPLE_SEED_LOW],
                                             params[ISO_SAMPLE_SEED_HIGH],
                                             params[ISO_SAMPLE_POSITION], 0, 0));
}

void iso_sample_reference(const void *args, const iso_tensors *tensors, iso_range units)
{
    const iso_sample_args *a = args;
    const float *logits = tensors->at[LOGITS];
    const uint32_t *params = tensors->at[PARAMS];
    int32_t *ids = tensors->at[ID];
    uint32_t *weight = tensors->at[WEIGHT], flags = 0;

    for (uint64_t row = units.begin; row < units.end; row++) {
        const token_list list = {logits + row * a->dim, weight + row * a->dim, a->dim, &flags};

        ids[row] = (int32_t)sample_token(&list, params + row * ISO_SAMPLE_WORDS);
    }
    iso_flags_raise(tensors->flags, flags);
}

/* ---- cases ---- */

typedef struct sample_case {
    const char *name;
    int64_t rows, dim;
    iso_fill logits;
    float inv_t;
    uint32_t top_k, top_p, min_p, flags;
} sample_case;

static iso_case start_case(const sample_case *c)
{
    iso_case test = iso_case_start(ISO_OP_ID_sample, "%s_%lldx%lld_k%u_p%x_m%x", c->name,
                                   (long long)c->rows, (long long)c->dim, c->top_k, c->top_p,
                                   c->min_p);

    iso_case_in(&test, LOGITS, iso_desc2(ISO_DTYPE_F32, c->rows, c->dim), c->logits, -20, 3);
    iso_case_in(&test, PARAMS, iso_desc2(ISO_DTYPE_U32, c->rows, ISO_SAMPLE_WORDS), ISO_FILL_RAW,
                0, 0);
    return test;
}

/* Seeds and positions stay random; the other words come from the name's row, kept in lo, hi. */
static void make_params(const iso_case *test, void *const *inputs)
{
    const uint64_t inv_and_k = (uint64_t)test->input[PARAMS].lo;
    const uint64_t p_and_flags = (uint64_t)test->input[PARAMS].hi;
    uint32_t *params = inputs[PARAMS];

    for (int64_t row = 0; row < test->call.in[PARAMS].extent[0]; row++) {
        uint32_t *p = params + row * ISO_SAMPLE_WORDS;

        p[ISO_SAMPLE_INV_T] = (uint32_t)inv_and_k;
        p[ISO_SAMPLE_TOP_K] = (uint32_t)(inv_and_k >> 32);
        p[ISO_SAMPLE_TOP_P] = (uint32_t)p_and_flags;
        p[ISO_SAMPLE_MIN_P] = (uint32_t)(p_and_flags >> 33) << 1;
        p[ISO_SAMPLE_FLAGS] = (uint32_t)(p_and_flags >> 32) & ISO_SAMPLE_GREEDY;
    }
}

static void add_case(iso_case_sink *sink, const sample_case *c, uint32_t live, uint32_t flags)
{
    iso_case test = start_case(c);

    test.input[PARAMS].lo = (int64_t)((uint64_t)c->top_k << 32 | lane_bits(c->inv_t));
    test.input[PARAMS].hi = (int64_t)((uint64_t)(c->min_p | c->flags) << 32 | c->top_p);
    test.make = make_params;
    test.flags_expected = flags;
    if (live != 0) {
        iso_case_live(&test, LOGITS, 1);
        iso_case_live(&test, PARAMS, 1);
        test.live = live;
    }
    iso_case_add(sink, &test);
}

void iso_sample_cases(iso_case_sink *sink)
{
    static const sample_case rows[] = {
        {"empty", 0, 16, ISO_FILL_MILD, 1.0f, 0, 0, 0, 0},
        {"one", 3, 1, ISO_FILL_MILD, 1.0f, 0, 0, 0, 0},
        {"greedy", 5, 61, ISO_FILL_MILD, 0.0f, 0, 0, 0, ISO_SAMPLE_GREEDY},
        {"plain", 61, 31, ISO_FILL_MILD, 1.0f, 0, 0, 0, 0},
        {"hot", 31, 257, ISO_FILL_MILD, 0.25f, 0, 0, 0, 0},
        {"cold", 31, 257, ISO_FILL_MILD, 100000.0f, 0, 0, 0, 0},
        {"top_k", 31, 61, ISO_FILL_MILD, 1.25f, 1, 0, 0, 0},
        {"top_k", 31, 61, ISO_FILL_MILD, 1.25f, 7, 0, 0, 0},
        {"top_k", 31, 61, ISO_FILL_MILD, 1.25f, 61, 0, 0, 0},
        {"top_k", 31, 61, ISO_FILL_MILD, 1.25f, UINT32_MAX, 0, 0, 0},
        {"top_k_ties", 31, 61, ISO_FILL_TIES, 1.25f, 29, 0, 0, 0},
        {"top_p", 31, 61, ISO_FILL_MILD, 1.25f, 0, 1, 0, 0},
        {"top_p", 31, 61, ISO_FILL_MILD, 1.25f, 0, 0x80000000u, 0, 0},
        {"top_p", 31, 61, ISO_FILL_MILD, 1.25f, 0, UINT32_MAX, 0, 0},
        {"top_p_ties", 31, 61, ISO_FILL_TIES, 1.25f, 0, 0xc0000000u, 0, 0},
        {"top_p_equal", 31, 61, ISO_FILL_CONSTANT, 1.25f, 0, 0x40000000u, 0, 0},
        {"min_p", 31, 61, ISO_FILL_MILD, 1.25f, 0, 0, 0x10000000u, 0},
        {"min_p", 31, 61, ISO_FILL_MILD, 1.25f, 0, 0, 0x80000000u, 0},
        {"all", 31, 257, ISO_FILL_MILD, 1.25f, 40, 0xe6666666u, 0x06666666u, 0},
        {"steep", 31, 61, ISO_FILL_RANGE, 1.0f, 0, 0xf0000000u, 0, 0},
        {"zero", 31, 61, ISO_FILL_ZERO, 1.0f, 5, 0, 0, 0},
        {"tiny", 31, 61, ISO_FILL_TINY, 1.0f, 0, 0, 0, 0},
        {"wide", 31, 61, ISO_FILL_WIDE, 1.0f, 0, 0x80000000u, 0, 0},
        {"huge", 31, 61, ISO_FILL_HUGE, 1.0f, 3, 0, 0, 0},
        {"real", 1, 129280, ISO_FILL_MILD, 1.25f, 50, 0xf3333333u, 0, 0},
    };
    const sample_case live = {"live", 6, 33, ISO_FILL_MILD, 1.0f, 5, 0, 0, 0};
    const sample_case inv_zero = {"inv_zero", 2, 33, ISO_FILL_MILD, 0.0f, 0, 0, 0, 0};
    const sample_case inv_minus = {"inv_minus", 2, 33, ISO_FILL_MILD, -1.0f, 0, 0, 0, 0};
    const sample_case inv_large = {"inv_large", 2, 33, ISO_FILL_MILD, 0x1p50f, 0, 0, 0, 0};
    const sample_case raw = {"raw", 2, 65, ISO_FILL_RAW, 1.0f, 5, 0x80000000u, 0, 0};

    for (size_t i = 0; i < ISO_COUNT_OF(rows); i++)
        add_case(sink, &rows[i], 0, 0);
    add_case(sink, &live, 4, 0);
    add_case(sink, &inv_zero, 0, ISO_FLAG_RANGE);
    add_case(sink, &inv_minus, 0, ISO_FLAG_RANGE);
    add_case(sink, &inv_large, 0, ISO_FLAG_RANGE);
    add_case(sink, &raw, 0, ISO_FLAG_RANGE);
}
