#include "core/backends.h"

#include <string.h>

#define BACKEND(name) extern const struct iso_backend iso_backend_##name;
#include "core/backends.def"
#undef BACKEND

static const iso_backend *const table[] = {
#define BACKEND(name) &iso_backend_##name,
#include "core/backends.def"
#undef BACKEND
};

enum { DEVICES_MAX = 64 };

size_t iso_backend_count(void) { return ISO_COUNT_OF(table); }

const iso_backend *iso_backend_at(size_t index)
{
    ISO_ASSERT(index < ISO_COUNT_OF(table));
    ISO_ASSERT(table[index]->abi == ISO_BACKEND_ABI
               && table[index]->struct_bytes == sizeof(iso_backend));
    return table[index];
}

const iso_backend *iso_backend_find(const char *name)
{
    for (size_t i = 0; i < ISO_COUNT_OF(table); i++)
        if (strcmp(iso_backend_at(i)->name, name) == 0)
            return table[i];
    return NULL;
}

/* "name" or "name:index" -> its parts; false if it is neither. */
static bool split_text(const char *text, char name[32], uint32_t *index)
{
    const char *colon = strchr(text, ':');
    const size_t bytes = colon == NULL ? strlen(text) : (size_t)(colon - text);
    uint32_t value = 0;

    if (bytes == 0 || bytes >= 32)
        return false;
    memcpy(name, text, bytes);
    name[bytes] = '\0';
    if (colon != NULL && colon[1] == '\0')
        return false;
    for (const char *p = colon; p != NULL && *++p != '\0';) {
        if (*p < '0' || *p > '9' || value >= DEVICES_MAX)
            return false;
        value = value * 10 + (uint32_t)(*p - '0');
    }
    *index = value;
    return true;
}

static void list_names(char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < ISO_COUNT_OF(table) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i == 0 ? "" : ", ",
                                 table[i]->name);
}

iso_status iso_backend_open_device(const char *text, const iso_backend_options *options,
                                   const iso_backend **backend, iso_device **device,
                                   iso_error *error)
{
    const iso_backend *found;
    iso_device_info info[DEVICES_MAX];
    iso_error why = {0};
    char name[32], names[128];
    uint32_t index, count = DEVICES_MAX;

    list_names(names, sizeof names);
    if (!split_text(text, name, &index))
        return iso_fail(error, ISO_NO_DEVICE, "\"%s\": expected name or name:index, name is %s",
                        text, names);
    found = iso_backend_find(name);
    if (found == NULL)
        return iso_fail(error, ISO_NO_DEVICE, "\"%s\": this build has %s", text, names);
    ISO_TRY(found->list(options, info, &count, &why));
    if (index >= count)
        return iso_fail(error, ISO_NO_DEVICE, "\"%s\": %u devices found%s%s", text, count,
                        why.text[0] != '\0' ? ": " : "", why.text);
    ISO_TRY(found->open(options, index, device, error));
    *backend = found;
    return ISO_OK;
}
