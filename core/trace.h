/* trace: the hash of what a step has written. Two runs of one graph, on any devices, give the same
 * lines; the first unequal line names the guilty kernel. */
#ifndef ISO_CORE_TRACE_H
#define ISO_CORE_TRACE_H

#include "core/plan.h"

/* XXH3-128 over the live leading rows of the outputs of node `node`, in order; state changed in
 * place is not read (the hash is then that of no bytes). The step must have ended, and the plan be
 * recorded step by step on a device whose memory the host can read. */
void iso_trace_node(const iso_plan *plan, uint32_t node, uint64_t hash[2]);

/* Output `output` of node `node` under the same conditions: *live receives its descriptor with the
 * leading extent cut to the rows of this run, *data its bytes. False for state changed in place. */
bool iso_trace_output(const iso_plan *plan, uint32_t node, uint32_t output, iso_tensor_desc *live,
                      const void **data);

#endif
