#include "apps/bench/bench_plot.h"

#include "core/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pixels. */
enum {
    LEFT = 72, TOP = 56, PLOT_WIDTH = 620, PLOT_HEIGHT = 540, LEGEND = LEFT + PLOT_WIDTH + 34,
    WIDTH = LEGEND + 684, LINE = 18, RADIUS = 8
};

/* Logarithmic axes in whole decades. */
typedef struct frame {
    double x_low, x_high, y_low, y_high;         /* log10 */
} frame;

typedef struct spot {
    double x, y;                         /* pixels, of the point */
    double at_x, at_y;                   /* of its number */
} spot;

/* ---- text ---- */

/* XML's own characters as entities; control characters are no XML. */
static void escape(iso_text *text, const char *from)
{
    for (; *from != '\0'; from++) {
        if (*from == '<')
            iso_text_printf(text, "&lt;");
        else if (*from == '>')
            iso_text_printf(text, "&gt;");
        else if (*from == '&')
            iso_text_printf(text, "&amp;");
        else if (*from == '"')
            iso_text_printf(text, "&quot;");
        else if (*from >= 0x20 && *from < 0x7f)
            iso_text_printf(text, "%c", *from);
        else
            iso_text_printf(text, "?");
    }
}

static void label(iso_text *text, double x, double y, const char *anchor, const char *words)
{
    iso_text_printf(text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    escape(text, words);
    iso_text_printf(text, "</text>\n");
}

static void line(iso_text *text, const char *kind, const double from[2], const double to[2])
{
    iso_text_printf(text, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                    kind, from[0], from[1], to[0], to[1]);
}

/* By what a kernel reads. */
static const char *colour_of(const char *kernel)
{
    static const struct { const char *op, *colour; } colours[] = {
        {"matmul_experts/", "#b5381f"}, {"matmul_fp8/", "#1f5fb5"},
        {"matmul_groups/", "#1f5fb5"},  {"matmul_bf16/", "#1d7a46"},
        {"matmul_f32/", "#1d7a46"},
    };

    for (size_t i = 0; i < ISO_COUNT_OF(colours); i++)
        if (strncmp(kernel, colours[i].op, strlen(colours[i].op)) == 0)
            return colours[i].colour;
    return "#6b5b95";
}

/* ---- axes ---- */

static double x_of(const frame *f, double intensity)
{
    return LEFT + PLOT_WIDTH * (log10(intensity) - f->x_low) / (f->x_high - f->x_low);
}

static double y_of(const frame *f, double rate)
{
    return TOP + PLOT_HEIGHT * (f->y_high - log10(rate)) / (f->y_high - f->y_low);
}

static double intensity_of(const bench_point *point) { return point->operations / point->bytes; }

static frame frame_of(const bench_plot *plot)
{
    const double ridge = log10(plot->multiply / plot->read);
    frame f = {ridge, ridge, log10(plot->multiply), log10(plot->multiply)};

    for (uint32_t i = 0; i < plot->point_count; i++) {
        const bench_point *p = &plot->point[i];

        if (p->operations == 0.0)
            continue;
        f.x_low = fmin(f.x_low, log10(intensity_of(p)));
        f.x_high = fmax(f.x_high, log10(intensity_of(p)));
        f.y_low = fmin(f.y_low, log10(p->rate));
        f.y_high = fmax(f.y_high, log10(p->rate));
    }
    f.x_low = floor(f.x_low - 0.1);
    f.x_high = ceil(f.x_high + 0.1);
    f.y_low = floor(f.y_low - 0.1);
    f.y_high = ceil(f.y_high + 0.1);
    return f;
}

/* Grid lines at 1 .. 9 of every decade, a number at 1. */
static void draw_axes(const frame *f, iso_text *text)
{
    char words[32];

    for (double decade = f->x_low; decade <= f->x_high; decade++)
        for (int i = 1; i <= (decade < f->x_high ? 9 : 1); i++) {
            const double x = x_of(f, i * pow(10.0, decade));

            line(text, i == 1 ? "decade" : "grid", (double[]){x, TOP},
                 (double[]){x, TOP + PLOT_HEIGHT});
            snprintf(words, sizeof words, "%g", pow(10.0, decade));
            if (i == 1)
                label(text, x, TOP + PLOT_HEIGHT + 18, "middle", words);
        }
    for (double decade = f->y_low; decade <= f->y_high; decade++)
        for (int i = 1; i <= (decade < f->y_high ? 9 : 1); i++) {
            const double y = y_of(f, i * pow(10.0, decade));

            line(text, i == 1 ? "decade" : "grid", (double[]){LEFT, y},
                 (double[]){LEFT + PLOT_WIDTH, y});
            snprintf(words, sizeof words, "%g", pow(10.0, decade));
            if (i == 1)
                label(text, LEFT - 8, y + 4, "end", words);
        }
    label(text, LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT + 38, "middle",
          "operations per byte read");
    label(text, LEFT - 40, TOP - 12, "start", "GFLOP/s");
}

/* ---- roofs ---- */

/* A slope of `bandwidth` GB/s up to the flat roof, and its words along the slope. */
static void draw_slope(const bench_plot *plot, const frame *f, const char *kind, double bandwidth,
                       const char *words, iso_text *text)
{
    const double x_low = pow(10.0, f->x_low), y_low = pow(10.0, f->y_low);
    const double from = fmax(x_low, y_low / bandwidth), to = plot->multiply / bandwidth;
    const double a[2] = {x_of(f, from), y_of(f, from * bandwidth)};
    const double b[2] = {x_of(f, to), y_of(f, plot->multiply)};
    const double angle = atan2(b[1] - a[1], b[0] - a[0]) * 180.0 / 3.14159265358979;

    line(text, kind, a, b);
    iso_text_printf(text, "<text class=\"words\" y=\"-6\" "
                    "transform=\"translate(%.1f %.1f) rotate(%.2f)\">",
                    a[0] + (b[0] - a[0]) * 0.62, a[1] + (b[1] - a[1]) * 0.62, angle);
    iso_text_printf(text, "%.1f GB/s ", bandwidth);
    escape(text, words);
    iso_text_printf(text, "</text>\n");
}

static void draw_roofs(const bench_plot *plot, const frame *f, iso_text *text)
{
    const double y = y_of(f, plot->multiply);
    char words[64];

    draw_slope(plot, f, "roof", plot->read, "from memory", text);
    draw_slope(plot, f, "near", plot->near_read, "from the caches", text);
    line(text, "roof", (double[]){x_of(f, plot->multiply / plot->near_read), y},
         (double[]){LEFT + PLOT_WIDTH, y});
    snprintf(words, sizeof words, "%.0f GFLOP/s multiply-add", plot->multiply);
    label(text, LEFT + PLOT_WIDTH - 6, y - 7, "end", words);
}

/* ---- points ---- */

/* Whether a number at (x, y) would cover one of the first `count` numbers, or another point. */
static bool is_free(const spot *spots, uint32_t count, uint32_t all, double x, double y)
{
    for (uint32_t i = 0; i < all; i++) {
        const double room = 2.0 * RADIUS + 1.0, near = RADIUS + 4.0;

        if (i < count && fabs(spots[i].at_x - x) < room && fabs(spots[i].at_y - y) < room)
            return false;
        if (i != count && fabs(spots[i].x - x) < near && fabs(spots[i].y - y) < near)
            return false;
    }
    return x >= LEFT + RADIUS && x <= LEFT + PLOT_WIDTH - RADIUS && y >= TOP + RADIUS
        && y <= TOP + PLOT_HEIGHT - RADIUS;
}

/* Beside the point, ever further away, until the number is free: in eight directions, one after
 * the other. */
static void place(spot *spots, uint32_t index, uint32_t all)
{
    static const signed char way[8][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1},
                                          {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
    spot *s = &spots[index];

    s->at_x = s->x + 1.5 * RADIUS;
    s->at_y = s->y;
    for (int step = 2; step < 40; step++)
        for (size_t i = 0; i < ISO_COUNT_OF(way); i++) {
            const double x = s->x + way[i][0] * step * RADIUS * 0.75;
            const double y = s->y + way[i][1] * step * RADIUS * 0.75;

            if (is_free(spots, index, all, x, y)) {
                s->at_x = x;
                s->at_y = y;
                return;
            }
        }
}

static void draw_points(const bench_plot *plot, const frame *f, iso_text *text)
{
    spot spots[BENCH_POINTS_MAX];
    const bench_point *drawn[BENCH_POINTS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < plot->point_count; i++)
        if (plot->point[i].operations > 0.0) {
            drawn[count] = &plot->point[i];
            spots[count].x = x_of(f, intensity_of(drawn[count]));
            spots[count].y = y_of(f, drawn[count]->rate);
            count++;
        }
    for (uint32_t i = 0; i < count; i++)
        place(spots, i, count);
    for (uint32_t i = 0; i < count; i++) {
        line(text, "lead", (double[]){spots[i].x, spots[i].y},
             (double[]){spots[i].at_x, spots[i].at_y});
        iso_text_printf(text, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                        spots[i].x, spots[i].y, colour_of(drawn[i]->kernel));
    }
    for (uint32_t i = 0; i < count; i++)
        iso_text_printf(text, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n"
                        "<text class=\"number\" x=\"%.1f\" y=\"%.1f\">%u</text>\n",
                        spots[i].at_x, spots[i].at_y, RADIUS, colour_of(drawn[i]->kernel),
                        spots[i].at_x, spots[i].at_y + 3.5, i + 1);
}

/* ---- legend ---- */

/* Share of what the roofs allow at the point's intensity. */
static double share_of(const bench_plot *plot, const bench_point *p)
{
    return p->rate / fmin(plot->multiply, plot->read * intensity_of(p));
}

static void draw_row(const bench_plot *plot, const bench_point *p, uint32_t number, double y,
                     iso_text *text)
{
    char words[64];

    iso_text_printf(text, "<circle cx=\"%d\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n"
                    "<text class=\"number\" x=\"%d\" y=\"%.1f\">%u</text>\n", LEGEND, y - 4,
                    RADIUS, colour_of(p->kernel), LEGEND, y - 0.5, number);
    label(text, LEGEND + 16, y, "start", p->name);
    label(text, LEGEND + 226, y, "start", p->kernel);
    snprintf(words, sizeof words, "%.2f", p->bytes / p->operations * p->rate);
    label(text, LEGEND + 506, y, "end", words);
    snprintf(words, sizeof words, "%.2f", p->rate);
    label(text, LEGEND + 578, y, "end", words);
    snprintf(words, sizeof words, "%.0f %%", 100.0 * share_of(plot, p));
    label(text, LEGEND + 662, y, "end", words);
}

static void draw_legend(const bench_plot *plot, iso_text *text)
{
    double y = TOP - 12;
    uint32_t number = 0;

    label(text, LEGEND + 16, y, "start", "case");
    label(text, LEGEND + 226, y, "start", "kernel");
    label(text, LEGEND + 506, y, "end", "GB/s");
    label(text, LEGEND + 578, y, "end", "GFLOP/s");
    label(text, LEGEND + 662, y, "end", "of the roof");
    for (uint32_t i = 0; i < plot->point_count; i++)
        if (plot->point[i].operations > 0.0)
            draw_row(plot, &plot->point[i], ++number, y += LINE, text);
    if (number == plot->point_count)
        return;
    y += LINE;
    label(text, LEGEND + 16, y += LINE, "start", "without a count of operations, not drawn:");
    for (uint32_t i = 0; i < plot->point_count; i++)
        if (plot->point[i].operations == 0.0) {
            label(text, LEGEND + 16, y += LINE, "start", plot->point[i].name);
            label(text, LEGEND + 226, y, "start", plot->point[i].kernel);
        }
}

void bench_svg_write(const bench_plot *plot, iso_text *text)
{
    const frame f = frame_of(plot);
    const int legend = TOP + LINE * ((int)plot->point_count + 4), least = TOP + PLOT_HEIGHT + 60;
    const int height = legend > least ? legend : least;
    char words[96];

    iso_text_printf(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                    "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n<style>"
                    ".grid{stroke:#eee}.decade{stroke:#ccc}.roof{stroke:#222;stroke-width:2}"
                    ".near{stroke:#888;stroke-width:1.5;stroke-dasharray:6 4}.lead{stroke:#999}"
                    ".number{fill:#fff;font-size:10px;text-anchor:middle}.words{fill:#444}"
                    "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, height,
                    WIDTH, height, WIDTH, height);
    snprintf(words, sizeof words, "isobit bench, %lld threads: roofs and points of one run",
             (long long)plot->threads);
    label(text, LEFT, 22, "start", words);
    draw_axes(&f, text);
    draw_roofs(plot, &f, text);
    draw_points(plot, &f, text);
    draw_legend(plot, text);
    iso_text_printf(text, "</svg>\n");
}
