/* SPDX-License-Identifier: Apache-2.0 */
/* hang_find.c - see hang_find.h.
 *
 * NCCL wants the same calls in the same order from all ranks of a communicator. So the first
 * sequence number that some rank of the recording lacks while others have it is where the
 * communicator stands, if it stands: nobody who came has since finished waiting, and that for at
 * least 5 s and three times the longest pause before (a rank that writes a checkpoint comes later),
 * or for 1 s if the process of a rank that did not come has ended, before the recording or one of
 * their processes ended. A job that ends is no hang: its processes end right after their last
 * collectives. A synchronisation that returned well before that end shows that the collective went
 * through, and what looks missing is a lost row.
 *
 * Without a missing rank it takes more to call silence a hang: calls still under way when tracing
 * stopped (the books), or a wait as long; and ranks that the recording does not have.
 *
 * A mismatch needs no hang: the first collective of which ranks differ in operation, type, bytes,
 * reduction or root. O(n log n) in the rows of the communicator, O(events). */
#include "diagnose/findings/hang_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "blame/comm_join.h"
#include "diagnose/rows/baseline.h"
#include "wire/op_kind.h"

#define HANG_NS       ((int64_t)(5 * NS_PER_S))
#define HANG_LEAST_NS ((int64_t)NS_PER_S) /* for one whose process is gone */
#define HANG_PAUSES   3
#define END_SLACK_NS  ((int64_t)NS_PER_S) /* what ends within that of the process ended with it */

ORDER_OF_POINTERS(by_rank_and_seq, struct collective_row, ASCENDING(c.rank) ?: ASCENDING(c.seq))

