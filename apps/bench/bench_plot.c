#include "apps/bench/bench_plot.h"

#include "core/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 24 };

/* ---- the file of bench --json ---- */

static iso_status positive(const iso_json *object, const char *what, const char *key, double *out,
                           iso_error *error)
{
    const iso_json *value = iso_json_get(object, key);
    double number;

    if (!iso_json_number(value, &number) || !(number > 0.0 && number < 1e15))
        return iso_fail(error, ISO_BAD_JSON, "%s: \"%s\": a positive number expected, %s found",
                        what, key, value == NULL ? "nothing"
                                                 : iso_json_type_name(iso_json_type_of(value)));
    *out = number;
    return ISO_OK;
}

static iso_status name(const iso_json *object, const char *what, const char *key,
                       char out[BENCH_NAME_MAX], iso_error *error)
{
    const char *text = iso_json_string(iso_json_get(object, key), NULL);

    if (text == NULL)
        return iso_fail(error, ISO_BAD_JSON, "%s: \"%s\": a string expected", what, key);
    snprintf(out, BENCH_NAME_MAX, "%s", text);
    return ISO_OK;
}

static iso_status read_roof(const iso_json *root, const char *from, bench_plot *plot,
                            iso_error *error)
{
    const iso_json *roof = iso_json_get(root, "before");

    if (!iso_json_int(iso_json_get(root, "threads"), &plot->threads) || roof == NULL)
        return iso_fail(error, ISO_BAD_JSON, "%s: no \"threads\" and \"before\": not a file of "
                        "isobit bench --json", from);
    ISO_TRY(positive(roof, from, "read_gb_per_second", &plot->read, error));
    ISO_TRY(positive(roof, from, "near_read_gb_per_second", &plot->near_read, error));
    return positive(roof, from, "gflop_per_second", &plot->multiply, error);
}

static iso_status read_case(const iso_json *one, const char *from, bench_plot *plot,
                            iso_error *error)
{
    bench_point *point = &plot->point[plot->point_count];
    double counted;

    ISO_TRY(name(one, from, "case", point->name, error));
    if (iso_json_get(one, "not_measured") != NULL)
        return ISO_OK;
    ISO_TRY(name(one, from, "kernel", point->kernel, error));
    ISO_TRY(positive(one, from, "bytes", &point->bytes, error));
    if (!iso_json_number(iso_json_get(one, "operations"), &counted) || counted != 0.0) {
        ISO_TRY(positive(one, from, "operations", &point->operations, error));
        ISO_TRY(positive(one, from, "gflop_per_second", &point->rate, error));
    }
    plot->point_count++;
    return ISO_OK;
}

static iso_status read_plot(const iso_json *root, const char *from, bench_plot *plot,
                            iso_error *error)
{
    const iso_json *cases = iso_json_get(root, "cases");
    const size_t count = iso_json_size(cases);
    uint32_t drawn = 0;

    ISO_TRY(read_roof(root, from, plot, error));
    if (cases == NULL || iso_json_type_of(cases) != ISO_JSON_ARRAY)
        return iso_fail(error, ISO_BAD_JSON, "%s: \"cases\": an array expected", from);
    if (count > BENCH_POINTS_MAX)
        return iso_fail(error, ISO_LIMIT, "%s: %zu cases, at most %d", from, count,
                        BENCH_POINTS_MAX);
    for (size_t i = 0; i < count; i++)
        ISO_TRY(read_case(iso_json_at(cases, i), from, plot, error));
    for (uint32_t i = 0; i < plot->point_count; i++)
        drawn += plot->point[i].operations > 0.0;
    if (drawn == 0)
        return iso_fail(error, ISO_BAD_JSON, "%s: no case with a count of operations", from);
    return ISO_OK;
}

/* ---- the picture ---- */

static iso_status write_file(const char *to, const char *text, iso_error *error)
{
    FILE *file = fopen(to, "wb");
    bool is_written;

    if (file == NULL)
        return iso_fail(error, ISO_IO, "%s: %s", to, strerror(errno));
    is_written = fputs(text, file) >= 0;
    is_written = fclose(file) == 0 && is_written;
    if (!is_written) {
        remove(to);
        return iso_fail(error, ISO_IO, "%s: cannot be written: %s", to, strerror(errno));
    }
    return ISO_OK;
}

iso_status bench_plot_file(const char *from, const char *to, iso_error *error)
{
    static bench_plot plot;
    iso_json_doc *doc = NULL;
    iso_text text = {0};
    char *svg = NULL;
    iso_status status;

    ISO_TRY(iso_json_read(from, FILE_BYTES_MAX, &doc, error));
    plot = (bench_plot){0};
    status = read_plot(iso_json_root(doc), from, &plot, error);
    iso_json_free(&doc);
    ISO_TRY(status);
    bench_svg_write(&plot, &text);
    ISO_TRY(iso_text_take(&text, &svg, error));
    status = write_file(to, svg, error);
    iso_free(svg);
    return status;
}
