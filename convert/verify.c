#include "convert/verify.h"

#include "convert/report.h"
#include "core/alloc.h"
#include "model/admit.h"

#include <string.h>

enum { SLICE_BYTES = 32 << 20 };     /* of codes or values between two reports of progress */

typedef struct verification {
    iso_checkpoint checkpoint;
    iso_progress_fn *progress;
    void *progress_context;
    uint64_t done;                   /* bytes */
    uint64_t values;                 /* elements and scale bytes looked at */
    uint64_t to_clean, tensors_to_clean;
    iso_weight_spec codes;           /* the last codes seen; their scales come next */
} verification;

static iso_status advance(verification *v, uint64_t bytes, iso_error *error)
{
    v->done += bytes;
    if (v->progress != NULL
        && !v->progress(v->progress_context, "verify", v->done, v->checkpoint.report.bytes))
        return iso_fail(error, ISO_CANCELLED, "verify was cancelled");
    return ISO_OK;
}

static iso_store_tensor tensor_of(const verification *v, const iso_weight_spec *spec)
{
    iso_store_tensor tensor = {0};
    const bool found = iso_store_find(v->checkpoint.store, spec->name, &tensor);

    ISO_ASSERT(found);               /* iso_weights_check saw it */
    return tensor;
}

static iso_status scan_plain(verification *v, const iso_weight_spec *spec, iso_error *error)
{
    const iso_store_tensor tensor = tensor_of(v, spec);
    const uint32_t bytes = iso_dtype_block_bytes(spec->dtype);
    const uint64_t count = tensor.bytes / bytes, slice = SLICE_BYTES / bytes;

    for (uint64_t at = 0; at < count; at += slice) {
        const uint64_t have = count - at < slice ? count - at : slice;
        const uint8_t *data = (const uint8_t *)tensor.data + at * bytes;
        const uint64_t bad = iso_admit_scan(spec->dtype, data, have, &v->to_clean);

        if (bad < have)
            return iso_admit_refuse(spec->name, spec->dtype, tensor.data, at + bad,
                                    spec->rank > 1 ? spec->extent[1] : 0, error);
        v->values += have;
        ISO_TRY(advance(v, have * bytes, error));
    }
    return ISO_OK;
}

/* Codes with their scales, in bands of whole tile rows. */
static iso_status scan_codes(verification *v, const iso_weight_spec *scales, iso_error *error)
{
    const iso_weight_spec *codes = &v->codes;
    const iso_store_tensor code = tensor_of(v, codes), scale = tensor_of(v, scales);
    const int64_t columns = codes->extent[1] * (codes->dtype == ISO_DTYPE_I8 ? 2 : 1);
    const int64_t tile = v->checkpoint.config.tile;
    const int64_t rows = codes->extent[0], row_bytes = codes->extent[1];
    const int64_t band = (SLICE_BYTES / (row_bytes * tile) + 1) * tile;
    uint64_t scales_seen = 0;

    for (int64_t row = 0; row < rows; row += band) {
        const iso_coded coded = {
            .name = codes->name, .encoding = codes->encoding, .tile = (uint32_t)tile,
            .row_first = row, .rows = rows - row < band ? rows - row : band, .columns = columns,
            .codes = (const uint8_t *)code.data + row * row_bytes,
            .scales = (const uint8_t *)scale.data + scales_seen,
        };
        const uint64_t scale_bytes = (uint64_t)iso_coded_scale_bytes(
            coded.encoding, coded.tile, coded.rows, columns);
        const uint64_t code_bytes = (uint64_t)(coded.rows * row_bytes);

        ISO_TRY(iso_admit_codes(&coded, &v->to_clean, error));
        scales_seen += scale_bytes;
        v->values += (uint64_t)(coded.rows * columns) + scale_bytes;
        ISO_TRY(advance(v, code_bytes + scale_bytes, error));
    }
    ISO_ASSERT(scales_seen == scale.bytes);
    return ISO_OK;
}

static iso_status scan_one(void *context, const iso_weight_spec *spec, iso_error *error)
{
    verification *v = context;
    const uint64_t before = v->to_clean;

    switch (spec->encoding) {
    case ISO_ENCODING_PLAIN:
        ISO_TRY(scan_plain(v, spec, error));
        break;
    case ISO_ENCODING_FP8_CODES:
    case ISO_ENCODING_FP4_CODES:
    case ISO_ENCODING_TABLE_CODES:
        v->codes = *spec;
        break;
    case ISO_ENCODING_FP8_SCALES:
    case ISO_ENCODING_FP4_SCALES:
    case ISO_ENCODING_TABLE_SCALES:
        ISO_TRY(scan_codes(v, spec, error));
        break;
    }
    v->tensors_to_clean += v->to_clean != before;
    return ISO_OK;
}

static void write_text(const verification *v, iso_text *text)
{
    const iso_weights_report *report = &v->checkpoint.report;
    char a[ISO_GROUPED_TEXT], b[ISO_GROUPED_TEXT];

    iso_text_printf(text, "checkpoint   %s\n", iso_store_path(v->checkpoint.store));
    iso_text_printf(text, "tensors      %s, all names, dtypes and shapes as configured\n",
                    iso_grouped(report->tensors, a));
    iso_text_printf(text, "values       %s in %s bytes, all acceptable\n",
                    iso_grouped(v->values, a), iso_grouped(report->bytes, b));
    iso_text_printf(text, "to clean     %s values in %s tensors (below 2^-50: taken as zero)\n",
                    iso_grouped(v->to_clean, a), iso_grouped(v->tensors_to_clean, b));
    iso_report_unknown(report, text);
    iso_text_printf(text, "result       ok\n");
}

static void write_json(const verification *v, iso_text *text)
{
    const iso_weights_report *report = &v->checkpoint.report;

    iso_text_printf(text, "{\"checkpoint\": ");
    iso_text_json(text, iso_store_path(v->checkpoint.store));
    iso_text_printf(text, ", \"result\": \"ok\", \"tensors\": %llu, \"bytes\": %llu, "
                    "\"values\": %llu, \"to_clean\": %llu, \"tensors_to_clean\": %llu",
                    (unsigned long long)report->tensors, (unsigned long long)report->bytes,
                    (unsigned long long)v->values, (unsigned long long)v->to_clean,
                    (unsigned long long)v->tensors_to_clean);
    iso_report_unknown_json(report, text);
    iso_text_printf(text, "}\n");
}

iso_status iso_verify(const char *directory, bool json, iso_progress_fn *progress,
                      void *progress_context, char **text, iso_error *error)
{
    verification *v = iso_alloc_zero(1, sizeof *v, "verify");
    iso_text report = {0};
    iso_status status;

    if (v == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory");
    v->progress = progress;
    v->progress_context = progress_context;
    ISO_GOTO(iso_checkpoint_open(directory, &v->checkpoint, error));
    ISO_GOTO(iso_weights_each(&v->checkpoint.config, scan_one, v, error));
    (json ? write_json : write_text)(v, &report);
    ISO_GOTO(iso_text_take(&report, text, error));
done:
    iso_checkpoint_close(&v->checkpoint);
    iso_release(v, sizeof *v);
    return status;
}
