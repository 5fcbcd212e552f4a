/* SPDX-License-Identifier: Apache-2.0 */
/* rank_calls.c - see rank_calls.h. Recordings of older versions count the calls of communicators that they cannot name by
 * positive numbers: these are the rank's own as well. A Send or Recv is given the number that it is to its peer; on a
 * communicator that is known it is told by its order if not by its number (blame_match.c). */
#include "diagnose/accounts/rank_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "blame/comm_join.h"

#define PAIRS_MAX        (1 << 20)
#define NODE_LEN         sizeof(((struct collective_row *)NULL)->node)
#define TIME_MAX_NS      (INT64_C(1) << 62)
#define DUR_MAX_NS       (INT64_C(1) << 50)
#define NCCL_IN_PROGRESS 7 /* ncclInProgress: a non-blocking communicator took the call */

struct gathering {
	struct rank_calls *to;
	struct idmap *numbers; /* worker + 1, by process */
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

static bool is_sane(const struct collective_row *r)
{
	return r->c.rank >= 0 && (r->c.seq || is_point(r)) &&
	       (r->ret == 0 || r->ret == NCCL_IN_PROGRESS) && r->start.ns >= 0 &&
	       r->start.ns <= TIME_MAX_NS && r->dur_ns <= (uint64_t)DUR_MAX_NS &&
	       r->c.wait_ns >= -1 && r->c.wait_ns <= DUR_MAX_NS && r->c.span_ns <= DUR_MAX_NS &&
	       ((r->op >= NCCL_ALL_REDUCE && r->op <= NCCL_RECV) ||
		       (r->op >= NCCL_REDUCE && r->op <= NCCL_SCATTER));
}

/* The number of the process; -ENOBUFS: there are too many. */
static int worker_of(struct gathering *g, const struct collective_row *r, uint32_t *ret)
{
	uint64_t key = hash_number(hash_bytes(r->node, strnlen(r->node, NODE_LEN)) ^ r->pid) | 1;
	size_t n = (size_t)(uintptr_t)idmap_get(g->numbers, key);
	int e;

	if (!n) {
		e = idmap_put(g->numbers, key, (void *)(uintptr_t)(g->to->worker_count + 1));
		if (e < 0)
			return e;
		n = ++g->to->worker_count;
		g->to->workers[n - 1] =
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

static int add_call(struct gathering *g, const struct collective_row *r)
{
	struct rank_calls *to = g->to;
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
	to->rows[to->count] = r;
	to->calls[to->count++] = (struct blame_call){.worker = worker,
		.c = {.comm = r->c.comm_hash,
			.seq = seq,
			.bytes = r->c.bytes,
			.enter_ns = r->start.ns,
			.leave_ns = collective_left_ns(r),
			.wait_ns = r->c.wait_ns < 0 ? UINT64_MAX : (uint64_t)r->c.wait_ns,
			.rank = r->c.rank,
			.nranks = r->c.nranks,
			.peer = is_point(r) ? r->c.peer : -1,
			.world_rank = -1,
			.pid = r->pid,
			.op = r->op,
			.datatype = UINT16_MAX}};
	return 0;
}

#define JOIN_WORK_MAX                                                                              \
	UINT64_C(200000000) /* some seconds: a recording may be made up to keep us busy */

static int join_calls(struct rank_calls *c)
{
	struct comm_join joined;
	int r = comm_join_run(c->workers, c->calls, c->count, JOIN_WORK_MAX, &joined);

	if (r < 0)
		return r;
	comm_join_apply(&joined, c->calls, c->count);
	comm_join_done(&joined);
	return 0;
}

/* Calls that tell which communication they are part of stay. */
static int keep_told(const struct recording *rec, struct rank_calls *c)
{
	size_t kept = 0;

	c->late = calloc(c->count + 1, sizeof(*c->late));
	c->late_of = calloc(c->count + 1, sizeof(*c->late_of));
	if (!c->late || !c->late_of)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		const struct collective_row *r = c->rows[i];
		const struct push_call *call = &c->calls[i].c;

		if (!push_call_is_numbered(call) && !(is_point(r) && r->c.comm_hash)) {
			c->unknown++;
			continue;
		}
		if (is_late(r) && push_call_is_numbered(call)) {
			struct collective_row *copy = &c->late[c->late_count];

			c->late_of[c->late_count++] = (size_t)(r - rec->collectives);
			*copy = *r;
			copy->c.comm_hash = call->comm;
			copy->c.seq = call->seq;
			r = copy;
		}
		c->rows[kept] = r;
		c->calls[kept++] = c->calls[i];
	}
	c->count = kept;
	return 0;
}

int rank_calls_find(const struct recording *rec, struct rank_calls *ret)
{
	_cleanup_(idmap_done) struct idmap numbers = IDMAP_INIT(BLAME_WORKERS_MAX);
	_cleanup_(idmap_done) struct idmap points = IDMAP_INIT(PAIRS_MAX);
	struct gathering g = {.to = ret, .numbers = &numbers, .points = &points};
	size_t n = rec->collective_count + 1, late = 0;
	bool one_node = true;
	int r = 0;

	*ret = (struct rank_calls){.workers = calloc(n, sizeof(*ret->workers)),
		.calls = calloc(n, sizeof(*ret->calls)),
		.rows = calloc(n, sizeof(*ret->rows))};
	if (!ret->workers || !ret->calls || !ret->rows)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < rec->collective_count; i++) {
		const struct collective_row *row = &rec->collectives[i];

		late += is_late(row);
		if (is_sane(row))
			r = add_call(&g, row);
		else
			ret->unknown += is_late(row);
	}
	for (size_t i = 1; i < ret->worker_count; i++)
		one_node = one_node && !strcmp(ret->workers[i].node, ret->workers[0].node);
	for (size_t i = 0; !one_node && i < ret->worker_count; i++)
		ret->workers[i].error_ns =
			UINT64_MAX; /* blame sets them by the ends of collectives */
	if (r == 0 && late)
		r = join_calls(ret);
	return r < 0 ? r : keep_told(rec, ret);
}

void rank_calls_done(struct rank_calls *c)
{
	free(c->workers);
	free(c->calls);
	free(c->rows);
	free(c->late);
	free(c->late_of);
	*c = (struct rank_calls){0};
}

size_t rank_calls_row(
	const struct recording *rec, const struct rank_calls *c, const struct collective_row *row)
{
	bool is_copy = row >= c->late && row < c->late + c->late_count;

	return is_copy ? c->late_of[row - c->late] : (size_t)(row - rec->collectives);
}
