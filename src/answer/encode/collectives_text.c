/* SPDX-License-Identifier: Apache-2.0 */
/* collectives_text.c - how fast collectives moved their data, for people. */
#include "answer/collectives.h"
#include "base/text.h"

static void put_op(struct buf *b, unsigned op, const struct collective_op *o)
{
	char scratch[32], calls[TEXT_MAX];

	for (unsigned i = 0; i < BANDWIDTH_CLASSES; i++) {
		const struct collective_speed *s = &o->speeds[i];

		if (s->calls)
			buf_printf(b, "  %-20s %-16s %9s %12.2f %12.2f %12.2f\n",
				wire_op_name(SOURCE_NCCL, op, scratch), bandwidth_class_name(i),
				text_format_count(calls, s->calls),
				collective_algorithm_bandwidth(s) / 1e9,
				collective_bus_bandwidth(s) / 1e9, s->best / 1e9);
	}
}

void collectives_text(struct buf *b, const struct collectives_answer *a)
{
	size_t before;

	buf_printf(b, "\n  %-20s %-16s %9s %12s %12s %12s\n", "COLLECTIVE, GB/s", "SIZE", "CALLS",
		"ALGORITHM", "BUS", "BEST BUS");
	before = b->len;
	for (unsigned op = 0; op < WIRE_OP_MAX; op++)
		put_op(b, op, &a->ops[op]);
	if (b->len > before)
		buf_puts(b, "  At least: a call's end is seen when its stream is waited for.\n");
	else
		buf_puts(b, "  not known: when the calls ended was not recorded\n");
}
