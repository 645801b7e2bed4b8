#include "apps/cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

int cli_fail(iso_status status, const iso_error *error)
{
    if (status == ISO_CANCELLED)
        return CLI_INTERRUPTED;
    fprintf(stderr, "isobit: %s\n",
            error->text[0] != '\0' ? error->text : iso_status_sentence(status));
    switch (status) {
    case ISO_NO_MEMORY:
    case ISO_OVER_BUDGET:
    case ISO_DEVICE_LOST:
    case ISO_PROBE_FAILED:
    case ISO_TIMEOUT:
        return CLI_FAILED;
    default:
        return CLI_BAD_INPUT;
    }
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "isobit %s: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (see isobit %s --help)\n", command);
    return CLI_BAD_INPUT;
}

bool cli_u64(const char *command, const char *option, const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] < '0' || text[0] > '9') {
        cli_usage(command, "%s %s: expected an integer from 0 to 2^64 - 1", option, text);
        return false;
    }
    return true;
}

bool cli_u32(const char *command, const char *option, const char *text, uint32_t low,
             uint32_t high, uint32_t *value)
{
    char *end;
    unsigned long long parsed;

    errno = 0;
    parsed = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] < '0' || text[0] > '9'
        || parsed < low || parsed > high) {
        cli_usage(command, "%s %s: expected an integer from %u to %u", option, text, low, high);
        return false;
    }
    *value = (uint32_t)parsed;
    return true;
}

bool cli_float(const char *command, const char *option, const char *text, float *value)
{
    char *end;

    errno = 0;
    *value = strtof(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(*value >= 0.0f && *value <= 1e6f)) {
        cli_usage(command, "%s %s: expected a number from 0 to 1e6", option, text);
        return false;
    }
    return true;
}

/* ---- model ---- */

static iso_status open_text(bool need_text, cli_model *m, iso_engine_options *options,
                            iso_error *error)
{
    iso_status status = iso_tokenizer_open_store(m->store, &m->tokenizer, error);

    if (status == ISO_NOT_FOUND && !need_text && m->info.compressed_vocab_size == 0)
        return ISO_OK;
    if (status != ISO_OK)
        return status;
    if (m->info.compressed_vocab_size == 0)
        return ISO_OK;
    m->token_map = malloc(m->info.vocab_size * sizeof *m->token_map);
    if (m->token_map == NULL)
        return ISO_NO_MEMORY;
    options->token_map = m->token_map;
    return iso_tokenizer_token_map(m->tokenizer, m->token_map, m->info.vocab_size,
                                   &options->token_map_keys, error);
}

iso_status cli_model_open(const char *directory, bool need_text, iso_engine_options *options,
                          cli_model *model, iso_error *error)
{
    iso_status status;

    memset(model, 0, sizeof *model);
    status = iso_store_open(directory, &model->store, error);
    if (status == ISO_OK)
        status = iso_model_open(model->store, &model->model, error);
    if (status == ISO_OK) {
        iso_model_get_info(model->model, &model->info);
        status = open_text(need_text, model, options, error);
    }
    if (status == ISO_OK)
        status = iso_engine_create(model->model, options, &model->engine, error);
    if (status != ISO_OK)
        cli_model_close(model);
    return status;
}

void cli_model_close(cli_model *model)
{
    iso_engine_destroy(&model->engine);
    iso_model_close(&model->model);
    iso_store_close(&model->store);
    iso_tokenizer_close(&model->tokenizer);
    free(model->token_map);
    model->token_map = NULL;
}

/* ---- terminal ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void cli_watch_interrupt(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;     /* a second Ctrl-C ends the program at once */
    sigaction(SIGINT, &action, NULL);
}

bool cli_interrupted(void) { return interrupted != 0; }

bool cli_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    static const int width = 30;
    static uint64_t last_ns;
    const uint64_t now = cli_clock_ns();
    int filled;

    (void)context;
    if (!isatty(STDERR_FILENO) || (done < total && now - last_ns < 50000000))
        return !cli_interrupted();
    last_ns = now;
    filled = total == 0 ? width : (int)((double)done / (double)total * width);
    fprintf(stderr, "\r%-8s [%.*s%*s] %3d %%", phase, filled, "##############################",
            width - filled, "", total == 0 ? 100 : (int)(100.0 * (double)done / (double)total));
    if (done >= total)
        fprintf(stderr, "\r%*s\r", width + 20, "");
    return !cli_interrupted();
}

uint64_t cli_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t cli_peak_rss(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static iso_status io_error(const char *path, iso_error *error)
{
    error->status = errno == ENOENT ? ISO_NOT_FOUND : ISO_IO;
    error->driver_code = errno;
    snprintf(error->text, sizeof error->text, "%.300s: %s", path, strerror(errno));
    return error->status;
}

iso_status cli_read_text(const char *path, char **text, size_t *bytes, iso_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    size_t used = 0, capacity = 1 << 16;
    char *buffer = malloc(capacity), *larger;

    if (file == NULL) {
        free(buffer);
        return io_error(path, error);
    }
    while (buffer != NULL) {
        const size_t got = fread(buffer + used, 1, capacity - used, file);

        used += got;
        if (got == 0)
            break;
        if (used < capacity)
            continue;
        larger = realloc(buffer, capacity *= 2);
        if (larger == NULL)
            free(buffer);
        buffer = larger;
    }
    if (buffer != NULL && ferror(file)) {
        free(buffer);
        if (!is_stdin)
            fclose(file);
        return io_error(path, error);
    }
    if (!is_stdin)
        fclose(file);
    if (buffer == NULL)
        return ISO_NO_MEMORY;
    *text = buffer;
    *bytes = used;
    return ISO_OK;
}

void cli_json_string(const char *text, size_t bytes)
{
    putchar('"');
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}
