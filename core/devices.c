/* devices: what there is to run on, as text or JSON. */
#include "core/backends.h"
#include "core/cpuinfo.h"
#include "core/text.h"

static void text_of(iso_text *text, const iso_device_info *info)
{
    iso_text_printf(text, "%-8s %s, %.1f GB of memory, probe %s%s\n", info->name, info->text,
                    (double)info->memory_bytes * 1e-9, info->probe_passed ? "passed" : "failed: ",
                    info->probe_text);
}

static void json_of(iso_text *text, const iso_device_info *info)
{
    iso_text_printf(text, "{\"name\":");
    iso_text_json(text, info->name);
    iso_text_printf(text, ",\"text\":");
    iso_text_json(text, info->text);
    iso_text_printf(text, ",\"memory_bytes\":%llu,\"probe_passed\":%s,\"probe_text\":",
                    (unsigned long long)info->memory_bytes,
                    info->probe_passed ? "true" : "false");
    iso_text_json(text, info->probe_text);
    iso_text_printf(text, "}");
}

static void isas_of(iso_text *text, bool json)
{
    const uint32_t there = iso_isa_available();

    iso_text_printf(text, json ? "],\"cpu_isa\":{"
                               : "\ninstruction sets of kernels (--cpu NAME)\n");
    for (iso_isa isa = 0; isa < ISO_ISA_COUNT; isa++) {
        const char *is = (there & 1u << isa) != 0 ? "yes" : "no";

        if (json)
            iso_text_printf(text, "%s\"%s\":%s", isa == 0 ? "" : ",", iso_isa_name(isa),
                            is[0] == 'y' ? "true" : "false");
        else
            iso_text_printf(text, "  %-10s %-4s needs %s\n", iso_isa_name(isa), is,
                            iso_isa_needs(isa));
    }
    iso_text_printf(text, json ? "}}\n" : "");
}

iso_status iso_devices(bool json, char **out, iso_error *error)
{
    enum { DEVICES_MAX = 16 };
    iso_text text = {0};

    if (json)
        iso_text_printf(&text, "{\"devices\":[");
    for (size_t b = 0, shown = 0; b < iso_backend_count(); b++) {
        iso_device_info info[DEVICES_MAX];
        uint32_t count = DEVICES_MAX;
        iso_error why = {.text = ""};
        const iso_status status = iso_backend_at(b)->list(NULL, info, &count, &why);

        if (status != ISO_OK || count == 0) {
            if (!json)
                iso_text_printf(&text, "%-8s 0 devices: %s\n", iso_backend_at(b)->name, why.text);
            continue;
        }
        for (uint32_t i = 0; i < count; i++, shown++) {
            if (json)
                iso_text_printf(&text, shown == 0 ? "" : ",");
            (json ? json_of : text_of)(&text, &info[i]);
        }
    }
    isas_of(&text, json);
    return iso_text_take(&text, out, error);
}
