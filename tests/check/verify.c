#include "tests/check/check.h"

void check_poison(void *data, uint64_t bytes, uint32_t pattern)
{
    static const unsigned char signalling[2] = {0xa0, 0x7f};     /* bf16 7fa0, f32 7fa07fa0 */
    unsigned char *p = data;

    if (pattern == 0) {
        memset(data, 0xff, (size_t)bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i++)
        p[i] = signalling[i % 2];
}

static bool is_poison(const unsigned char *data, uint64_t begin, uint64_t end, uint32_t pattern)
{
    for (uint64_t i = begin; i < end; i++)
        if (data[i] != (pattern == 0 ? 0xff : i % 2 == 0 ? 0xa0 : 0x7f))
            return false;
    return true;
}

/* ---- differences ---- */

static uint64_t element(const check_operand *operand, const unsigned char *data, uint64_t index)
{
    const uint32_t bytes = iso_dtype_block_bytes(operand->desc.dtype);
    uint64_t value = 0;

    if (operand->desc.dtype == ISO_DTYPE_E2M1)
        return (uint32_t)data[index / 2] >> 4 * (index % 2) & 15u;
    memcpy(&value, data + index * bytes, bytes);             /* little-endian */
    return value;
}

/* Position of a float among the floats; other types as they are. */
static int64_t ordinal(iso_dtype dtype, uint64_t bits)
{
    if (dtype == ISO_DTYPE_F32)
        return bits >> 31 ? -(int64_t)(bits & 0x7fffffffu) : (int64_t)bits;
    if (dtype == ISO_DTYPE_BF16)
        return bits >> 15 ? -(int64_t)(bits & 0x7fffu) : (int64_t)bits;
    return (int64_t)bits;
}

void check_difference(const check_operand *operand, const unsigned char *got, const char *what,
                      char text[CHECK_TEXT])
{
    const iso_dtype dtype = operand->desc.dtype;
    const uint64_t count = operand->live_bytes / iso_dtype_block_bytes(dtype)
                         * iso_dtype_block_elems(dtype);
    uint64_t differing = 0, first = 0;
    int64_t distance;

    for (uint64_t i = 0; i < count; i++)
        if (element(operand, got, i) != element(operand, operand->expected, i) && differing++ == 0)
            first = i;
    distance = ordinal(dtype, element(operand, got, first))
             - ordinal(dtype, element(operand, operand->expected, first));
    snprintf(text, CHECK_TEXT, "%s [%llu]: %llx, expected %llx, %lld ulp; %llu of %llu differ",
             what, (unsigned long long)first,
             (unsigned long long)element(operand, got, first),
             (unsigned long long)element(operand, operand->expected, first),
             (long long)(distance < 0 ? -distance : distance), (unsigned long long)differing,
             (unsigned long long)count);
}

/* ---- one run ---- */

static bool verify_input(const check_subject *s, uint32_t i, const unsigned char *at,
                         char text[CHECK_TEXT])
{
    const check_operand *operand = &s->operand[i];
    uint64_t byte = 0;

    if (operand->bytes == 0 || memcmp(at, operand->value, (size_t)operand->bytes) == 0)
        return true;
    while (at[byte] == operand->value[byte])
        byte++;
    snprintf(text, CHECK_TEXT, "input %u was changed at byte %llu of %llu", i,
             (unsigned long long)byte, (unsigned long long)operand->bytes);
    return false;
}

static bool verify_output(const check_subject *s, uint32_t i, const check_trial *trial,
                          char text[CHECK_TEXT])
{
    const check_operand *operand = &s->operand[i];
    const unsigned char *at = trial->at[i];
    char what[32];

    snprintf(what, sizeof what, operand->role == CHECK_STATE ? "state" : "output %u",
             i - s->call.op->input_count);
    if (s->test->flags_expected == 0 && operand->live_bytes != 0
        && memcmp(at, operand->expected, (size_t)operand->live_bytes) != 0) {
        check_difference(operand, at, what, text);
        return false;
    }
    if (!is_poison(at, operand->live_bytes, operand->bytes, trial->pattern)) {
        snprintf(text, CHECK_TEXT, "%s: written past its %llu live bytes", what,
                 (unsigned long long)operand->live_bytes);
        return false;
    }
    return true;
}

bool check_verify(const check_subject *s, const check_trial *trial, char text[CHECK_TEXT])
{
    if (trial->flags != s->test->flags_expected) {
        snprintf(text, CHECK_TEXT, "flags are %u, expected %u", trial->flags,
                 s->test->flags_expected);
        return false;
    }
    for (uint32_t i = 0; i < s->operand_count; i++) {
        const check_role role = s->operand[i].role;

        if (role == CHECK_INPUT && !verify_input(s, i, trial->at[i], text))
            return false;
        if ((role == CHECK_OUTPUT || role == CHECK_STATE) && !verify_output(s, i, trial, text))
            return false;
    }
    return true;
}

bool check_verify_margin(const check_subject *s, uint32_t operand, const unsigned char *margin,
                         const char *side, char text[CHECK_TEXT])
{
    for (uint32_t i = 0; i < CHECK_MARGIN; i++)
        if (margin[i] != CHECK_MARGIN_BYTE) {
            snprintf(text, CHECK_TEXT, "guard zone %s operand %u of %u was written", side,
                     operand, s->operand_count);
            return false;
        }
    return true;
}
