/* layout: how a tensor's elements are arranged; rows of layout.def. */
#ifndef ISO_CORE_LAYOUT_H
#define ISO_CORE_LAYOUT_H

typedef enum iso_layout {
#define LAYOUT(name, text) ISO_LAYOUT_##name,
#include "core/layout.def"
#undef LAYOUT
    ISO_LAYOUT_COUNT
} iso_layout;

const char *iso_layout_name(iso_layout layout);
iso_layout iso_layout_of_name(const char *name);     /* ISO_LAYOUT_COUNT: no such layout */

#endif
