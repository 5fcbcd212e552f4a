/* SPDX-License-Identifier: Apache-2.0 */
/* late_calls.c - see late_calls.h. Recordings of older versions count the calls of communicators that they cannot name by
 * positive numbers: these are the rank's own as well. A Send or Recv is given the number that it is to its peer. */
#include "diagnose/accounts/late_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "blame/comm_join.h"

#define PAIRS_MAX (1 << 20)

struct gathering {
	const struct recording *rec;
	struct blame_worker *workers;
	size_t worker_count;
	struct blame_call *calls;
	size_t *rows; /* of the calls */
	size_t count;
	struct idmap *numbers; /* worker + 1, by node and pid */
	struct idmap *points;  /* calls so far, by who and to whom */
};

static bool is_point(const struct collective_row *r)
{
	return r->op == NCCL_SEND || r->op == NCCL_RECV;
}

static bool is_late(const struct collective_row *r)
{
	return !r->c.comm_hash || r->c.seq > INT64_MAX;
}

static bool is_told(const struct collective_row *r)
{
	return r->c.nranks > 1 && r->c.rank >= 0 && r->c.rank < r->c.nranks && r->start.ns >= 0 &&
	       r->start.ns <= INT64_C(1) << 62 && r->dur_ns <= UINT64_C(1) << 50 &&
	       r->c.wait_ns >= -1 && r->c.wait_ns <= INT64_C(1) << 50;
}

/* The number of the process; -ENOBUFS: there are too many. */
static int worker_of(struct gathering *g, const struct collective_row *r, uint32_t *ret)
{
	uint64_t key =
		hash_number(hash_bytes(r->node, strnlen(r->node, sizeof(r->node))) ^ r->pid) | 1;
	size_t n = (size_t)(uintptr_t)idmap_get(g->numbers, key);
	int e;

	if (!n) {
		e = idmap_put(g->numbers, key, (void *)(uintptr_t)(g->worker_count + 1));
		if (e < 0)
			return e;
		n = ++g->worker_count;
		g->workers[n - 1] =
			(struct blame_worker){.rank = -1, .node = r->node, .pid = r->pid};
	}
	*ret = (uint32_t)(n - 1);
	return 0;
}

/* How many this one is to its peer, from 1; 0: there are too many pairs. */
static uint64_t point_number(struct gathering *g, const struct collective_row *r, uint32_t worker)
{
	uint64_t key =
		hash_number(hash_number(r->c.comm_hash ^ (uint64_t)r->c.nranks << 40 ^ worker) ^
			    ((uint64_t)(uint32_t)r->c.peer << 1 | (r->op == NCCL_SEND)) ^
			    hash_number(-r->c.seq >> COMM_JOIN_TAG)) |
		1;
	uintptr_t n = (uintptr_t)idmap_get(g->points, key) + 1;

	return idmap_put(g->points, key, (void *)n) < 0 ? 0 : n;
}

static int add_call(struct gathering *g, size_t row)
{
	const struct collective_row *r = &g->rec->collectives[row];
	uint64_t seq = r->c.seq;
	uint32_t worker;
	int e = worker_of(g, r, &worker);

	if (e < 0)
		return e == -ENOBUFS ? 0 : e;
	if (is_late(r) && is_point(r)) {
		uint64_t tag = r->c.comm_hash ? 0 : -seq >> COMM_JOIN_TAG;

		seq = -(point_number(g, r, worker) | (seq ? tag << COMM_JOIN_TAG : 0));
	} else if (is_late(r) && seq <= INT64_MAX) {
		seq = -seq;
	}
	g->rows[g->count] = row;
	g->calls[g->count++] = (struct blame_call){worker,
		{.comm = r->c.comm_hash,
			.seq = seq,
			.bytes = r->c.bytes,
			.enter_ns = r->start.ns,
			.leave_ns =
				r->start.ns + (int64_t)r->dur_ns + MAX(r->c.wait_ns, INT64_C(0)),
			.wait_ns = r->c.wait_ns < 0 ? UINT64_MAX : (uint64_t)r->c.wait_ns,
			.rank = r->c.rank,
			.nranks = r->c.nranks,
			.peer = is_point(r) ? r->c.peer : -1,
			.pid = r->pid,
			.op = r->op}};
	return 0;
}

/* A message on a communicator that is known is told by its order if not by its number (blame_match.c). */
static int take_joined(struct gathering *g, struct late_calls *ret)
{
	ret->rows = calloc(g->count + 1, sizeof(*ret->rows));
	ret->of = calloc(g->count + 1, sizeof(*ret->of));
	if (!ret->rows || !ret->of)
		return -ENOMEM;
	for (size_t i = 0; i < g->count; i++) {
		const struct collective_row *r = &g->rec->collectives[g->rows[i]];
		const struct push_call *c = &g->calls[i].c;

		if (!is_late(r) || !push_call_is_numbered(c)) {
			ret->unknown += is_late(r) && !(is_point(r) && r->c.comm_hash);
			continue;
		}
		ret->of[ret->count] = g->rows[i];
		ret->rows[ret->count] = *r;
		ret->rows[ret->count].c.comm_hash = c->comm;
		ret->rows[ret->count++].c.seq = c->seq;
	}
	return 0;
}

static int join_calls(struct gathering *g, struct late_calls *ret)
{
	struct comm_join joined;
	bool one_node = true;
	int r;

	for (size_t i = 1; i < g->worker_count; i++)
		one_node = one_node && !strcmp(g->workers[i].node, g->workers[0].node);
	for (size_t i = 0; !one_node && i < g->worker_count; i++)
		g->workers[i].error_ns = UINT64_MAX;
	r = comm_join_run(g->workers, g->calls, g->count, &joined);
	if (r < 0)
		return r;
	comm_join_apply(&joined, g->calls, g->count);
	comm_join_done(&joined);
	return take_joined(g, ret);
}

int late_calls_find(const struct recording *rec, struct late_calls *ret)
{
	_cleanup_(idmap_done) struct idmap numbers = IDMAP_INIT(BLAME_WORKERS_MAX);
	_cleanup_(idmap_done) struct idmap points = IDMAP_INIT(PAIRS_MAX);
	_cleanup_free_ struct blame_worker *workers = NULL;
	_cleanup_free_ struct blame_call *calls = NULL;
	_cleanup_free_ size_t *rows = NULL;
	struct gathering g = {.rec = rec, .numbers = &numbers, .points = &points};
	size_t late = 0;
	int r = 0;

	*ret = (struct late_calls){0};
	for (size_t i = 0; i < rec->collective_count; i++)
		late += is_late(&rec->collectives[i]);
	if (!late)
		return 0;
	g.workers = workers = calloc(rec->collective_count + 1, sizeof(*workers));
	g.calls = calls = calloc(rec->collective_count + 1, sizeof(*calls));
	g.rows = rows = calloc(rec->collective_count + 1, sizeof(*rows));
	if (!workers || !calls || !rows)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < rec->collective_count; i++) {
		if (is_told(&rec->collectives[i]))
			r = add_call(&g, i);
		else
			ret->unknown += is_late(&rec->collectives[i]);
	}
	return r < 0 ? r : join_calls(&g, ret);
}

void late_calls_done(struct late_calls *l)
{
	free(l->rows);
	free(l->of);
	*l = (struct late_calls){0};
}
