/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - see match.h. One sort by (comm, seq, rank, time), then the borders: O(n log n). */
#include "diagnose/accounts/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rows/baseline.h"

#define NCCL_IN_PROGRESS 7 /* ncclInProgress: a non-blocking communicator took the call */

static bool is_sane_time(int64_t ns)
{
	return ns >= 0 && ns <= INT64_C(1) << 62;
}

static bool is_eligible(const struct collective_row *r)
{
	return r->op != NCCL_SEND && r->op != NCCL_RECV &&
	       collective_is_numbered(r->c.comm_hash, r->c.seq) && r->c.rank >= 0 &&
	       (r->ret == 0 || r->ret == NCCL_IN_PROGRESS) && is_sane_time(r->start.ns) &&
	       r->dur_ns <= UINT64_C(1) << 50 && r->c.wait_ns >= -1 &&
	       r->c.wait_ns <= INT64_C(1) << 50;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_collective(const void *a, const void *b)
{
	const struct collective_row *x = *(const struct collective_row *const *)a;
	const struct collective_row *y = *(const struct collective_row *const *)b;
	int r = compare_u64(x->c.comm_hash, y->c.comm_hash);

	if (!r)
		r = compare_u64(x->c.seq, y->c.seq);
	if (!r)
		r = (x->c.rank > y->c.rank) - (x->c.rank < y->c.rank);
	if (!r)
		r = (x->start.ns > y->start.ns) - (x->start.ns < y->start.ns);
	return r ? r : compare_u64(x->pid, y->pid);
}

static bool is_same(const struct collective_row *x, const struct collective_row *y, bool with_rank)
{
	return x->c.comm_hash == y->c.comm_hash && x->c.seq == y->c.seq &&
	       (!with_rank || x->c.rank == y->c.rank);
}

static size_t unique_ranks(const struct collective_row **rows, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !is_same(rows[kept - 1], rows[i], true))
			rows[kept++] = rows[i];
	return kept;
}

static void find_borders(struct match_table *t)
{
	for (size_t i = 0; i < t->row_count; i++) {
		const struct collective_row *row = t->rows[i];
		struct match *m = t->match_count ? &t->matches[t->match_count - 1] : NULL;

		if (m && is_same(t->rows[m->first], row, false)) {
			m->count++;
			m->one_node = m->one_node && !strcmp(t->rows[m->first]->node, row->node);
			continue;
		}
		if (!m || t->rows[m->first]->c.comm_hash != row->c.comm_hash)
			t->comms[t->comm_count++] = (struct match_comm){t->match_count, 0};
		t->comms[t->comm_count - 1].count++;
		t->matches[t->match_count++] = (struct match){i, 1, true};
	}
}

int match_run(const struct recording *rec, struct match_table *ret)
{
	int r;

	*ret = (struct match_table){0};
	r = late_calls_find(rec, &ret->late);
	if (r < 0)
		return r;
	ret->rows = calloc(rec->collective_count + ret->late.count + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (size_t i = 0; i < ret->late.count; i++)
		if (is_eligible(&ret->late.rows[i]))
			ret->rows[ret->row_count++] = &ret->late.rows[i];
	for (size_t i = 0; i < rec->collective_count; i++)
		if (is_eligible(&rec->collectives[i]))
			ret->rows[ret->row_count++] = &rec->collectives[i];
	qsort(ret->rows, ret->row_count, sizeof(*ret->rows), by_collective);
	ret->row_count = unique_ranks(ret->rows, ret->row_count);
	ret->matches = calloc(ret->row_count + 1, sizeof(*ret->matches));
	ret->comms = calloc(ret->row_count + 1, sizeof(*ret->comms));
	if (!ret->matches || !ret->comms)
		return -ENOMEM;
	find_borders(ret);
	return 0;
}

void match_done(struct match_table *t)
{
	free(t->rows);
	free(t->matches);
	free(t->comms);
	late_calls_done(&t->late);
	*t = (struct match_table){0};
}

int64_t match_end_ns(const struct recording *rec)
{
	int64_t end = 0;

	for (size_t i = 0; i < rec->event_count; i++)
		if (baseline_is_sane(&rec->events[i]))
			end = MAX(end, event_end_ns(&rec->events[i]));
	for (size_t i = 0; i < rec->sample_count; i++)
		if (is_sane_time(rec->samples[i].time.ns))
			end = MAX(end, rec->samples[i].time.ns);
	for (size_t i = 0; i < rec->gpu_count; i++)
		if (is_sane_time(rec->gpus[i].time.ns))
			end = MAX(end, rec->gpus[i].time.ns);
	for (size_t i = 0; i < rec->collective_count; i++)
		if (is_sane_time(rec->collectives[i].start.ns))
			end = MAX(end, rec->collectives[i].start.ns);
	return end;
}
