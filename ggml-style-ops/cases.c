#include "ggml-style-ops/cases.h"

#include "core/hash.h"
#include "ggml-style-ops/lane/bf16.h"
#include "ggml-style-ops/lane/philox.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct seed {
    uint32_t key[2], counter[2];
} seed;

enum { STREAM_OF_INPUTS = 0, STREAM_OF_MAKE = 1 };

/* hash(operator, 0, case, 0, stream, index): the two strings end with their NULs. */
static seed seed_of(const iso_case *test, uint32_t stream, uint32_t index)
{
    const uint32_t number[2] = {stream, index};
    iso_hasher hasher;
    uint64_t hash[2];

    iso_hasher_init(&hasher);
    iso_hasher_add(&hasher, test->call.op->name, strlen(test->call.op->name) + 1);
    iso_hasher_add(&hasher, test->name, strlen(test->name) + 1);
    iso_hasher_add(&hasher, number, sizeof number);
    iso_hasher_end(&hasher, hash);
    return (seed){
        .key = {(uint32_t)hash[0], (uint32_t)(hash[0] >> 32)},
        .counter = {(uint32_t)hash[1], (uint32_t)(hash[1] >> 32)},
    };
}

static void words_of(const seed *s, uint64_t block, uint32_t word[4])
{
    const struct lane_philox counter = {(uint32_t)block, (uint32_t)(block >> 32), s->counter[0],
                                        s->counter[1]};
    const struct lane_philox out = lane_philox4x32(counter, s->key[0], s->key[1]);

    word[0] = out.c0;
    word[1] = out.c1;
    word[2] = out.c2;
    word[3] = out.c3;
}

/* Any bits; 16 bytes per Philox block. */
static void fill_raw(const seed *s, void *data, uint64_t bytes)
{
    unsigned char *at = data;
    uint32_t word[4];

    for (uint64_t done = 0; done < bytes; done += sizeof word) {
        const uint64_t rest = bytes - done;

        words_of(s, done / sizeof word, word);
        memcpy(at + done, word, rest < sizeof word ? (size_t)rest : sizeof word);
    }
}

static void fill_codes(const seed *s, iso_dtype dtype, void *data, uint64_t bytes)
{
    unsigned char *code = data;

    ISO_ASSERT(dtype == ISO_DTYPE_E4M3 || dtype == ISO_DTYPE_E2M1);
    fill_raw(s, data, bytes);
    for (uint64_t i = 0; dtype == ISO_DTYPE_E4M3 && i < bytes; i++)
        if ((code[i] & 0x7f) == 0x7f)
            code[i] = (unsigned char)(code[i] ^ 1);              /* NaN -> +-448 */
}

/* ---- floats ---- */

/* Sign and mantissa from `m`, exponent field low .. low + count - 1 from `r`. */
static uint32_t log_uniform(uint32_t r, uint32_t m, uint32_t low, uint32_t count)
{
    return (m & 0x80000000u) | (low + (r >> 4) % count) << 23 | (m & 0x7fffffu);
}

/* Element `index` of a row of `last`, as the bits of an f32, from two random words. */
static uint32_t float_bits(iso_fill fill, uint32_t r, uint32_t m, uint64_t index, uint64_t last)
{
    static const float ties[8] = {0.0f, 0.0f, 0.5f, 0.5f, 1.0f, 1.0f, -1.0f, 2.0f};

    switch (fill) {
    case ISO_FILL_MILD:
        return r % 16 == 0 ? 0 : log_uniform(r, m, 120, 9);
    case ISO_FILL_TINY:
        return r % 16 == 0 ? 0 : log_uniform(r, m, 77, 12);
    case ISO_FILL_WIDE:
        return r % 16 == 0 ? 0 : log_uniform(r, m, 77, 70);
    case ISO_FILL_HUGE:
        return log_uniform(r, m, 167, 9);                        /* < 2^49: rounds inside 2^50 */
    case ISO_FILL_TIES:
        return lane_bits(ties[r % 8]);
    case ISO_FILL_CONSTANT:
        return lane_bits(1.0f);
    case ISO_FILL_SORTED:
        return lane_bits((float)((int64_t)index - (int64_t)last / 2) * 0.0625f);
    default:
        ISO_ASSERT(false && "this fill is not for floats");
        return 0;
    }
}

/* Pair i, i + 1 is x, -x; the second of every eighth pair differs in the last bit of a bf16. */
static uint32_t cancel_bits(const uint32_t word[4], uint64_t index)
{
    const uint32_t x = log_uniform(word[0], word[1], 120, 9);

    if (index % 2 == 0)
        return x;
    return (x ^ 0x80000000u) ^ (index % 16 == 15 ? 0x10000u : 0);
}

/* One nonzero value per row, +-[1, 2), at a random place. */
static uint32_t onehot_bits(const seed *s, uint64_t row, uint64_t index, uint64_t last)
{
    uint32_t word[4];

    words_of(s, row, word);
    if (index != word[0] % last)
        return 0;
    return log_uniform(0, word[1], 127, 1);
}

static void put_float(iso_dtype dtype, void *data, uint64_t index, uint32_t bits)
{
    uint32_t flags = 0;

    if (dtype == ISO_DTYPE_F32)
        ((uint32_t *)data)[index] = bits;
    else
        ((uint16_t *)data)[index] = (uint16_t)lane_bf16(lane_float(bits), &flags);
}

