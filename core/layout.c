#include "core/layout.h"

#include "core/check.h"

const char *iso_layout_name(iso_layout layout)
{
    static const char *const name[] = {
#define LAYOUT(name, text) text,
#include "core/layout.def"
#undef LAYOUT
    };

    ISO_ASSERT((unsigned)layout < ISO_LAYOUT_COUNT);
    return name[layout];
}
