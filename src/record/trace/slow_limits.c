/* SPDX-License-Identifier: Apache-2.0 */
/* slow_limits.c - see slow_limits.h. */
#include "record/trace/slow_limits.h"

#include "base/macros.h"
#include "wire/op_kind.h"

#define CALLS_MIN 100 /* before an op has a limit of its own */
#define RATIO     3   /* slower than this times the median is an exception */
#define FLOOR_NS                                                                                   \
	50000 /* shorter: explains nothing of a step, and a row with its stack costs more */

void slow_limits_add(
	struct slow_limits *l, unsigned source, unsigned op, const struct sketch *calls)
{
	uint64_t limit, *slot;

	if (!op_kind_is_cuda(source))
		return;
	if (calls->count < CALLS_MIN || op >= WIRE_OP_MAX)
		return;
	limit = MAX(RATIO * sketch_quantile(calls, 0.5), (uint64_t)FLOOR_NS);
	slot = &l->ns[source][op];
	if (!*slot || limit < *slot)
		*slot = limit;
}
