#include "core/cpuinfo.h"

uint32_t iso_isa_detect(void) { return 0; }
