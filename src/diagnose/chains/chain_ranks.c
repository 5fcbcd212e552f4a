/* SPDX-License-Identifier: Apache-2.0 */
/* chain_ranks.c - whether a rank waits longer because others of its job, whose recordings these are not, come later: behind
 * the collectives of one communicator it and all ranks of the recording that meet there wait for as much more as is to be
 * explained. If one of those did not, it would be the one that is late. */
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/chains/gpu_change.h"
#include "diagnose/thresholds.h"
#include "wire/names.h"

#define COMMS_MAX   16 /* of one process */
#define MEMBERS_MAX 64 /* of one communicator, in a recording */

struct comm_wait {
	const struct collective_row *row; /* one of them */
	uint64_t ns[2];                   /* by pace */
	int64_t until;                    /* waits that are counted */
};

/* Before a trace communicators have no names: then their size tells them apart. */
static bool is_comm(const struct collective_row *r, const struct collective_row *of)
{
	return r->c.comm_hash == of->c.comm_hash && r->c.nranks == of->c.nranks;
}

static bool is_same_process(const struct collective_row *a, const struct collective_row *b)
{
	return a->pid == b->pid && !strcmp(a->node, b->node);
}

static void take(struct comm_wait *w, const struct step_account *a, const struct collective_row *r)
{
	size_t after = LOWER_BOUND(i, a->mark_count, a->marks[i].start.ns <= r->start.ns);
	const struct step_mark *m = after ? &a->marks[after - 1] : NULL;
	int64_t left = collective_left_ns(r);
	int64_t from = MAX(left - r->c.wait_ns, w->until);

	if (!m || r->start.ns >= m->start.ns + (int64_t)m->dur_ns || left <= from)
		return;
	w->ns[m->is_slow ? PACE_SLOW : PACE_ORDINARY] += (uint64_t)(left - from);
	w->until = left;
}

/* What a slow step waits longer than an ordinary one. */
static double grown_ns(const struct comm_wait *w, const struct step_account *a)
{
	return (double)w->ns[PACE_SLOW] / MAX(a->slow_steps, 1u) -
	       (double)w->ns[PACE_ORDINARY] / MAX(a->ordinary_steps, 1u);
}

static bool has_waited(const struct collective_row *r)
{
	return r->c.nranks > 1 && r->c.wait_ns > 0;
}

/* The communicator behind whose collectives the process waits most longer. */
static struct comm_wait find_comm(const struct chain *c)
{
	struct comm_wait waits[COMMS_MAX] = {0};
	size_t count = 0, best = 0;

	for (size_t i = 0; i < c->rec->collective_count; i++) {
		const struct collective_row *r = &c->rec->collectives[i];
		size_t k = 0;

		if (r->pid != c->a->pid || !has_waited(r))
			continue;
		while (k < count && !is_comm(r, waits[k].row))
			k++;
		if (k == COMMS_MAX)
			continue;
		if (k == count)
			waits[count++].row = r;
		take(&waits[k], c->a, r);
	}
	for (size_t k = 1; k < count; k++)
		if (grown_ns(&waits[k], c->a) > grown_ns(&waits[best], c->a))
			best = k;
	return waits[best];
}

/* How many ranks of @comm the recording has, if each waits longer by @least at least; 0: one does not, or there are too many. */
static size_t waiting_members(
	const struct chain *c, const struct collective_row *comm, double least)
{
	struct {
		const struct collective_row *of; /* of several nodes, two may have one pid */
		struct comm_wait wait;
	} members[MEMBERS_MAX] = {0};
	size_t count = 0;

	for (size_t i = 0; i < c->rec->collective_count; i++) {
		const struct collective_row *r = &c->rec->collectives[i];
		size_t k = 0;

		if (!is_comm(r, comm))
			continue;
		while (k < count && !is_same_process(members[k].of, r))
			k++;
		if (k == MEMBERS_MAX)
			return 0;
		count = MAX(count, k + 1);
		members[k].of = r;
		if (has_waited(r))
			take(&members[k].wait, c->a, r);
	}
	for (size_t k = 0; k < count; k++)
		if (grown_ns(&members[k].wait, c->a) < least)
			return 0;
	return count;
}

bool chain_ranks(const struct chain *c, struct resource_use *ret)
{
	double more = (double)c->d->slow_ns - (double)c->d->ordinary_ns;
	struct comm_wait w = {0};
	char scratch[32];
	const char *op;
	size_t here;

	if (!c->has_slow || c->d->kind == DELAY_BY_SYNC || !c->rec->collective_count)
		return false;
	w = find_comm(c);
	if (!w.row || grown_ns(&w, c->a) < THRESHOLD(CHAIN_MOST) * more || !c->gpu ||
		c->gpu->reason != GPU_BY_NOTHING)
		return false;
	here = waiting_members(c, w.row, THRESHOLD(CHAIN_MOST) * more);
	if (!here || here >= (size_t)w.row->c.nranks)
		return false;
	op = wire_op_name(SOURCE_NCCL, w.row->op, scratch);
	ret->resource = RESOURCE_RANKS;
	snprintf(ret->who, sizeof(ret->who), "%s", op);
	if (w.row->c.comm_hash)
		snprintf(ret->detail, sizeof(ret->detail),
			"communicator %016llx, %zu of whose %d ranks %s recorded here",
			(unsigned long long)w.row->c.comm_hash, here, w.row->c.nranks,
			here == 1 ? "is" : "are");
	else
		snprintf(ret->detail, sizeof(ret->detail),
			"a communicator of %d ranks, of which %zu %s recorded here",
			w.row->c.nranks, here, here == 1 ? "is" : "are");
	ret->share = MIN(grown_ns(&w, c->a) / more, 1.0);
	return true;
}
