/* report: what the reports of inspect and verify share. */
#ifndef ISO_CONVERT_REPORT_H
#define ISO_CONVERT_REPORT_H

#include "core/text.h"
#include "model/weights.h"

enum { ISO_GROUPED_TEXT = 32 };

/* "1,234,567" into a caller's buffer; returns it. */
const char *iso_grouped(uint64_t value, char buffer[ISO_GROUPED_TEXT]);

/* A checkpoint whose names, dtypes and shapes agree with its configuration. */
typedef struct iso_checkpoint {
    iso_store *store;
    iso_config config;
    iso_weights_report report;
} iso_checkpoint;

/* Opens the store, reads the configuration, checks every tensor and the Engram row counts. `path`
 * is a directory or a .safetensors file. On failure nothing stays open. */
iso_status iso_checkpoint_open(const char *path, iso_checkpoint *checkpoint, iso_error *error);
void iso_checkpoint_close(iso_checkpoint *checkpoint);

/* Dtypes in the order of reports; ISO_DTYPE_NONE past the end. */
iso_dtype iso_report_dtype(uint32_t index);

/* A line about tensors nobody expects, or nothing. */
void iso_report_unknown(const iso_weights_report *report, iso_text *text);
/* , "unknown": {"count": 1, "first": "name"} */
void iso_report_unknown_json(const iso_weights_report *report, iso_text *text);

#endif