static void fill_floats(const seed *s, const iso_tensor_desc *desc, iso_fill fill, void *data)
{
    const uint64_t elems = (uint64_t)iso_desc_elems(desc), last = (uint64_t)iso_desc_last(desc);
    uint32_t word[4] = {0};

    for (uint64_t i = 0; i < elems; i++) {
        const uint64_t odd = i % 2, index = i % last;
        uint32_t bits;

        if (!odd)
            words_of(s, i / 2, word);
        if (fill == ISO_FILL_CANCEL)
            bits = cancel_bits(word, i);
        else if (fill == ISO_FILL_ONEHOT)
            bits = onehot_bits(s, i / last, index, last);
        else
            bits = float_bits(fill, word[2 * odd], word[2 * odd + 1], index, last);
        put_float(desc->dtype, data, i, bits);
    }
}

/* ---- integers ---- */

static void put_integer(iso_dtype dtype, void *data, uint64_t index, int64_t value)
{
    switch (dtype) {
    case ISO_DTYPE_E4M3:
    case ISO_DTYPE_UE8M0:
    case ISO_DTYPE_U8:
    case ISO_DTYPE_I8:
        ((uint8_t *)data)[index] = (uint8_t)value;
        break;
    case ISO_DTYPE_I32:
    case ISO_DTYPE_U32:
        ((uint32_t *)data)[index] = (uint32_t)value;
        break;
    case ISO_DTYPE_I64:
        ((int64_t *)data)[index] = value;
        break;
    case ISO_DTYPE_F32:
    case ISO_DTYPE_BF16:
        put_float(dtype, data, index, lane_bits((float)value));
        break;
    default:
        ISO_ASSERT(false && "RANGE is not for this dtype");
    }
}

static void fill_range(const seed *s, const iso_tensor_desc *desc, int64_t lo, int64_t hi,
                       void *data)
{
    const uint64_t elems = (uint64_t)iso_desc_elems(desc);
    const uint64_t span = (uint64_t)hi - (uint64_t)lo + 1;       /* 0: all 2^64 */
    uint32_t word[4] = {0};

    ISO_ASSERT(lo <= hi);
    for (uint64_t i = 0; i < elems; i++) {
        const uint64_t odd = i % 2;
        uint64_t value;

        if (!odd)
            words_of(s, i / 2, word);
        value = (uint64_t)word[2 * odd + 1] << 32 | word[2 * odd];
        if (span != 0)
            value = (uint64_t)lo + value % span;
        put_integer(desc->dtype, data, i, (int64_t)value);
    }
}

void iso_case_fill_input(const iso_case *test, uint32_t index, void *data)
{
    const iso_tensor_desc *desc = &test->call.in[index];
    const iso_case_input *input = &test->input[index];
    const seed s = seed_of(test, STREAM_OF_INPUTS, index);

    ISO_ASSERT(index < test->call.op->input_count);
    if (!iso_desc_present(desc) || iso_desc_elems(desc) == 0)
        return;
    switch (input->fill) {
    case ISO_FILL_ZERO:
        memset(data, 0, (size_t)iso_desc_bytes(desc));
        break;
    case ISO_FILL_RAW:
        fill_raw(&s, data, iso_desc_bytes(desc));
        break;
    case ISO_FILL_CODES:
        fill_codes(&s, desc->dtype, data, iso_desc_bytes(desc));
        break;
    case ISO_FILL_RANGE:
        fill_range(&s, desc, input->lo, input->hi, data);
        break;
    default:
        ISO_ASSERT(desc->dtype == ISO_DTYPE_F32 || desc->dtype == ISO_DTYPE_BF16);
        fill_floats(&s, desc, input->fill, data);
    }
}

uint32_t iso_case_random(const iso_case *test, uint32_t stream, uint32_t n)
{
    const seed s = seed_of(test, STREAM_OF_MAKE, stream);
    uint32_t word[4];

    words_of(&s, n / 4, word);
    return word[n % 4];
}

/* ---- building a case ---- */

iso_case iso_case_start(iso_op_id id, const char *format, ...)
{
    iso_case test = {0};
    va_list list;
    int length;

    test.call.op = iso_op_get(id);
    va_start(list, format);
    length = vsnprintf(test.name, sizeof test.name, format, list);
    va_end(list);
    ISO_ASSERT(length > 0 && (size_t)length < sizeof test.name);
    ISO_ASSERT(strspn(test.name, "abcdefghijklmnopqrstuvwxyz0123456789_") == (size_t)length);
    return test;
}

void iso_case_in(iso_case *test, uint32_t index, iso_tensor_desc desc, iso_fill fill, int64_t lo,
                 int64_t hi)
{
    ISO_ASSERT(index < test->call.op->input_count);
    test->call.in[index] = desc;
    test->input[index] = (iso_case_input){fill, lo, hi};
}

void iso_case_params(iso_case *test, const void *params, size_t bytes)
{
    ISO_ASSERT(bytes == test->call.op->params_bytes && bytes <= sizeof test->call.params);
    memcpy(test->call.params, params, bytes);
}

void iso_case_live(iso_case *test, uint32_t index, uint32_t mult)
{
    ISO_ASSERT(index < test->call.op->input_count && iso_desc_present(&test->call.in[index]));
    test->call.in[index].live_scalar = 1;
    test->call.in[index].live_mult = mult;
}

void iso_case_add(iso_case_sink *sink, const iso_case *test)
{
    sink->add(sink->context, test);
}
