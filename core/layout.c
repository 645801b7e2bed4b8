#include "core/layout.h"

#include "core/check.h"

#include <string.h>

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

iso_layout iso_layout_of_name(const char *name)
{
    int layout = 0;

    while (layout < ISO_LAYOUT_COUNT && strcmp(iso_layout_name((iso_layout)layout), name) != 0)
        layout++;
    return (iso_layout)layout;
}
