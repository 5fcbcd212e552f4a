/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_job.c - the rows of `collectives` as the communications of one job.
 *
 * A row says how long the synchronisation that followed it waited, not when that began. It is taken to
 * begin with the call's end, unless the thread made its next call meanwhile and that waited as long: then
 * both share the synchronisation after it. So rows are looked at from the last to the first. A call whose
 * wait is not known had none.
 *
 * The rank that is told is the job's: of the process itself where it is known, else that in its
 * largest communicator. */
#include "agent/correlate/detect/straggler_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/correlate/engine/home.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"

#define TIME_MAX_NS      (INT64_C(1) << 62)
#define DUR_MAX_NS       (INT64_C(1) << 50)
#define NCCL_IN_PROGRESS 7

static bool is_told(const struct collective_row *r)
{
	return r->c.comm_hash && r->c.rank >= 0 && (r->ret == 0 || r->ret == NCCL_IN_PROGRESS) &&
	       r->start.ns >= 0 && r->start.ns <= TIME_MAX_NS &&
	       r->dur_ns <= (uint64_t)DUR_MAX_NS && r->c.wait_ns >= -1 &&
	       r->c.wait_ns <= DUR_MAX_NS &&
	       ((r->op >= NCCL_ALL_REDUCE && r->op <= NCCL_RECV) ||
		       (r->op >= NCCL_REDUCE && r->op <= NCCL_SCATTER));
}

static bool is_pair(const struct collective_row *r)
{
	return r->op == NCCL_SEND || r->op == NCCL_RECV;
}

static uint64_t process_key(const struct collective_row *r)
{
	return hash_number(hash_bytes(r->node, strnlen(r->node, sizeof(r->node))) ^ r->pid) | 1;
}

/* Workers, numbered as they appear. @numbers: key to number + 1. */
static int find_workers(const struct recording *rec, struct straggler_job *j, struct idmap *numbers)
{
	_cleanup_free_ int32_t *largest = calloc(rec->collective_count + 1, sizeof(*largest));
	bool one_node = true;

	j->workers = calloc(rec->collective_count + 1, sizeof(*j->workers));
	if (!j->workers || !largest)
		return -ENOMEM;
	for (size_t i = 0; i < rec->collective_count; i++) {
		const struct collective_row *r = &rec->collectives[i];
		size_t n;

		if (!is_told(r))
			continue;
		n = (size_t)(uintptr_t)idmap_get(numbers, process_key(r));
		if (!n) {
			const struct process_home *h = home_of(rec, r->pid);
			int e;

			n = j->worker_count + 1;
			e = idmap_put(numbers, process_key(r), (void *)(uintptr_t)n);
			if (e < 0)
				return e == -ENOBUFS ? 0 : e;
			j->workers[j->worker_count++] = (struct blame_worker){
				.rank = h ? h->rank : -1, .node = r->node, .pid = r->pid};
			largest[n - 1] = h && h->rank >= 0 ? INT32_MAX : 0;
			one_node = one_node && !strcmp(r->node, j->workers[0].node);
		}
		if (r->c.nranks > largest[n - 1]) {
			largest[n - 1] = r->c.nranks;
			j->workers[n - 1].rank = r->c.rank;
		}
	}
	for (size_t i = 0; !one_node && i < j->worker_count; i++)
		j->workers[i].error_ns =
			UINT64_MAX; /* blame sets them by the ends of collectives */
	return 0;
}

static struct push_call call_of(const struct collective_row *r)
{
	int64_t end = r->start.ns + (int64_t)r->dur_ns;

	return (struct push_call){.comm = r->c.comm_hash,
		.seq = r->c.seq,
		.bytes = r->c.bytes,
		.enter_ns = r->start.ns,
		.leave_ns = end + MAX(r->c.wait_ns, INT64_C(0)),
		.wait_ns = (uint64_t)MAX(r->c.wait_ns, INT64_C(0)),
		.rank = r->c.rank,
		.nranks = r->c.nranks,
		.peer = is_pair(r) ? r->c.peer : -1,
		.world_rank = -1,
		.pid = r->pid,
		.op = r->op,
		.datatype = UINT16_MAX};
}

