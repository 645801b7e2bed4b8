#include "core/cpuinfo.h"

#include "core/check.h"

#include <string.h>

static const struct {
    const char *name, *needs;
} isas[ISO_ISA_COUNT] = {
#define ISA(name, needs) [ISO_ISA_##name] = {#name, needs},
#include "core/isa.def"
#undef ISA
};

const char *iso_isa_name(iso_isa isa)
{
    ISO_ASSERT((unsigned)isa < ISO_ISA_COUNT);
    return isas[isa].name;
}

const char *iso_isa_needs(iso_isa isa)
{
    ISO_ASSERT((unsigned)isa < ISO_ISA_COUNT);
    return isas[isa].needs;
}

uint32_t iso_isa_available(void) { return iso_isa_detect() | 1u << ISO_ISA_portable; }

iso_status iso_isa_mask(const char *text, uint32_t *mask, iso_error *error)
{
    const uint32_t there = iso_isa_available();
    char names[64] = "";

    if (text == NULL || strcmp(text, "native") == 0) {
        *mask = there;
        return ISO_OK;
    }
    for (iso_isa isa = 0; isa < ISO_ISA_COUNT; isa++) {
        const size_t used = strlen(names);

        if (strcmp(text, isas[isa].name) == 0 && (there & 1u << isa) != 0) {
            *mask = there & ((2u << isa) - 1);
            return ISO_OK;
        }
        if ((there & 1u << isa) != 0)
            snprintf(names + used, sizeof names - used, " %s", isas[isa].name);
    }
    return iso_fail(error, ISO_BAD_ARGUMENT, "cpu \"%s\": this processor has%s", text, names);
}
