#include "backends/cpu/kernels.h"

#include "backends/cpu/cpu.h"
#include "core/cpuinfo.h"
#include "ggml-style-ops/ops.h"

#include <string.h>

typedef struct kernel_row {
    iso_kernel_fn *function;
    uint64_t grain;
} kernel_row;

/* Not used where all rows that name it are another architecture's. */
#define PREDICATE __attribute__((unused)) static bool

PREDICATE accepts_any(const iso_op_call *call)
{
    (void)call;
    return true;
}

/* matmul_experts: what the kernel's tables hold for 16 tokens. */
PREDICATE accepts_picks_max_8(const iso_op_call *call) { return call->in[2].extent[1] <= 8; }

/* matmul_experts: digits of one activation row in the kernel's table. */
PREDICATE accepts_experts_k_max_8192(const iso_op_call *call)
{
    return iso_desc_last(&call->in[0]) <= 8192;
}

/* attend: blocks of 64 keys that the kernel keeps scores of; in: ring_code [slots, window, d],
 * ids [T, picks]. A window that is not aligned touches one block more. */
PREDICATE accepts_key_blocks_max_40(const iso_op_call *call)
{
    const int64_t window = call->in[1].extent[1];
    const int64_t picks = iso_desc_present(&call->in[8]) ? call->in[8].extent[1] : 0;

    return (window + 62) / 64 + 1 + (picks + 63) / 64 <= 40;
}

/* index_score: the query of one token, q [tokens, heads, dim], in the kernel's table. */
PREDICATE accepts_index_values_max_16384(const iso_op_call *call)
{
    const int64_t heads = call->in[0].extent[1], dim = call->in[0].extent[2];

    return heads <= 128 && dim <= 1024 && heads * dim <= 16384;
}

/* Both tables end with a row that is never taken, so that no table is empty. */
static const iso_select_row select_rows[] = {
#define KERNEL(op, form, isa, layout, accepts, grain)                                             \
    KERNEL_IF_##isa({#op, #op "/cpu/" #form "/" #isa, #form "/" #isa, ISO_ISA_##isa,              \
                     ISO_LAYOUT_##layout, #accepts, accepts_##accepts},)
#include "backends/cpu/kernels.def"
#undef KERNEL
    {0},
};

static const kernel_row kernel_rows[] = {
#define KERNEL(op, form, isa, layout, accepts, grain)                                             \
    KERNEL_IF_##isa({iso_cpu_##op##_##form##_##isa,                                               \
                     ISO_OP_ID_##op < ISO_OP_ID_COUNT ? (grain) : 0},)
#include "backends/cpu/kernels.def"
#undef KERNEL
    {0},
};

uint32_t iso_cpu_kernel_count(void) { return ISO_COUNT_OF(select_rows) - 1; }
const iso_select_row *iso_cpu_kernel_rows(void) { return select_rows; }

iso_kernel_fn *iso_cpu_kernel_function(uint32_t index)
{
    ISO_ASSERT(index < iso_cpu_kernel_count());
    return kernel_rows[index].function;
}

uint64_t iso_cpu_kernel_grain(uint32_t index)
{
    ISO_ASSERT(index < iso_cpu_kernel_count());
    return kernel_rows[index].grain;
}

/* An operator that is no row of ops.def (a test's own) has no name of its own here. */
const char *iso_cpu_reference_name(const iso_op *op)
{
    static const char *const name[] = {
#define OP(name, inputs, outputs, params, flags) #name "/cpu/reference",
#include "ggml-style-ops/ops.def"
#undef OP
    };
    const size_t bytes = strlen(op->name);

    if (op->id < ISO_COUNT_OF(name) && strncmp(name[op->id], op->name, bytes) == 0
        && name[op->id][bytes] == '/')
        return name[op->id];
    return "reference";
}

void iso_cpu_query(iso_device *device, const iso_op_call *call, iso_num_class num_class,
                   iso_support *support)
{
    const uint32_t count = iso_cpu_kernel_count();

    memset(support, 0, sizeof *support);
    if (device->probe_text[0] != '\0' && num_class == ISO_CLASS_EXACT) {
        support->reason = ISO_REASON_PROBE_FAILED;
        snprintf(support->text, sizeof support->text, "%s", device->probe_text);
        return;
    }
    if (call->op->reference == NULL) {
        support->reason = ISO_REASON_NO_KERNEL;
        return;
    }
    if (!device->is_reference_only
        && iso_select_kernel(select_rows, count, device->isa_mask, call, support) != count)
        return;
    if (iso_select_is_plain(call))
        iso_select_accept(call, iso_cpu_reference_name(call->op), count, support);
    else
        support->reason = ISO_REASON_LAYOUT;
}
