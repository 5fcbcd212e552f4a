/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c - NCCL's communicators: their ranks, what they did together, who kept whom
 * waiting.
 *
 * Who came last is judged as the engine does (straggler_find.h): by start times on one clock, else
 * by who waited least. The first collective of a communicator pays for its set-up and is not
 * judged. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/answer/answer_private.h"
#include "agent/correlate/straggler_find.h"

#define COMMS     32
#define COMMS_MAX 256
#define RANKS_MAX 1024 /* of one communicator */
#define WORST     10

struct rank {
	const struct collective_row *row; /* one of its calls */
	uint64_t calls, bytes, last, late_ns, late_max_ns, wait_ns, wait_max_ns, errors;
};

struct op {
	uint64_t calls, bytes, max_ns;
	double ns;
};

struct comm {
	uint64_t hash;
	int32_t nranks;
	struct rank *ranks;
	size_t rank_count;
	bool more_ranks;
	struct op ops[WIRE_OP_MAX];
	uint64_t bytes, calls;
	int64_t first_ns, last_ns;
	size_t collectives, complete, judged;
	bool one_clock;
	struct lateness worst[WORST]; /* by gap, most first */
	size_t worst_count;
};

struct comms {
	struct comm *rows;
	size_t count;
	uint64_t without; /* calls on communicators made before the trace */
};

static void comms_done(struct comms *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->rows[i].ranks);
	free(c->rows);
}

