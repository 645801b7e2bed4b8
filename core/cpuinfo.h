/* cpuinfo: which instruction sets of isa.def this processor and system offer, read once, and the
 * mask a user may put over them. The architecture's file is picked by the build. */
#ifndef ISO_CORE_CPUINFO_H
#define ISO_CORE_CPUINFO_H

#include "core/status.h"

typedef enum iso_isa {
#define ISA(name, needs) ISO_ISA_##name,
#include "core/isa.def"
#undef ISA
    ISO_ISA_COUNT
} iso_isa;

const char *iso_isa_name(iso_isa isa);
const char *iso_isa_needs(iso_isa isa);

/* Bit i: ISA i is there. */
uint32_t iso_isa_available(void);

/* "avx2": that set and all weaker ones; NULL or "native": all that are there. Fails with what there
 * is when the named one is not. */
iso_status iso_isa_mask(const char *text, uint32_t *mask, iso_error *error);

/* cpuinfo_<architecture>.c: bits beside ISO_ISA_portable. */
uint32_t iso_isa_detect(void);

#endif
