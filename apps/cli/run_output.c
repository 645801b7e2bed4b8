#include "apps/cli/run_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const run_options *options;
    cli_model model;
    iso_session *session;
    iso_text_stream *stream;
    FILE *logits, *trace;
    int32_t *prompt, *made;
    size_t prompt_count, made_count;
    char *text;                          /* JSON mode: everything generated */
    size_t text_bytes;
    FILE *text_out;
    const char *stop;
    uint64_t load_ns, prefill_ns, decode_ns;
    size_t decode_steps;
} run;

static iso_status sys_error(const char *path, iso_error *error)
{
    error->status = ISO_IO;
    error->driver_code = errno;
    snprintf(error->text, sizeof error->text, "%.300s: %s", path, strerror(errno));
    return ISO_IO;
}

static void trace(void *context, const char *node, const char *op, const uint64_t hash[2])
{
    fprintf(context, "%s %s %016" PRIx64 "%016" PRIx64 "\n", node, op, hash[1], hash[0]);
}

static iso_status open_files(run *r, iso_engine_options *engine, iso_error *error)
{
    const run_options *o = r->options;

    if (o->logits_file != NULL && (r->logits = fopen(o->logits_file, "wb")) == NULL)
        return sys_error(o->logits_file, error);
    if (o->trace_file != NULL) {
        if ((r->trace = fopen(o->trace_file, "w")) == NULL)
            return sys_error(o->trace_file, error);
        engine->trace = trace;
        engine->trace_context = r->trace;
    }
    r->text_out = o->is_json ? open_memstream(&r->text, &r->text_bytes) : stdout;
    return r->text_out != NULL ? ISO_OK : ISO_NO_MEMORY;
}

static iso_status emit(run *r, const char *piece, size_t bytes, iso_error *error)
{
    if (bytes != 0 && fwrite(piece, 1, bytes, r->text_out) != bytes)
        return sys_error("standard output", error);
    fflush(r->text_out);
    return ISO_OK;
}

static iso_status emit_id(run *r, int32_t id, iso_error *error)
{
    const char *piece = "";
    size_t bytes = 0;
    iso_status status = ISO_OK;

    if (r->stream != NULL)
        status = iso_text_stream_push(r->stream, id, &piece, &bytes, error);
    return status == ISO_OK ? emit(r, piece, bytes, error) : status;
}

/* Draws, prints and appends tokens until a stop. */
static iso_status generate(run *r, iso_error *error)
{
    const run_options *o = r->options;
    const uint64_t start = cli_clock_ns();
    iso_status status = ISO_OK;

    r->stop = "length";
    while (status == ISO_OK && r->made_count < o->token_count) {
        const float *logits = iso_session_logits(r->session, 0);
        int32_t id = 0;

        if (cli_interrupted()) {
            r->stop = "interrupted";
            break;
        }
        if (r->logits != NULL
            && fwrite(logits, sizeof *logits, r->model.info.vocab_size, r->logits)
                   != r->model.info.vocab_size)
            return sys_error(o->logits_file, error);
        status = iso_session_sample(r->session, 0, &o->sampling, &id, error);
        if (status != ISO_OK)
            break;
        if (id == r->model.info.eos_id && !o->ignore_eos) {
            r->stop = "eos";
            break;
        }
        r->made[r->made_count++] = id;
        status = emit_id(r, id, error);
        if (status == ISO_OK && r->made_count < o->token_count) {
            status = iso_session_prefill(r->session, &id, 1, 0, error);
            r->decode_steps++;
        }
    }
    r->decode_ns = cli_clock_ns() - start;
    return status;
}

static iso_status check_room(run *r, iso_error *error)
{
    const uint32_t capacity = iso_session_capacity(r->session);

    if (r->prompt_count + r->options->token_count <= capacity)
        return ISO_OK;
    error->status = ISO_CONTEXT_FULL;
    snprintf(error->text, sizeof error->text,
             "prompt of %zu tokens + %u to generate is more than the context of %u (--ctx)",
             r->prompt_count, r->options->token_count, capacity);
    return ISO_CONTEXT_FULL;
}