static int comm_find(struct comms *c, uint64_t hash, struct comm **ret)
{
	struct comm *p;

	for (size_t i = c->count; i-- > 0;)
		if (c->rows[i].hash == hash) {
			*ret = &c->rows[i];
			return 0;
		}
	p = reallocarray(c->rows, c->count + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	c->rows = p;
	p[c->count] = (struct comm){.hash = hash, .nranks = -1, .one_clock = true};
	*ret = &p[c->count++];
	return 0;
}

static int rank_find(struct comm *c, const struct collective_row *row, struct rank **ret)
{
	struct rank *p;

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
	p[c->rank_count] = (struct rank){.row = row};
	*ret = &p[c->rank_count++];
	return 0;
}

static void op_add(struct op *o, const struct collective_row *row)
{
	o->calls++;
	o->bytes += row->c.bytes;
	o->ns += (double)row->dur_ns;
	o->max_ns = MAX(o->max_ns, row->dur_ns);
}

static int add_row(struct comms *all, const struct collective_row *row)
{
	struct comm *c;
	struct rank *rank;
	int r = comm_find(all, row->c.comm_hash, &c);

	if (r == 0)
		r = rank_find(c, row, &rank);
	if (r < 0)
		return r;
	c->calls++;
	c->bytes += row->c.bytes;
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
	if (row->c.wait_ns > 0) {
		rank->wait_ns += (uint64_t)row->c.wait_ns;
		rank->wait_max_ns = MAX(rank->wait_max_ns, (uint64_t)row->c.wait_ns);
	}
	return 0;
}

static void keep_worst(struct comm *c, const struct lateness *l)
{
	size_t at = c->worst_count;

	while (at > 0 && c->worst[at - 1].gap_ns < l->gap_ns)
		at--;
	if (at == WORST)
		return;
	c->worst_count = MIN(c->worst_count + 1, (size_t)WORST);
	for (size_t i = c->worst_count - 1; i > at; i--)
		c->worst[i] = c->worst[i - 1];
	c->worst[at] = *l;
}

static int judge(struct comm *c, const struct match_table *t, const struct match *m)
{
	struct lateness l;
	struct rank *rank;
	int r;

	c->one_clock = c->one_clock && m->one_node;
	if (!straggler_last(t, m, &l))
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

static int add_matches(struct comms *all, const struct match_table *t)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < t->comm_count; k++) {
		const struct match_comm *mc = &t->comms[k];
		struct comm *c;

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

static int gather(
	const struct collective_row *rows, size_t count, struct comms *all, struct match_table *t)
{
	struct recording rec = {.collectives = rows, .collective_count = count};
	int r = match_run(&rec, t);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (rows[i].c.comm_hash)
			r = add_row(all, &rows[i]);
		else
			all->without++;
	}
	for (size_t i = 0; r == 0 && i < t->adopted_count; i++)
		r = add_row(all, &t->adopted[i]);
	all->without -= MIN(all->without, (uint64_t)t->adopted_count);
	return r == 0 ? add_matches(all, t) : r;
}

/* ---- JSON ---- */

static void put_ops(struct json_writer *w, const struct comm *c)
{
	json_key(w, "ops");
	json_begin_array(w);
	for (unsigned op = 0; op < WIRE_OP_MAX; op++) {
		const struct op *o = &c->ops[op];
		char scratch[32];

		if (!o->calls)
			continue;
		json_begin_object(w);
		/* as the table `collectives` has it: without "nccl" */
		json_string_member(w, "op", wire_op_name(SOURCE_NCCL, op, scratch) + 4);
		json_uint_member(w, "calls", o->calls);
		json_uint_member(w, "bytes", o->bytes);
		put_us(w, "avg_us", o->ns / (double)o->calls);
		put_us(w, "max_us", (double)o->max_ns);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_number(struct json_writer *w, const char *key, int64_t v, bool known)
{
	json_key(w, key);
	if (known)
		json_put_int(w, v);
	else
		json_put_null(w);
}

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	return (x->row->c.rank > y->row->c.rank) - (x->row->c.rank < y->row->c.rank);
}

static void put_ranks(struct json_writer *w, const struct comm *c)
{
	qsort(c->ranks, c->rank_count, sizeof(*c->ranks), by_rank);
	json_key(w, "ranks");
	json_begin_array(w);
	for (size_t i = 0; i < c->rank_count; i++) {
		const struct rank *r = &c->ranks[i];

		json_begin_object(w);
		put_number(w, "rank", r->row->c.rank, r->row->c.rank >= 0);
		json_string_member(w, "node", r->row->node);
		json_uint_member(w, "pid", r->row->pid);
		json_int_member(w, "device", r->row->device);
		json_uint_member(w, "calls", r->calls);
		json_uint_member(w, "bytes", r->bytes);
		put_number(w, "last", (int64_t)r->last, c->judged > 0);
		put_number(w, "late_ns", (int64_t)r->late_ns, c->judged > 0);
		put_number(w, "late_max_ns", (int64_t)r->late_max_ns, c->judged > 0);
		json_uint_member(w, "wait_ns", r->wait_ns);
		json_uint_member(w, "wait_max_ns", r->wait_max_ns);
		json_uint_member(w, "errors", r->errors);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_worst(struct json_writer *w, const struct comm *c)
{
	char scratch[32];

	json_key(w, "worst");
	json_begin_array(w);
	for (size_t i = 0; i < c->worst_count; i++) {
		const struct lateness *l = &c->worst[i];

		json_begin_object(w);
		json_uint_member(w, "seq", l->row->c.seq);
		json_string_member(w, "op", wire_op_name(SOURCE_NCCL, l->row->op, scratch) + 4);
		json_int_member(w, "timestamp", l->row->start.ns);
		json_int_member(w, "last_rank", l->row->c.rank);
		json_string_member(w, "last_node", l->row->node);
		json_uint_member(w, "late_ns", l->gap_ns);
		json_uint_member(w, "lost_ns", l->lost_ns);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_comm(struct json_writer *w, const struct comm *c)
{
	char text[24];

	json_begin_object(w);
	snprintf(text, sizeof(text), "%" PRId64, (int64_t)c->hash);
	json_string_member(w, "comm", text);
	put_number(w, "nranks", c->nranks, c->nranks >= 0);
	json_uint_member(w, "ranks_seen", c->rank_count);
	put_bool(w, "one_clock", c->one_clock);
	json_uint_member(w, "calls", c->calls);
	json_uint_member(w, "collectives", c->collectives);
	json_uint_member(w, "complete", c->complete);
	json_uint_member(w, "judged", c->judged);
	json_uint_member(w, "bytes", c->bytes);
	json_int_member(w, "first_ns", c->first_ns);
	json_int_member(w, "last_ns", c->last_ns);
	put_ops(w, c);
	put_ranks(w, c);
	put_worst(w, c);
	json_end_object(w);
}

static int by_calls(const void *a, const void *b)
{
	const struct comm *x = a, *y = b;

	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

int collectives_json(const struct question *t, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = answer_limit(t->request->limit, COMMS, COMMS_MAX), count = 0;
	_cleanup_free_ struct collective_row *rows = NULL;
	_cleanup_(match_done) struct match_table matches = {0};
	_cleanup_(comms_done) struct comms all = {0};
	bool truncated = false;
	int r = nodedb_snapshot_collectives(
		t->snapshot, &t->scope, &rows, &count, &truncated, reterr);

	if (r == 0)
		r = gather(rows, count, &all, &matches);
	if (r < 0)
		return r;
	if (all.count)
		qsort(all.rows, all.count, sizeof(*all.rows), by_calls);
	json_begin_object(w);
	json_key(w, "comms");
	json_begin_array(w);
	for (size_t i = 0; i < MIN(all.count, limit); i++) {
		put_comm(w, &all.rows[i]);
		truncated = truncated || all.rows[i].more_ranks;
	}
	json_end_array(w);
	json_uint_member(w, "calls_without_comm", all.without);
	put_bool(w, "truncated", truncated || all.count > limit);
	put_window(t, w);
	json_end_object(w);
	return 0;
}
