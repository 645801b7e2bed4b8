/* bench_table: measures with a figure to reach. A score is the ratio of two figures of the same
 * run, taken alternately; a row has one or several, and the worst counts. */
#ifndef ISO_APPS_BENCH_TABLE_H
#define ISO_APPS_BENCH_TABLE_H

#include "apps/bench/bench.h"

enum { BENCH_PARTS_MAX = 8 };

typedef struct bench_part {
    const char *name;                    /* literal */
    double ratio;
    char text[160];                      /* the two figures, and whose they are */
} bench_part;

typedef struct bench_score {
    bench_part part[BENCH_PARTS_MAX];
    uint32_t part_count;
} bench_score;

typedef struct bench_table_options {
    bench_options bench;
    const char *filter;                  /* rows whose measure contains it; NULL: all */
    const char *model;                   /* directory of preset v41-slice; NULL: none */
    bool json;
} bench_table_options;

typedef struct bench_row bench_row;

/* Adds parts. ISO_UNSUPPORTED, ISO_NO_DEVICE, ISO_NOT_FOUND: not measured here, and why. */
typedef iso_status bench_row_fn(const bench_table_options *options, const bench_row *row,
                                const bench_roof *roof, bench_score *score, iso_error *error);

struct bench_row {
    const char *measure;
    double to_reach, aim;                /* 0: reported only */
    bool is_below;                       /* a time: smaller is better */
    bench_row_fn *run;
    const bench_shape *shapes;           /* up to the first without rows */
};

/* bench_scores.c: bytes per second of a product's weights against reading. */
bench_row_fn bench_score_weights;
/* Six rows against six times one row. */
bench_row_fn bench_score_verify;
/* 512 rows against sgemm of the same size. */
bench_row_fn bench_score_prefill;
/* Keys as bf16 numbers, read by every head, against reading from the caches. */
bench_row_fn bench_score_attention;
/* bench_free.c: the kernel's bf16 product against the same in free order. */
bench_row_fn bench_score_order;

/* bench_model.c: a token of a whole model against reading its weights. */
bench_row_fn bench_score_model;
iso_status bench_model_bytes(const char *directory, uint64_t *bytes, iso_error *error);

bench_part *bench_score_add(bench_score *score, const char *name, double ratio);

/* Prints the whole table. */
iso_status bench_table(const bench_table_options *options, iso_error *error);

#endif
