/* admit: which weight values may enter, and the copies that are cleaned. numerics.md 2.8:
 *
 *   bf16, f32   NaN, Inf and |w| >= 2^50 are refused; |w| < 2^-50 (and -0) becomes +0
 *   e4m3        codes 0x7f and 0xff (NaN) are refused
 *   scale bytes lie in [64, 168]; another byte is accepted over codes that are all zero, and is
 *               then taken as 127
 *   elements    a dequantised value below 2^-50 counts as +0: its code becomes 0. That needs a
 *               scale byte below 86 (e4m3) or 78 (e2m1)
 *
 * `to_clean` is increased by the number of stored values (elements and scale bytes) that a cleaned
 * copy changes; 0 means that the mapped bytes can be used as they are. Data may have any
 * alignment. */
#ifndef ISO_MODEL_ADMIT_H
#define ISO_MODEL_ADMIT_H

#include "model/weights.h"

/* Index of the first refused value among `count` bf16 or f32 values, or `count` if none is. */
uint64_t iso_admit_scan(iso_dtype dtype, const void *data, uint64_t count, uint64_t *to_clean);
/* Refuses value `index`: ISO_BAD_TENSOR "name: row 3, column 7 is NaN (0x7fc0), expected a
 * magnitude below 2^50"; columns is the row length, or 0 to say "element 24". */
iso_status iso_admit_refuse(const char *name, iso_dtype dtype, const void *data, uint64_t index,
                            int64_t columns, iso_error *error);
/* Both: scans, and refuses the first value found by its element number. */
iso_status iso_admit_values(const char *name, iso_dtype dtype, const void *data, uint64_t count,
                            uint64_t *to_clean, iso_error *error);
/* Cleans admitted values in place. */
void iso_clean_values(iso_dtype dtype, void *data, uint64_t count);

/* Codes with their scales: a whole tensor, or a band of its rows (FP8: of whole tile rows). */
typedef struct iso_coded {
    const char *name;                /* of the codes, for messages */
    iso_encoding encoding;           /* ISO_ENCODING_FP8_CODES, FP4_CODES or TABLE_CODES */
    uint32_t tile;                   /* FP8: side of a tile */
    int64_t row_first;               /* of the band in the tensor, for messages */
    int64_t rows, columns;           /* elements; FP4 stores two per byte */
    const uint8_t *codes, *scales;
} iso_coded;

/* Bytes of one row of codes, and scale bytes of `rows` rows. */
int64_t iso_coded_row_bytes(iso_encoding encoding, int64_t columns);
int64_t iso_coded_scale_bytes(iso_encoding encoding, uint32_t tile, int64_t rows,
                              int64_t columns);
iso_status iso_admit_codes(const iso_coded *coded, uint64_t *to_clean, iso_error *error);
/* Writes the cleaned codes and scales over private copies of coded->codes and coded->scales. */
void iso_clean_codes(const iso_coded *coded, uint8_t *codes, uint8_t *scales);

#endif
