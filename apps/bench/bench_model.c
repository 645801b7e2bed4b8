#include "apps/bench/bench_table.h"

#include "apps/cli/cli.h"
#include "core/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens before the ones that are timed, and bytes read between two of them. */
enum { PREFILL = 192, READ_BYTES = 256 << 20, READ_PLACES = 4 };

typedef struct decode {
    cli_model model;
    iso_session *session;
    unsigned char *data;                 /* READ_PLACES places, read in turn */
    uint64_t bytes;                      /* weights a token reads */
} decode;

/* What `isobit inspect` says: every weight of a step of one token, six experts of a layer, a row
 * of the embedding. */
iso_status bench_model_bytes(const char *directory, uint64_t *bytes, iso_error *error)
{
    iso_json_doc *doc = NULL;
    char *text = NULL;
    int64_t count = 0;
    iso_status status = iso_inspect(directory, true, &text, error);

    if (status == ISO_OK)
        status = iso_json_parse(text, strlen(text), directory, &doc, error);
    if (status == ISO_OK && !iso_json_int(iso_json_get(iso_json_root(doc), "decode_bytes"), &count))
        status = iso_fail(error, ISO_BAD_JSON, "%s: no count of bytes", directory);
    *bytes = (uint64_t)count;
    iso_json_free(&doc);
    iso_free(text);
    return status;
}

static iso_status open_decode(const bench_table_options *o, decode *d, iso_error *error)
{
    iso_engine_options engine = {.thread_count = o->bench.thread_count, .cpu = o->bench.isa,
                                 .layout = o->bench.layout, .context_tokens = 4096,
                                 .reference_only = o->bench.reference_only,
                                 .progress = cli_progress};
    int32_t ids[PREFILL];

    ISO_TRY(bench_model_bytes(o->model, &d->bytes, error));
    ISO_TRY(cli_model_open(o->model, false, &engine, &d->model, error));
    ISO_TRY(iso_session_create(d->model.engine, &d->session, error));
    d->data = aligned_alloc(4096, (size_t)READ_BYTES * READ_PLACES);
    if (d->data == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "bench: out of memory to read from");
    memset(d->data, 1, (size_t)READ_BYTES * READ_PLACES);
    for (int32_t i = 0; i < PREFILL; i++)
        ids[i] = (int32_t)((uint32_t)i * 2654435761u % d->model.info.vocab_size);
    return iso_session_prefill(d->session, ids, PREFILL, 0, error);
}

/* Other tokens than those before, so that other experts are picked. */
static iso_status run_token(decode *d, uint32_t run, double *seconds, iso_error *error)
{
    const int32_t id = (int32_t)((run + 1) * 40503u % d->model.info.vocab_size);
    const iso_batch_item item = {d->session, &id, 1, 1};
    const double start = bench_now();

    ISO_TRY(iso_engine_step(d->model.engine, &item, 1, error));
    ISO_TRY(iso_session_commit(d->session, 1, error));
    *seconds = bench_now() - start;
    return ISO_OK;
}

static iso_status run_tokens(const bench_table_options *o, const bench_roof *roof, decode *d,
                             bench_score *score, iso_error *error)
{
    const uint32_t threads = bench_threads(&o->bench);
    double times[BENCH_RUNS_MAX], reads[BENCH_RUNS_MAX], first, seconds, read;
    bench_part *part;

    ISO_TRY(run_token(d, o->bench.runs, &first, error));
    for (uint32_t run = 0; run < o->bench.runs; run++) {
        const unsigned char *from = d->data + (uint64_t)(run % READ_PLACES) * READ_BYTES;

        reads[run] = bench_read_seconds(threads, roof->read_loop, from, READ_BYTES);
        ISO_TRY(run_token(d, run, &times[run], error));
    }
    seconds = bench_median(times, o->bench.runs);
    read = READ_BYTES / bench_median(reads, o->bench.runs);
    part = bench_score_add(score, "a token after 192", (double)d->bytes / read / seconds);
    snprintf(part->text, sizeof part->text, "%.2f ms; its %.1f MB of weights at %.2f GB/s: %.2f ms",
             seconds * 1e3, (double)d->bytes * 1e-6, read * 1e-9, (double)d->bytes / read * 1e3);
    return ISO_OK;
}

iso_status bench_score_model(const bench_table_options *options, const bench_row *row,
                             const bench_roof *roof, bench_score *score, iso_error *error)
{
    decode d = {.session = NULL};
    iso_status status;

    (void)row;
    if (options->model == NULL)
        return iso_fail(error, ISO_UNSUPPORTED, "no --model DIR (isobit tiny --preset v41-slice)");
    status = open_decode(options, &d, error);
    if (status == ISO_OK)
        status = run_tokens(options, roof, &d, score, error);
    iso_session_destroy(&d.session);
    cli_model_close(&d.model);
    free(d.data);
    return status;
}
