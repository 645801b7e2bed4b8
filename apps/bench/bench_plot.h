/* bench_plot: the cases of `isobit bench --json` as a roofline: operations per second over
 * operations per byte, under the roofs that the same run measured. The same file gives the same
 * picture. */
#ifndef ISO_APPS_BENCH_PLOT_H
#define ISO_APPS_BENCH_PLOT_H

#include "core/text.h"

enum { BENCH_POINTS_MAX = 64, BENCH_NAME_MAX = 64 };

typedef struct bench_point {
    char name[BENCH_NAME_MAX], kernel[BENCH_NAME_MAX];
    double bytes, operations, rate;      /* operations 0: none counted; rate in GFLOP/s */
} bench_point;

typedef struct bench_plot {
    bench_point point[BENCH_POINTS_MAX];
    uint32_t point_count;
    double read, near_read, multiply;    /* GB/s, GB/s, GFLOP/s */
    int64_t threads;
} bench_plot;

/* Reads the file `from` and writes the picture to `to`. */
iso_status bench_plot_file(const char *from, const char *to, iso_error *error);

/* bench_svg.c: a whole SVG document. */
void bench_svg_write(const bench_plot *plot, iso_text *text);

#endif
