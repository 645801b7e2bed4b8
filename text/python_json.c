#include "text/python_json.h"

#include "core/check.h"

#include <inttypes.h>
#include <string.h>

void iso_python_json_add_string(iso_chars *out, const char *text, size_t bytes)
{
    static const char escaped[] = "\"\\\n\r\t\b\f";
    static const char letters[] = "\"\\nrtbf";

    iso_chars_add(out, "\"", 1);
    for (size_t i = 0; i < bytes; i++) {
        const char *found = text[i] == '\0' ? NULL : strchr(escaped, text[i]);
        char code[8];

        if (found != NULL) {
            iso_chars_add(out, "\\", 1);
            iso_chars_add(out, &letters[found - escaped], 1);
        } else if ((uint8_t)text[i] < 0x20) {
            snprintf(code, sizeof code, "\\u%04x", (unsigned)(uint8_t)text[i]);
            iso_chars_add_string(out, code);
        } else {
            iso_chars_add(out, &text[i], 1);
        }
    }
    iso_chars_add(out, "\"", 1);
}

/* A positive real as digits: 0.d1d2d3... * 10^point. */
typedef struct decimal {
    char digits[18];         /* NUL-terminated */
    int point;
} decimal;

/* Rounds to `count` digits. printf's decimal point, which depends on the locale, is skipped. */
static void round_to(double value, int count, decimal *out)
{
    char text[64];
    size_t used = 0;
    const char *c = text;

    snprintf(text, sizeof text, "%.*e", count - 1, value);
    for (; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9')
            out->digits[used++] = *c;
    out->point = (int)strtol(c + 1, NULL, 10) + 1;
    out->digits[used] = '\0';
}

static double value_of(const decimal *number)
{
    char text[48];

    snprintf(text, sizeof text, "%se%d", number->digits,
             number->point - (int)strlen(number->digits));
    return strtod(text, NULL);
}

/* The next larger decimal with the same number of digits, of which at least one is not a 9. */
static void increment(decimal *number)
{
    size_t i = strlen(number->digits) - 1;

    for (; number->digits[i] == '9'; i--)
        number->digits[i] = '0';
    number->digits[i]++;
}

/* The shortest decimal that reads back as `value`, and the nearest of these. At a power of two the
 * doubles below are closer than those above, so that the rounded decimal may read back as another
 * double while the next one up does not. */
static void shortest(double value, decimal *out)
{
    for (int count = 1; count < 17; count++) {
        round_to(value, count, out);
        if (value_of(out) == value)
            return;
        if (value_of(out) < value && strspn(out->digits, "9") < (size_t)count) {
            increment(out);
            if (value_of(out) == value)
                return;
        }
    }
    round_to(value, 17, out);
}

/* As Python's repr: positional from 1e-4 to below 1e16, with ".0" for whole numbers. */
static void add_real(iso_chars *out, double value)
{
    decimal number;
    char exponent[16];
    int digit_count;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (bits >> 63 != 0) {
        iso_chars_add(out, "-", 1);
        value = -value;
    }
    if (value == 0) {
        iso_chars_add(out, "0.0", 3);
        return;
    }
    shortest(value, &number);
    digit_count = (int)strlen(number.digits);
    while (digit_count > 1 && number.digits[digit_count - 1] == '0')
        digit_count--;
    if (number.point > 16 || number.point < -3) {
        iso_chars_add(out, number.digits, 1);
        if (digit_count > 1)
            iso_chars_add(out, ".", 1);
        iso_chars_add(out, number.digits + 1, (size_t)digit_count - 1);
        snprintf(exponent, sizeof exponent, "e%c%02d", number.point > 0 ? '+' : '-',
                 abs(number.point - 1));
        iso_chars_add_string(out, exponent);
        return;
    }
    if (number.point <= 0)
        iso_chars_add(out, "0.", 2);
    for (int i = number.point; i < 0; i++)
        iso_chars_add(out, "0", 1);
    for (int i = 0; i < digit_count || i < number.point; i++) {
        if (i == number.point && i > 0)
            iso_chars_add(out, ".", 1);
        iso_chars_add(out, i < digit_count ? &number.digits[i] : "0", 1);
    }
    if (number.point >= digit_count)
        iso_chars_add(out, ".0", 2);
}

static void add_object(iso_chars *out, const iso_json *object)
{
    iso_json_cursor cursor = {0};
    const iso_json *value;
    const char *key, *between = "";

    iso_chars_add(out, "{", 1);
    while (iso_json_next(object, &cursor, &key, &value)) {
        iso_chars_add_string(out, between);
        iso_python_json_add_string(out, key, strlen(key));
        iso_chars_add(out, ": ", 2);
        iso_python_json_add(out, value);
        between = ", ";
    }
    iso_chars_add(out, "}", 1);
}

static void add_array(iso_chars *out, const iso_json *array)
{
    iso_chars_add(out, "[", 1);
    for (size_t i = 0; i < iso_json_size(array); i++) {
        if (i != 0)
            iso_chars_add(out, ", ", 2);
        iso_python_json_add(out, iso_json_at(array, i));
    }
    iso_chars_add(out, "]", 1);
}

/* Recursion is as deep as the JSON parser allows nesting (2,048). */
void iso_python_json_add(iso_chars *out, const iso_json *value)
{
    char number[24];
    const char *text;
    size_t bytes = 0;
    int64_t integer = 0;
    double real = 0;
    bool flag = false;

    switch (iso_json_type_of(value)) {
    case ISO_JSON_NULL:
        iso_chars_add_string(out, "null");
        break;
    case ISO_JSON_BOOL:
        (void)iso_json_bool(value, &flag);
        iso_chars_add_string(out, flag ? "true" : "false");
        break;
    case ISO_JSON_INT:
        (void)iso_json_int(value, &integer);
        snprintf(number, sizeof number, "%" PRId64, integer);
        iso_chars_add_string(out, number);
        break;
    case ISO_JSON_REAL:
        (void)iso_json_number(value, &real);
        add_real(out, real);
        break;
    case ISO_JSON_STRING:
        text = iso_json_string(value, &bytes);
        iso_python_json_add_string(out, text, bytes);
        break;
    case ISO_JSON_ARRAY:
        add_array(out, value);
        break;
    case ISO_JSON_OBJECT:
        add_object(out, value);
        break;
    }
}
