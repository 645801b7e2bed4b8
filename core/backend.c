#include "core/backend.h"

#include "core/check.h"

const char *iso_reason_text(iso_reason reason)
{
    static const char *const text[] = {
#define REASON(name, sentence) sentence,
#include "core/reason.def"
#undef REASON
    };

    ISO_ASSERT((unsigned)reason < ISO_REASON_COUNT);
    return text[reason];
}

const char *iso_memory_kind_name(iso_memory_kind kind)
{
    static const char *const name[] = {"host", "pinned", "device", "shared", "mapped"};

    ISO_STATIC_ASSERT(ISO_COUNT_OF(name) == ISO_MEMORY_KIND_COUNT, "a name per kind");
    ISO_ASSERT((unsigned)kind < ISO_MEMORY_KIND_COUNT);
    return name[kind];
}
