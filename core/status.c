#include "core/status.h"

#include "core/check.h"

#define STATUS(name, code, sentence)                                                              \
    ISO_STATIC_ASSERT(ISO_##name == (code), "status.def and isobit.h disagree on " #name);
#include "core/status.def"
#undef STATUS

const char *iso_status_name(iso_status status)
{
    switch ((int)status) {
#define STATUS(name, code, sentence)                                                              \
    case code:                                                                                    \
        return #name;
#include "core/status.def"
#undef STATUS
    default:
        return "UNKNOWN";
    }
}

const char *iso_status_sentence(iso_status status)
{
    switch ((int)status) {
#define STATUS(name, code, sentence)                                                              \
    case code:                                                                                    \
        return sentence;
#include "core/status.def"
#undef STATUS
    default:
        return "unknown status";
    }
}

/* Names in files are foreign text: a control character must not reach a terminal. */
static void one_line(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text == 0x7f)
            *text = '?';
}

/* Cuts a UTF-8 character that the buffer's end has split. */
static void trim_partial(char *text, size_t capacity)
{
    size_t n = 0;

    while (text[n] != '\0')
        n++;
    if (n + 1 < capacity)
        return;
    while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--;
    if (n > 0 && (unsigned char)text[n - 1] >= 0xc0)
        n--;
    text[n] = '\0';
}

static void fill(iso_error *error, iso_status status, const char *format, va_list args)
{
    error->status = status;
    error->driver_code = 0;
    vsnprintf(error->text, sizeof error->text, format, args);
    trim_partial(error->text, sizeof error->text);
    one_line(error->text);
}

iso_status iso_fail(iso_error *error, iso_status status, const char *format, ...)
{
    va_list args;

    ISO_ASSERT(status != ISO_OK);
    if (error == NULL)
        return status;
    va_start(args, format);
    fill(error, status, format, args);
    va_end(args);
    return status;
}

iso_status iso_fail_in(iso_error *error, iso_status status, const char *format, ...)
{
    iso_error old;
    va_list args;
    size_t used;

    ISO_ASSERT(status != ISO_OK);
    if (error == NULL)
        return status;
    old = *error;
    va_start(args, format);
    fill(error, status, format, args);
    va_end(args);
    error->driver_code = old.driver_code;
    for (used = 0; error->text[used] != '\0'; used++)
        ;
    snprintf(error->text + used, sizeof error->text - used, ": %s", old.text);
    trim_partial(error->text, sizeof error->text);
    return status;
}