/* calls[] in order of time; the later ones first, so that shared synchronisations are known. */
static int list_calls(const struct recording *rec, struct straggler_job *j, struct idmap *numbers)
{
	_cleanup_free_ size_t *next = calloc(j->worker_count + 1, sizeof(*next)); /* + 1 */

	j->calls = calloc(rec->collective_count + 1, sizeof(*j->calls));
	j->rows = calloc(rec->collective_count + 1, sizeof(*j->rows));
	if (!next || !j->calls || !j->rows)
		return -ENOMEM;
	for (size_t i = 0; i < rec->collective_count; i++) {
		const struct collective_row *r = &rec->collectives[i];
		size_t n = is_told(r) ? (size_t)(uintptr_t)idmap_get(numbers, process_key(r)) : 0;

		if (!n)
			continue;
		j->rows[j->call_count] = r;
		j->calls[j->call_count++] = (struct blame_call){(uint32_t)(n - 1), call_of(r)};
	}
	for (size_t i = j->call_count; i-- > 0;) {
		struct push_call *c = &j->calls[i].c;
		uint32_t w = j->calls[i].worker;
		const struct push_call *after = next[w] ? &j->calls[next[w] - 1].c : NULL;

		if (after && j->rows[next[w] - 1]->tid == j->rows[i]->tid && c->wait_ns &&
			c->wait_ns == after->wait_ns && c->leave_ns > after->enter_ns)
			c->leave_ns = MAX(after->leave_ns, c->enter_ns + (int64_t)c->wait_ns);
		next[w] = i + 1;
	}
	return 0;
}

/* Whether somebody who is last in one communication may have waited in another. */
static int has_other_waits(const struct straggler_job *j, bool *ret)
{
	_cleanup_(idmap_done) struct idmap members = IDMAP_INIT(1 << 20);
	_cleanup_(idmap_done) struct idmap seen = IDMAP_INIT(1 << 22);
	size_t cursor = 0;
	void *count;
	int r = 0;

	*ret = false;
	for (size_t i = 0; r >= 0 && i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;
		uint64_t member = hash_number(c->comm ^ hash_number(j->calls[i].worker + 1)) | 1;
		uintptr_t n;

		if (is_pair(j->rows[i]))
			*ret = true;
		if (idmap_get(&seen, member))
			continue;
		n = (uintptr_t)idmap_get(&members, c->comm);
		r = idmap_put(&seen, member, (void *)j);
		r = r < 0 ? r : idmap_put(&members, c->comm, (void *)(n + 1));
	}
	while (r >= 0 && (count = idmap_next(&members, &cursor, NULL)))
		if ((uintptr_t)count > 1 && (uintptr_t)count < j->worker_count)
			*ret = true;
	return r == -ENOMEM ? r : 0;
}

int straggler_job_find(const struct recording *rec, struct straggler_job *ret)
{
	_cleanup_(idmap_done) struct idmap numbers = IDMAP_INIT(BLAME_WORKERS_MAX);
	bool others = false;
	int r;

	*ret = (struct straggler_job){0};
	r = find_workers(rec, ret, &numbers);
	r = r < 0 ? r : list_calls(rec, ret, &numbers);
	r = r < 0 ? r : has_other_waits(ret, &others);
	if (r < 0 || !others)
		return r;
	r = blame_find(ret->workers, ret->worker_count, ret->calls, ret->call_count, &ret->blame);
	return r == -ENOMEM ? r : r == 0 && ret->blame.confidence > 0;
}

void straggler_job_done(struct straggler_job *j)
{
	free(j->workers);
	free(j->calls);
	free(j->rows);
	blame_done(&j->blame);
	*j = (struct straggler_job){0};
}
