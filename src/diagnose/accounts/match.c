/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - see match.h. What belongs together is blame's to say (blame_meet()). */
#include "diagnose/accounts/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "diagnose/rows/baseline.h"

static bool is_sane_time(int64_t ns)
{
	return ns >= 0 && ns <= INT64_C(1) << 62;
}

ORDER_OF_POINTERS(by_rank, struct collective_row,
	ASCENDING(c.rank) ?: ASCENDING(start.ns) ?: ASCENDING(pid))

/* One meeting: its rows by rank, a rank's second one left out. */
static void add_meeting(struct match_table *t, const uint32_t *calls, size_t n)
{
	const struct collective_row **rows = t->rows + t->row_count;
	struct match *m = &t->matches[t->match_count];
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		rows[i] = t->calls.rows[calls[i]];
	if (rows[0]->op == NCCL_SEND || rows[0]->op == NCCL_RECV)
		return;
	qsort(rows, n, sizeof(*rows), by_rank);
	*m = (struct match){
		.first = t->row_count, .one_node = true, .comm_hash = rows[0]->c.comm_hash};
	for (size_t i = 0; i < n; i++) {
		if (kept && rows[kept - 1]->c.rank == rows[i]->c.rank)
			continue;
		m->one_node = m->one_node && !strcmp(rows[0]->node, rows[i]->node);
		rows[kept++] = rows[i];
	}
	m->count = kept;
	t->row_count += kept;
	t->match_count++;
	if (m == t->matches || m[-1].comm_hash != m->comm_hash)
		t->comms[t->comm_count++] = (struct match_comm){t->match_count - 1, 0};
	t->comms[t->comm_count - 1].count++;
}

int match_run(const struct recording *rec, struct match_table *ret)
{
	_cleanup_(blame_meetings_done) struct blame_meetings met = {0};
	int r;

	*ret = (struct match_table){0};
	r = rank_calls_find(rec, &ret->calls);
	if (r == 0)
		r = blame_meet(ret->calls.workers, ret->calls.worker_count, ret->calls.calls,
			ret->calls.count, &met);
	if (r < 0)
		return r;
	ret->rows = calloc(ret->calls.count + 1, sizeof(*ret->rows));
	ret->matches = calloc(met.count + 1, sizeof(*ret->matches));
	ret->comms = calloc(met.count + 1, sizeof(*ret->comms));
	if (!ret->rows || !ret->matches || !ret->comms)
		return -ENOMEM;
	for (size_t i = 0; i < met.count; i++)
		add_meeting(ret, met.calls + met.first[i], met.first[i + 1] - met.first[i]);
	return 0;
}

void match_done(struct match_table *t)
{
	free(t->rows);
	free(t->matches);
	free(t->comms);
	rank_calls_done(&t->calls);
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
