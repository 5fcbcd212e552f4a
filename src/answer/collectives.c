/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c - see collectives.h.
 *
 * Who came last is judged as the engine does (lateness.h): by start times on one clock, else
 * by who waited least. The first collective of a communicator pays for its set-up and is not
 * judged. */

#include "answer/collectives.h"

#include "base/search.h"

#define RANKS_MAX 1024 /* of one communicator */

static int comm_find(struct collectives_answer *c, uint64_t hash, struct collective_comm **ret)
{
	struct collective_comm *p;

	for (size_t i = c->count; i-- > 0;)
		if (c->comms[i].hash == hash) {
			*ret = &c->comms[i];
			return 0;
		}
	p = reallocarray(c->comms, c->count + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	c->comms = p;
	p[c->count] = (struct collective_comm){.hash = hash, .nranks = -1, .one_clock = true};
	*ret = &p[c->count++];
	return 0;
}

static int rank_find(
	struct collective_comm *c, const struct collective_row *row, struct collective_rank **ret)
{
	struct collective_rank *p;

	for (size_t i = 0; i < c->rank_count; i++)
		if (c->ranks[i].row->c.rank == row->c.rank &&
			(row->c.rank >= 0 || c->ranks[i].row->pid == row->pid)) {
			*ret = &c->ranks[i];
			return 0;
		}
	*ret = NULL;
	if (c->rank_count == RANKS_MAX) {
		c->more_ranks = true;
		return 0;
	}
	p = reallocarray(c->ranks, c->rank_count + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	c->ranks = p;
	p[c->rank_count] = (struct collective_rank){.row = row};
	*ret = &p[c->rank_count++];
	return 0;
}

static void waits_add(struct collective_waits *w, const struct collective_row *row)
{
	if (row->c.wait_ns < 0)
		return; /* not known */
	w->calls++;
	w->ns += (uint64_t)row->c.wait_ns;
	w->max_ns = MAX(w->max_ns, (uint64_t)row->c.wait_ns);
}

static void speed_add(struct collective_op *o, const struct collective_row *row)
{
	double size = bandwidth_size(row->op, row->c.bytes, row->c.nranks);
	double factor = bandwidth_factor(row->op, row->c.nranks);
	double seconds = (double)row->c.span_ns / (double)NS_PER_S;
	struct collective_speed *s = &o->speeds[bandwidth_class(size)];

	if (row->c.span_ns <= 0 || size <= 0 || factor <= 0 || row->ret)
		return;
	s->calls++;
	s->size += size;
	s->seconds += seconds;
	s->factor = factor;
	s->best = MAX(s->best, size / seconds * factor);
}

static void op_add(struct collective_op *o, const struct collective_row *row)
{
	speed_add(o, row);
	o->calls++;
	o->bytes += row->c.bytes;
	o->ns += (double)row->dur_ns;
	o->max_ns = MAX(o->max_ns, row->dur_ns);
	waits_add(&o->waits, row);
}

static int add_row(struct collectives_answer *all, const struct collective_row *row)
{
	struct collective_comm *c;
	struct collective_rank *rank;
	int r = comm_find(all, row->c.comm_hash, &c);

	r = r ?: rank_find(c, row, &rank);
	if (r < 0)
		return r;
	c->calls++;
	c->bytes += row->c.bytes;
	if (row->op != NCCL_SEND && row->op != NCCL_RECV)
		c->last_seq = MAX(c->last_seq, row->c.seq);
	c->nranks = MAX(c->nranks, row->c.nranks);
	c->first_ns = c->calls == 1 ? row->start.ns : MIN(c->first_ns, row->start.ns);
	c->last_ns = MAX(c->last_ns, row->start.ns + (int64_t)row->dur_ns);
	if (row->op < WIRE_OP_MAX)
		op_add(&c->ops[row->op], row);
	if (!rank)
		return 0;
	rank->calls++;
	rank->bytes += row->c.bytes;
	rank->errors += row->ret != 0;
	rank->row = row->start.ns >= rank->row->start.ns ? row : rank->row;
	waits_add(&rank->waits, row);
	return 0;
}

static void keep_worst(struct collective_comm *c, const struct lateness *l)
{
	size_t at = c->worst_count;

	while (at > 0 && c->worst[at - 1].gap_ns < l->gap_ns)
		at--;
	if (at == COLLECTIVES_WORST)
		return;
	c->worst_count = MIN(c->worst_count + 1, (size_t)COLLECTIVES_WORST);
	for (size_t i = c->worst_count - 1; i > at; i--)
		c->worst[i] = c->worst[i - 1];
	c->worst[at] = *l;
}

static int judge(struct collective_comm *c, const struct match_table *t, const struct match *m)
{
	struct lateness l;
	struct collective_rank *rank;
	int r;

	c->one_clock = c->one_clock && m->one_node;
	if (!lateness_find(t, m, &l))
		return 0;
	r = rank_find(c, l.row, &rank);
	if (r < 0 || !rank)
		return r;
	c->judged++;
	rank->last++;
	rank->late_ns += l.gap_ns;
	rank->late_max_ns = MAX(rank->late_max_ns, l.gap_ns);
	keep_worst(c, &l);
	return 0;
}

static int add_matches(struct collectives_answer *all, const struct match_table *t)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < t->comm_count; k++) {
		const struct match_comm *mc = &t->comms[k];
		struct collective_comm *c;

		if (!mc->count)
			continue;
		r = comm_find(all, match_row(t, &t->matches[mc->first], 0)->c.comm_hash, &c);
		if (r == 0)
			c->collectives = mc->count;
		for (size_t i = mc->first; r == 0 && i < mc->first + mc->count; i++) {
			const struct match *m = &t->matches[i];

			c->complete += c->nranks > 0 && m->count == (size_t)c->nranks;
			if (m->count > 1 && i > mc->first)
				r = judge(c, t, m);
		}
	}
	return r;
}

