#include "backends/cpu/fused.h"

#include "backends/cpu/cpu.h"

#include <string.h>

typedef struct fused_row {
    const char *fusion;
    const iso_cpu_form *form;
    uint64_t grain;
} fused_row;

static const fused_row rows[] = {
#define FUSED(fusion, form, grain) {#fusion, &iso_cpu_form_##form, grain},
#include "backends/cpu/fused.def"
#undef FUSED
};

uint32_t iso_cpu_fused_count(void) { return ISO_COUNT_OF(rows); }

const char *iso_cpu_fused_name(uint32_t index)
{
    ISO_ASSERT(index < ISO_COUNT_OF(rows));
    return rows[index].fusion;
}

const iso_cpu_form *iso_cpu_fused_form(uint32_t index)
{
    ISO_ASSERT(index < ISO_COUNT_OF(rows));
    return rows[index].form;
}

uint64_t iso_cpu_fused_grain(uint32_t index)
{
    ISO_ASSERT(index < ISO_COUNT_OF(rows));
    return rows[index].grain;
}

bool iso_cpu_has_link(const iso_fused_call *call, uint32_t k)
{
    for (uint32_t i = 0; i < call->part[k]->op->input_count; i++)
        if (call->link[k][i].part != 0)
            return true;
    return false;
}

bool iso_cpu_is_link(const iso_fused_call *call, uint32_t k, uint32_t input, uint32_t from)
{
    for (uint32_t i = 0; i < call->part[k]->op->input_count; i++)
        if (i != input && call->link[k][i].part != 0)
            return false;
    return call->link[k][input].part == from + 1 && call->link[k][input].output == 0;
}

uint64_t iso_cpu_part_units(const iso_op_call *call)
{
    _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX] = {0};

    call->op->fill(call, args);
    return call->op->units(args);
}

void iso_cpu_part_run(const iso_cpu_part *part, uint64_t begin, uint64_t end)
{
    part->kernel(part->args, &part->tensors, (iso_range){begin, end});
}

/* Rows that exist are counted alike in all parts. */
static bool is_counted_alike(const iso_fused_call *call)
{
    iso_live first = {0};

    for (uint32_t k = 0; k < call->fusion->part_count; k++) {
        _Alignas(8) unsigned char args[ISO_OP_ARGS_MAX] = {0};
        iso_live live;

        call->part[k]->op->fill(call->part[k], args);
        memcpy(&live, args, sizeof live);
        if (k == 0)
            first = live;
        if (live.count != first.count || live.word != first.word || live.mult != first.mult)
            return false;
    }
    return true;
}

void iso_cpu_query_fused(iso_device *device, const iso_fused_call *call, iso_num_class num_class,
                         iso_support *support)
{
    const char *why = NULL;

    memset(support, 0, sizeof *support);
    support->reason = ISO_REASON_NO_KERNEL;
    if (device->is_reference_only
        || (device->probe_text[0] != '\0' && num_class == ISO_CLASS_EXACT))
        return;
    for (uint32_t r = 0; r < ISO_COUNT_OF(rows); r++) {
        if (strcmp(rows[r].fusion, call->fusion->name) != 0)
            continue;
        why = is_counted_alike(call) ? rows[r].form->refuse(call) : "rows counted differently";
        support->ok = why == NULL;
        support->reason = why == NULL ? ISO_REASON_NONE : ISO_REASON_SHAPE_LIMIT;
        support->num_class = ISO_CLASS_EXACT;
        support->kernel = rows[r].form->name;
        support->kernel_index = r;
        support->stores_inner = true;
        snprintf(support->text, sizeof support->text, "%s", why == NULL ? "" : why);
        return;
    }
}