static int collect_ranks(const struct match_table *t, const struct match_comm *c, struct hang *h)
{
	const struct match *first = &t->matches[c->first];
	const struct match *last = &t->matches[c->first + c->count - 1];
	size_t n = last->first + last->count - first->first;
	_cleanup_free_ const struct collective_row **rows = calloc(n, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	memcpy(rows, t->rows + first->first, n * sizeof(*rows));
	qsort(rows, n, sizeof(*rows), by_rank_and_seq);
	h->ranks = calloc(MIN(n, (size_t)HANG_RANKS_MAX), sizeof(*h->ranks));
	if (!h->ranks)
		return -ENOMEM;
	h->nranks = -1;
	for (size_t i = 0; i < n; i++) {
		h->nranks = MAX(h->nranks, rows[i]->c.nranks);
		if (i + 1 < n && rows[i + 1]->c.rank == rows[i]->c.rank)
			continue;
		if (h->rank_count == HANG_RANKS_MAX)
			break;
		h->ranks[h->rank_count++] = (struct hang_rank){.last = rows[i]};
	}
	h->comm_hash = rows[0]->c.comm_hash;
	return 0;
}

/* ncclBcast is ncclBroadcast in place. */
static bool is_same_call(const struct collective_row *a, const struct collective_row *b)
{
	uint16_t x = a->op == NCCL_BCAST ? NCCL_BROADCAST : a->op;
	uint16_t y = b->op == NCCL_BCAST ? NCCL_BROADCAST : b->op;

	return x == y && a->c.bytes == b->c.bytes && a->c.datatype == b->c.datatype &&
	       a->c.reduce_op == b->c.reduce_op && a->c.root == b->c.root;
}

static const struct match *find_mismatch(const struct match_table *t, const struct match_comm *c)
{
	for (size_t i = c->first; i < c->first + c->count; i++)
		for (size_t k = 1; k < t->matches[i].count; k++)
			if (!is_same_call(match_row(t, &t->matches[i], 0),
				    match_row(t, &t->matches[i], k)))
				return &t->matches[i];
	return NULL;
}

static const struct match *match_at(
	const struct match_table *t, const struct match_comm *c, uint64_t seq)
{
	for (size_t i = c->first; i < c->first + c->count; i++)
		if (t->rows[t->matches[i].first]->c.seq == seq)
			return &t->matches[i];
	return NULL;
}

/* What most ranks called: the row that most others equal; the lowest rank's if none leads. */
static const struct collective_row *usual_call(const struct match_table *t, const struct match *m)
{
	const struct collective_row *best = match_row(t, m, 0);
	size_t most = 0, looked_at = MIN(m->count, (size_t)64); /* enough for a majority */

	for (size_t i = 0; i < looked_at; i++) {
		size_t same = 0;

		for (size_t k = 0; k < m->count; k++)
			same += is_same_call(match_row(t, m, i), match_row(t, m, k));
		if (same > most) {
			most = same;
			best = match_row(t, m, i);
		}
	}
	return best;
}

static void mark_ranks(const struct match_table *t, const struct match *m, struct hang *h)
{
	const struct collective_row *usual = usual_call(t, m);

	h->seq = t->rows[m->first]->c.seq;
	for (size_t i = 0, k = 0; i < h->rank_count; i++) {
		struct hang_rank *r = &h->ranks[i];

		while (k < m->count && match_row(t, m, k)->c.rank < r->last->c.rank)
			k++;
		if (k < m->count && match_row(t, m, k)->c.rank == r->last->c.rank)
			r->stuck = match_row(t, m, k);
		r->is_odd = h->kind == HANG_MISSING    ? !r->stuck
			    : h->kind == HANG_MISMATCH ? r->stuck && !is_same_call(r->stuck, usual)
						       : false;
		h->odd_count += r->is_odd;
		if (r->stuck)
			h->since_ns = MAX(h->since_ns, r->stuck->start.ns);
	}
}

static int index_pids(struct hang *h)
{
	h->by_pid = IDMAP_INIT(HANG_RANKS_MAX);
	for (size_t i = 0; i < h->rank_count; i++) {
		struct hang_rank *r = &h->ranks[i];

		r->next = idmap_get(&h->by_pid, r->last->pid);
		if (idmap_put(&h->by_pid, r->last->pid, r) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool is_for_all(const struct event *e)
{
	return e->source == SOURCE_CUDA ? e->op == CUDA_DEVICE_SYNC : e->op == DRIVER_CTX_SYNC;
}

static bool is_life(const struct event *e)
{
	return e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXIT && !(e->flags & WIRE_THREAD);
}

static bool is_of_node(const struct hang_rank *r, const struct hang_rank *other)
{
	return !strcmp(r->last->node, other->last->node);
}

/* Merged recordings end at different moments: nothing is known of a node after the last that its ranks did. */
static void look_at_ends(const struct recording *rec, struct hang *h)
{
	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *l = &rec->ledger[i];
		int64_t end = l->start.ns + (int64_t)l->dur_ns;

		for (struct hang_rank *r = idmap_get(&h->by_pid, l->pid); r; r = r->next)
			r->seen_ns = MAX(r->seen_ns, end);
	}
	for (size_t i = 0; rec->ledger_count && i < h->rank_count; i++) {
		int64_t end = 0;
		bool alone = true;

		for (size_t k = 0; k < h->rank_count; k++) {
			int64_t seen = MAX(h->ranks[k].seen_ns, h->ranks[k].busy_ns);

			if (is_of_node(&h->ranks[i], &h->ranks[k]))
				end = MAX(end, seen);
			else
				alone = false;
		}
		if (!alone && end && !h->ranks[i].exit_ns)
			h->until_ns = MIN(h->until_ns, end);
	}
}

/* When the processes ended, and when they were last heard of. */
static void look_at_lives(const struct recording *rec, struct hang *h)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!baseline_is_sane(e))
			continue;
		for (struct hang_rank *r = idmap_get(&h->by_pid, e->pid); r; r = r->next)
			if (is_life(e))
				r->exit_ns = e->start.ns;
			else if (e->source != SOURCE_HOST)
				r->busy_ns = MAX(r->busy_ns, event_end_ns(e));
	}
	look_at_ends(rec, h);
	for (size_t i = 0; i < h->rank_count; i++)
		if (h->ranks[i].stuck && h->ranks[i].exit_ns > h->since_ns)
			h->until_ns = MIN(h->until_ns, h->ranks[i].exit_ns);
	for (size_t i = 0; i < h->rank_count; i++)
		h->is_at_work |= h->ranks[i].is_odd && !h->ranks[i].stuck && !h->ranks[i].exit_ns &&
				 h->ranks[i].busy_ns >= h->until_ns - END_SLACK_NS;
}

/* Whether a rank that came has been through: it waited, and not until the end. */
static bool has_gone_through(const struct recording *rec, struct hang *h)
{
	int64_t enough = h->until_ns - END_SLACK_NS;

	for (size_t i = 0; i < h->rank_count; i++) {
		const struct collective_row *s = h->ranks[i].stuck;

		if (!s || s->c.wait_ns < 0)
			continue;
		if (s->start.ns + (int64_t)s->dur_ns + s->c.wait_ns < enough)
			return true;
		h->is_seen = true;
	}
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!op_kind_is_gpu_wait(e->source, e->op) || !baseline_is_sane(e) ||
			e->start.ns < h->since_ns || e->flags & WIRE_NESTED ||
			event_end_ns(e) >= enough)
			continue;
		for (const struct hang_rank *r = idmap_get(&h->by_pid, e->pid); r; r = r->next)
			if (r->stuck && (is_for_all(e) || e->stream == r->stuck->stream))
				return true;
	}
	return false;
}