static int gather(const struct collective_row *rows, size_t count, struct collectives_answer *all)
{
	struct recording rec = {.collectives = rows, .collective_count = count};
	struct match_table *t = &all->matches;
	int r = match_run(&rec, t);

	all->calls = count;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (rows[i].op < WIRE_OP_MAX)
			op_add(&all->ops[rows[i].op], &rows[i]);
		if (rows[i].c.comm_hash && rows[i].c.seq <= INT64_MAX)
			r = add_row(all, &rows[i]);
		else
			all->without++;
	}
	for (size_t i = 0; r == 0 && i < t->calls.late_count; i++)
		r = add_row(all, &t->calls.late[i]);
	all->without -= MIN(all->without, (uint64_t)t->calls.late_count);
	return r ?: add_matches(all, t);
}

ORDER(by_rank, struct collective_rank, ASCENDING(row->c.rank))

ORDER(by_calls, struct collective_comm, DESCENDING(calls))

int answer_collectives(
	const struct question *q, struct collectives_answer *ret, struct errinfo *reterr)
{
	_cleanup_(collectives_answer_done) struct collectives_answer a = {0};
	size_t count = 0;
	int r = nodedb_snapshot_collectives(
		q->snapshot, &q->scope, &a.rows, &count, &a.truncated, reterr);

	r = r ?: gather(a.rows, count, &a);
	if (r < 0)
		return r;
	SORT(a.comms, a.count, by_calls);
	for (size_t i = 0; i < a.count; i++) {
		struct collective_comm *c = &a.comms[i];

		SORT(c->ranks, c->rank_count, by_rank);
		a.truncated = a.truncated || c->more_ranks;
	}
	*ret = a;
	a = (struct collectives_answer){0};
	return 0;
}

void collectives_answer_done(struct collectives_answer *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->comms[i].ranks);
	free(a->comms);
	free(a->rows);
	match_done(&a->matches);
}

const struct collective_rank *collectives_straggler(const struct collective_comm *c)
{
	const struct collective_rank *worst = NULL;

	for (size_t i = 0; i < c->rank_count; i++)
		if (c->ranks[i].late_ns > (worst ? worst->late_ns : 0))
			worst = &c->ranks[i];
	return worst;
}