static iso_status work(run *r, iso_engine_options *engine, iso_error *error)
{
    const char *piece;
    size_t bytes = 0;
    uint64_t start = cli_clock_ns();
    iso_status status = open_files(r, engine, error);

    if (status == ISO_OK)
        status = cli_model_open(r->options->model, r->options->ids == NULL, engine, &r->model,
                                error);
    r->load_ns = cli_clock_ns() - start;
    if (status == ISO_OK)
        status = run_prompt_ids(r->options, &r->model, &r->prompt, &r->prompt_count, error);
    if (status == ISO_OK)
        status = iso_session_create(r->model.engine, &r->session, error);
    if (status == ISO_OK)
        status = check_room(r, error);
    if (status == ISO_OK && r->model.tokenizer != NULL)
        status = iso_text_stream_create(r->model.tokenizer, &r->stream, error);
    if (status == ISO_OK && (r->made = malloc(r->options->token_count * sizeof *r->made)) == NULL)
        status = ISO_NO_MEMORY;
    start = cli_clock_ns();
    if (status == ISO_OK)
        status = iso_session_prefill(r->session, r->prompt, r->prompt_count, 0, error);
    r->prefill_ns = cli_clock_ns() - start;
    if (status == ISO_OK)
        status = generate(r, error);
    if (status == ISO_OK && r->stream != NULL)
        status = iso_text_stream_finish(r->stream, &piece, &bytes, error);
    if (status == ISO_OK && r->stream != NULL)
        status = emit(r, piece, bytes, error);
    return status;
}

static double rate(size_t count, uint64_t ns)
{
    return ns == 0 ? 0.0 : (double)count / ((double)ns * 1e-9);
}

static void print_ids(const char *key, const int32_t *ids, size_t count)
{
    printf("\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        printf("%s%d", i == 0 ? "" : ",", ids[i]);
    printf("]");
}

static void report_json(const run *r)
{
    uint64_t hash[2] = {0, 0};

    if (iso_session_hash(r->session, hash, NULL) != ISO_OK)
        hash[0] = hash[1] = 0;
    printf("{\"text\":");
    cli_json_string(r->text, r->text_bytes);
    printf(",");
    print_ids("prompt_ids", r->prompt, r->prompt_count);
    printf(",");
    print_ids("ids", r->made, r->made_count);
    printf(",\"stop\":\"%s\",\"state_hash\":\"%016" PRIx64 "%016" PRIx64 "\"", r->stop, hash[1],
           hash[0]);
    printf(",\"load_seconds\":%.3f,\"prefill_tokens_per_second\":%.2f",
           (double)r->load_ns * 1e-9, rate(r->prompt_count, r->prefill_ns));
    printf(",\"decode_tokens_per_second\":%.2f,\"decode_bytes_per_token\":%" PRIu64
           ",\"peak_rss_bytes\":%" PRIu64 "}\n",
           rate(r->decode_steps, r->decode_ns), r->model.info.decode_bytes, cli_peak_rss());
}

static void report_text(const run *r)
{
    putchar('\n');
    fflush(stdout);
    if (r->options->is_quiet)
        return;
    fprintf(stderr,
            "prefill %zu tokens, %.1f tok/s; decode %zu tokens, %.1f tok/s; "
            "%.3f MB of weights per token; peak memory %.1f MB\n",
            r->prompt_count, rate(r->prompt_count, r->prefill_ns), r->decode_steps,
            rate(r->decode_steps, r->decode_ns), (double)r->model.info.decode_bytes * 1e-6,
            (double)cli_peak_rss() * 1e-6);
}

static void close_all(run *r)
{
    iso_text_stream_destroy(&r->stream);
    iso_session_destroy(&r->session);
    cli_model_close(&r->model);
    if (r->trace != NULL)
        fclose(r->trace);
    iso_free(r->prompt);
    free(r->made);
}

int run_generate(run_options *options)
{
    run r = {.options = options};
    iso_error error = {.status = ISO_OK};
    iso_engine_options engine = options->engine;
    iso_status status;

    engine.progress = cli_progress;
    status = work(&r, &engine, &error);
    if (r.text_out != NULL && r.text_out != stdout)
        fclose(r.text_out);
    if (r.logits != NULL && fclose(r.logits) != 0 && status == ISO_OK)
        status = sys_error(options->logits_file, &error);
    if (status == ISO_OK && options->is_json)
        report_json(&r);
    else if (status == ISO_OK)
        report_text(&r);
    free(r.text);
    close_all(&r);
    if (status != ISO_OK)
        return cli_fail(status, &error);
    return r.stop != NULL && r.stop[0] == 'i' ? CLI_INTERRUPTED : CLI_OK;
}