static void find_intervals(const struct match_table *t, const struct match_comm *c, struct hang *h)
{
	const struct collective_row *first = t->rows[t->matches[c->first].first], *last = first;
	size_t n = 0;

	for (size_t i = c->first; i < c->first + c->count; i++) {
		const struct collective_row *r = t->rows[t->matches[i].first];

		if (r->c.seq >= h->seq)
			break;
		if (r->start.ns > last->start.ns)
			h->longest_ns =
				MAX(h->longest_ns, (uint64_t)(r->start.ns - last->start.ns));
		last = r;
		n++;
	}
	if (n > 1 && last->start.ns > first->start.ns)
		h->interval_ns = (uint64_t)(last->start.ns - first->start.ns) / (n - 1);
}

static bool is_long(const struct hang *h)
{
	int64_t waited = h->until_ns - h->since_ns;

	for (size_t i = 0; i < h->rank_count; i++)
		if (h->ranks[i].is_odd && h->ranks[i].exit_ns)
			return waited >= HANG_LEAST_NS;
	return waited >= HANG_NS && (uint64_t)waited / HANG_PAUSES >= h->longest_ns;
}

static bool calls_under_way(const struct recording *rec)
{
	return rec->books && rec->books->source[SOURCE_CUDA].lost[LOSS_AT_STOP] +
					     rec->books->source[SOURCE_DRIVER].lost[LOSS_AT_STOP] >
				     0;
}

static bool is_silent(const struct hang *h)
{
	for (size_t i = 0; i < h->rank_count; i++)
		if (h->ranks[i].busy_ns > h->since_ns + END_SLACK_NS &&
			h->ranks[i].busy_ns < h->until_ns - END_SLACK_NS)
			return false;
	return true;
}

static uint64_t first_missing(const struct hang *h, bool *ret_is_missing)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < h->rank_count; i++) {
		low = MIN(low, h->ranks[i].last->c.seq);
		high = MAX(high, h->ranks[i].last->c.seq);
	}
	*ret_is_missing = low < high;
	return *ret_is_missing ? low + 1 : low;
}

/* Which collective to look at, and as what. NULL: none. */
static const struct match *choose(
	const struct match_table *t, const struct match_comm *c, struct hang *h)
{
	const struct match *m = find_mismatch(t, c);
	bool is_missing;
	uint64_t seq;

	h->kind = HANG_MISMATCH;
	/* Numbers that were made up say which calls ended together, and not that they are of one collective. */
	if (m && match_row(t, m, 0)->c.seq < COMM_JOIN_MADE_UP)
		return m;
	seq = first_missing(h, &is_missing);
	h->kind = is_missing ? HANG_MISSING : HANG_OUTSIDE;
	return match_at(t, c, seq);
}

/* What can be told without the events: most communicators end here. */
static bool is_suspect(const struct hang *h)
{
	if (h->kind == HANG_MISMATCH)
		return true;
	if (h->kind == HANG_OUTSIDE && h->nranks <= (int)h->rank_count)
		return false;
	return h->until_ns - h->since_ns >= HANG_LEAST_NS;
}

int hang_find(const struct recording *rec, const struct match_table *t, const struct match_comm *c,
	int64_t end_ns, unsigned *looks, struct hang *ret)
{
	_cleanup_(hang_done) struct hang h = {.until_ns = end_ns};
	const struct match *m;

	if (collect_ranks(t, c, &h) < 0)
		return -ENOMEM;
	m = choose(t, c, &h);
	if (!m)
		return 0;
	mark_ranks(t, m, &h);
	find_intervals(t, c, &h);
	if (!is_suspect(&h) || !*looks)
		return 0;
	(*looks)--;
	if (index_pids(&h) < 0)
		return -ENOMEM;
	look_at_lives(rec, &h);
	h.is_stuck = is_long(&h) && !has_gone_through(rec, &h);
	h.is_seen = h.is_seen || calls_under_way(rec);
	if (h.kind != HANG_MISMATCH && !h.is_stuck)
		return 0;
	if (h.kind == HANG_OUTSIDE && (!h.is_seen || !is_silent(&h)))
		return 0;
	*ret = h;
	h = (struct hang){0};
	return 1;
}

void hang_done(struct hang *h)
{
	free(h->ranks);
	idmap_done(&h->by_pid);
	*h = (struct hang){0};
}
