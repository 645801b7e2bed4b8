#include "convert/report.h"

#include "core/alloc.h"
#include "model/engram.h"

#include <string.h>

const char *iso_grouped(uint64_t value, char buffer[ISO_GROUPED_TEXT])
{
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    int used = 0;

    for (int i = 0; i < count; i++) {
        if (i != 0 && (count - i) % 3 == 0)
            buffer[used++] = ',';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

/* The row counts of the configuration follow from its other Engram values. */
static iso_status check_engram(const iso_config *config, iso_error *error)
{
    const uint32_t count = config->engram_layers.count;
    iso_engram_layer *layers;
    iso_status status;

    if (count == 0)
        return ISO_OK;
    layers = iso_alloc_zero(count, sizeof *layers, "report.engram");
    if (layers == NULL)
        return iso_fail(error, ISO_NO_MEMORY, "out of memory for Engram constants");
    status = iso_engram_derive(config, layers, error);
    iso_release(layers, count * sizeof *layers);
    return status;
}

iso_status iso_checkpoint_open(const char *path, iso_checkpoint *checkpoint, iso_error *error)
{
    iso_status status;

    checkpoint->store = NULL;
    ISO_TRY(iso_store_open(path, &checkpoint->store, error));
    ISO_GOTO(iso_config_read(checkpoint->store, &checkpoint->config, error));
    ISO_GOTO(check_engram(&checkpoint->config, error));
    ISO_GOTO(iso_weights_check(&checkpoint->config, checkpoint->store, &checkpoint->report,
                               error));
done:
    if (status != ISO_OK)
        iso_checkpoint_close(checkpoint);
    return status;
}

void iso_checkpoint_close(iso_checkpoint *checkpoint) { iso_store_close(&checkpoint->store); }

iso_dtype iso_report_dtype(uint32_t index)
{
    static const iso_dtype order[] = {ISO_DTYPE_BF16, ISO_DTYPE_F32, ISO_DTYPE_E4M3,
                                      ISO_DTYPE_UE8M0, ISO_DTYPE_I8};

    return index < ISO_COUNT_OF(order) ? order[index] : ISO_DTYPE_NONE;
}

void iso_report_unknown(const iso_weights_report *report, iso_text *text)
{
    char count[ISO_GROUPED_TEXT];

    if (report->unknown != 0)
        iso_text_printf(text, "notice       %s tensor%s no part of this model uses, first: %s\n",
                        iso_grouped(report->unknown, count), report->unknown == 1 ? "" : "s",
                        report->first_unknown);
}

void iso_report_unknown_json(const iso_weights_report *report, iso_text *text)
{
    iso_text_printf(text, ", \"unknown\": {\"count\": %llu", (unsigned long long)report->unknown);
    if (report->unknown != 0) {
        iso_text_printf(text, ", \"first\": ");
        iso_text_json(text, report->first_unknown);
    }
    iso_text_printf(text, "}");
}
