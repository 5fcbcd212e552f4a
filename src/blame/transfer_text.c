/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_text.c - see transfer_text.h. */
#include "blame/transfer_text.h"

#include <string.h>

#include "base/text.h"
#include "wire/names.h"

struct transfer_text transfer_text_of(
	const struct blame_transfer *t, const struct blame_worker *workers)
{
	struct transfer_text x = {.is_link = t->from != UINT32_MAX,
		.from_rank = -1,
		.to_rank = -1,
		.from_node = "",
		.to_node = "",
		.comm = t->comm,
		.op = t->op,
		.ranks = t->ranks,
		.bytes = t->bytes,
		.took_ns = t->took_ns,
		.usual_ns = t->usual_ns,
		.by_past = t->by_past};

	if (x.is_link) {
		x.from_rank = workers[t->from].rank;
		x.to_rank = workers[t->to].rank;
		x.from_node = workers[t->from].node;
		x.to_node = workers[t->to].node;
	}
	return x;
}

void transfer_text_collective(struct buf *b, uint16_t op, uint64_t comm)
{
	static const char prefix[] = "nccl"; /* people say AllReduce */
	char scratch[32];
	const char *name = wire_op_name(SOURCE_NCCL, op, scratch);

	if (strncmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	buf_printf(b, "%s of communicator %016llx", name, (unsigned long long)comm);
}

/* "1.0 MiB takes 12ms (0.0874 GB/s) against 300µs (3.5 GB/s) on peers" */
static void put_speed(struct buf *b, const struct transfer_text *t)
{
	char size[TEXT_MAX], took[TEXT_MAX], usual[TEXT_MAX];
	double bytes = (double)t->bytes;

	text_format_duration(took, t->took_ns);
	text_format_duration(usual, t->usual_ns);
	if (t->bytes)
		buf_printf(b, "%s takes %s (%.3g GB/s) against %s (%.3g GB/s)",
			text_format_bytes(size, t->bytes), took,
			bytes / (double)MAX(t->took_ns, UINT64_C(1)), usual,
			bytes / (double)MAX(t->usual_ns, UINT64_C(1)));
	else
		buf_printf(b, "takes %s against %s", took, usual);
	buf_puts(b, t->by_past ? " before" : " on peers");
}

static void put_end(struct buf *b, int32_t rank, const char *node)
{
	buf_printf(b, "rank %d", rank);
	if (node[0])
		buf_printf(b, " (%s)", node);
}

void transfer_text_put(struct buf *b, const struct transfer_text *t)
{
	if (t->is_link) {
		buf_puts(b, "the link ");
		put_end(b, t->from_rank, t->from_node);
		buf_puts(b, " -> ");
		put_end(b, t->to_rank, t->to_node);
		buf_printf(b, " is slow: a message%s ", t->bytes ? " of" : "");
		put_speed(b, t);
		buf_puts(b, "; both ranks are on time");
		return;
	}
	buf_puts(b, "the collective itself is slow: ");
	transfer_text_collective(b, t->op, t->comm);
	buf_puts(b, t->bytes ? ", " : " ");
	put_speed(b, t);
	buf_printf(b, "; all %u ranks are on time", t->ranks);
}
