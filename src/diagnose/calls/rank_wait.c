/* SPDX-License-Identifier: Apache-2.0 */
/* rank_wait.c - waits for collectives, step by step, before and after a change.
 *
 * Several collectives may share the synchronisation that follows them, and each has all of it as
 * its wait: a step never waits longer than it takes. A rank that is late itself waits no longer
 * than before, so it has no excess here.
 *
 * Where all ranks of the communicator are recorded, detect_straggler.c compares them and knows better. */
#include "diagnose/calls/rank_wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_node(const struct recording *rec, const struct collective_row *row)
{
	return !rec->node || !rec->node[0] || strchr(rec->node, ',') || !row->node[0] ||
	       !strcmp(rec->node, row->node);
}

/* Whether ranks of the communicator of @one are not here. Each rank has one row of a collective;
 * where their number is not known, a rank that is alone has others elsewhere. */
static bool misses_ranks(const struct recording *rec, const struct collective_row *one)
{
	size_t here = 0;

	for (size_t i = 0; i < rec->collective_count; i++)
		here += rec->collectives[i].c.comm_hash == one->c.comm_hash &&
			rec->collectives[i].c.seq == one->c.seq;
	return one->c.nranks < 0 ? here == 1 : here < (size_t)one->c.nranks;
}

/* Fills @waits, one for each step; returns the longest wait since step @index. */
static const struct collective_row *sum_waits(
	const struct recording *rec, const struct step_list *l, size_t index, uint64_t *waits)
{
	const struct collective_row *longest = NULL;

	for (size_t i = 0; i < rec->collective_count; i++) {
		const struct collective_row *row = &rec->collectives[i];
		size_t at = row->pid == l->pid && row->c.wait_ns > 0 && is_of_node(rec, row)
				    ? step_at(l, row->start.ns)
				    : SIZE_MAX;
		uint64_t most;

		if (at == SIZE_MAX)
			continue;
		most = (uint64_t)(l->items[at].end_ns - l->items[at].start_ns);
		waits[at] = MIN(waits[at] + (uint64_t)row->c.wait_ns, most);
		if (at >= index && (!longest || row->c.wait_ns > longest->c.wait_ns))
			longest = row;
	}
	return longest;
}

int rank_wait_find(
	const struct recording *rec, const struct step_list *l, size_t index, struct rank_wait *ret)
{
	_cleanup_free_ uint64_t *waits = NULL;
	const struct collective_row *longest;
	uint64_t before = 0, excess = 0;

	if (!rec->collective_count || !index || index >= l->count)
		return 0;
	waits = calloc(l->count, sizeof(*waits));
	if (!waits)
		return -ENOMEM;
	longest = sum_waits(rec, l, index, waits);
	if (!longest || !misses_ranks(rec, longest))
		return 0;
	for (size_t i = 0; i < index; i++)
		before += waits[i] / index;
	for (size_t i = index; i < l->count; i++)
		excess += waits[i] > before ? waits[i] - before : 0;
	*ret = (struct rank_wait){
		.excess_ns = excess, .step_ns = excess / (l->count - index), .row = longest};
	return excess > 0;
}
