/* SPDX-License-Identifier: Apache-2.0 */
/* collectives_json.c - /api/v1/collectives. */
#include <math.h>

#include "answer/answer.h"
#include "answer/collectives.h"
#include "answer/encode/say.h"
#include "base/text.h"
#include "answer/losses.h"

#define COMMS     32
#define COMMS_MAX 256
#define RANKS_FEW 16 /* latest ones: the others say nothing that the sums do not */

/* In GB/s (1e9 bytes), as nccl-tests prints them. */
static void put_speeds(struct json_writer *w, const struct collective_op *o)
{
	json_begin_array_member(w, "bandwidth");
	for (unsigned i = 0; i < BANDWIDTH_CLASSES; i++) {
		const struct collective_speed *s = &o->speeds[i];

		if (!s->calls)
			continue;
		JSON_PUT_OBJECT(w, JSON_S("size", bandwidth_class_name(i)),
			JSON_U("calls", s->calls),
			JSON_R("algorithm_gb_s", collective_algorithm_bandwidth(s) / 1e9),
			JSON_R("bus_gb_s", collective_bus_bandwidth(s) / 1e9),
			JSON_R("best_bus_gb_s", s->best / 1e9));
	}
	json_end_array(w);
}

static void put_ops(struct json_writer *w, const struct collective_comm *c)
{
	json_begin_array_member(w, "ops");
	for (unsigned op = 0; op < WIRE_OP_MAX; op++) {
		const struct collective_op *o = &c->ops[op];

		if (!o->calls)
			continue;
		json_begin_object(w);
		/* as the table `collectives` has it: without "nccl" */
		JSON_PUT(w, JSON_S("op", WIRE_OP_NAME(SOURCE_NCCL, op) + 4),
			JSON_U("calls", o->calls), JSON_U("bytes", o->bytes),
			JSON_US("avg_us", o->ns / (double)o->calls),
			JSON_US("max_us", (double)o->max_ns));
		put_speeds(w, o);
		json_end_object(w);
	}
	json_end_array(w);
}

/* So many of the ranks of @c were later than @r in all. */
static size_t later_than(const struct collective_comm *c, const struct collective_rank *r)
{
	size_t n = 0;

	for (size_t i = 0; i < c->rank_count; i++)
		n += c->ranks[i].late_ns > r->late_ns ||
		     (c->ranks[i].late_ns == r->late_ns && &c->ranks[i] < r);
	return n;
}

static void put_ranks(struct json_writer *w, const struct collective_comm *c, bool brief)
{
	json_begin_array_member(w, "ranks");
	for (size_t i = 0; i < c->rank_count; i++) {
		const struct collective_rank *r = &c->ranks[i];

		if (brief && c->rank_count > RANKS_FEW && later_than(c, r) >= RANKS_FEW)
			continue;
		JSON_PUT_OBJECT(w, JSON_KNOWN("rank", r->row->c.rank >= 0, r->row->c.rank),
			JSON_S("node", r->row->node), JSON_U("pid", r->row->pid),
			JSON_I("device", r->row->device), JSON_U("calls", r->calls),
			JSON_U("bytes", r->bytes),
			JSON_KNOWN("last", c->judged > 0, (int64_t)r->last),
			JSON_KNOWN("late_ns", c->judged > 0, (int64_t)r->late_ns),
			JSON_KNOWN("late_max_ns", c->judged > 0, (int64_t)r->late_max_ns),
			JSON_U("wait_ns", r->waits.ns), JSON_U("wait_max_ns", r->waits.max_ns),
			JSON_U("errors", r->errors));
	}
	json_end_array(w);
}

static void put_worst(struct json_writer *w, const struct collective_comm *c)
{
	json_begin_array_member(w, "worst");
	for (size_t i = 0; i < c->worst_count; i++) {
		const struct lateness *l = &c->worst[i];

		JSON_PUT_OBJECT(w, JSON_U("seq", l->row->c.seq),
			JSON_S("op", WIRE_OP_NAME(SOURCE_NCCL, l->row->op) + 4),
			JSON_I("timestamp", l->row->start.ns), JSON_I("last_rank", l->row->c.rank),
			JSON_S("last_node", l->row->node), JSON_U("late_ns", l->gap_ns),
			JSON_U("lost_ns", l->lost_ns));
	}
	json_end_array(w);
}

static void put_comm(struct json_writer *w, const struct collective_comm *c, bool brief)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("comm", FORMATTED(24, "%" PRId64, (int64_t)c->hash)),
		JSON_KNOWN("nranks", c->nranks >= 0, c->nranks),
		JSON_U("ranks_seen", c->rank_count), JSON_B("one_clock", c->one_clock),
		JSON_U("calls", c->calls), JSON_U("collectives", c->collectives),
		JSON_U("complete", c->complete), JSON_U("judged", c->judged),
		JSON_U("bytes", c->bytes), JSON_I("first_ns", c->first_ns),
		JSON_I("last_ns", c->last_ns));
	put_ops(w, c);
	put_ranks(w, c, brief);
	if (!brief)
		put_worst(w, c);
	json_end_object(w);
}

int collectives_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t limit = answer_limit(q->request->limit, COMMS, COMMS_MAX);
	_cleanup_(collectives_answer_done) struct collectives_answer a = {0};
	int r = answer_collectives(q, &a, reterr);

	if (r < 0)
		return r;
	if (q->request->say)
		say_collectives(q->request->say, &a);
	json_begin_object(w);
	json_begin_array_member(w, "comms");
	for (size_t i = 0; i < MIN(a.count, limit); i++)
		put_comm(w, &a.comms[i], q->request->brief);
	json_end_array(w);
	json_uint_member(w, "calls_without_comm", a.without);
	return answer_end(q, w, a.truncated || a.count > limit);
}

/* ---- how fast collectives moved their data, for people ---- */

void collectives_text(struct buf *b, const struct collectives_answer *a)
{
	size_t before;

	buf_printf(b, "\n  %-20s %-16s %9s %12s %12s %12s\n", "COLLECTIVE, GB/s", "SIZE", "CALLS",
		"ALGORITHM", "BUS", "BEST BUS");
	before = b->len;
	for (unsigned op = 0; op < WIRE_OP_MAX; op++) {
		for (unsigned i = 0; i < BANDWIDTH_CLASSES; i++) {
			const struct collective_speed *s = &a->ops[op].speeds[i];

			if (s->calls)
				buf_printf(b, "  %-20s %-16s %9s %12.2f %12.2f %12.2f\n",
					WIRE_OP_NAME(SOURCE_NCCL, op), bandwidth_class_name(i),
					TEXT_COUNT(s->calls),
					collective_algorithm_bandwidth(s) / 1e9,
					collective_bus_bandwidth(s) / 1e9, s->best / 1e9);
		}
	}
	if (b->len > before)
		buf_puts(b,
			"  A lower bound: a call's end is seen when the program waits for its stream.\n");
	else
		buf_puts(b, "  unknown: when the calls ended was not recorded\n");
}

/* ---- /api/v1/losses, and the accounting in the overview ---- */

#define SENTENCE_BYTES 512

void put_completeness(struct json_writer *w, const struct completeness *c)
{
	_cleanup_buf_ struct buf why = BUF_INIT(SENTENCE_BYTES);

	if (accounting_put_unclean(&c->books, &why))
		json_string_member(w, "unclean", buf_str(&why));
	buf_clear(&why);
	if (accounting_put_launches(&c->books, &why))
		json_string_member(w, "launches", buf_str(&why));
	json_double_member(
		w, "completeness", completeness_share(c) < 0 ? NAN : completeness_share(c));
}

static void put_sums(struct json_writer *w, const struct completeness *c)
{
	JSON_PUT(w, JSON_U("hits", c->hits), JSON_U("stored", c->stored),
		JSON_U("aggregated", c->aggregated), JSON_U("lost", c->lost));
	put_completeness(w, c);
}

int put_books(const struct question *q, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr)
{
	_cleanup_(losses_answer_done) struct losses_answer a = {0};
	int r = answer_losses(q, &a, reterr);

	if (r < 0 || !a.total.known)
		return r;
	*ret_completeness = completeness_share(&a.total);
	json_begin_object_member(w, "books");
	put_sums(w, &a.total);
	json_end_object(w);
	return 0;
}

/* The reasons of one session, node and source. */
static void put_reasons(struct json_writer *w, const struct losses_answer *a, size_t row)
{
	const struct sql_table *books = &a->books, *losses = &a->losses;

	json_begin_array_member(w, "reasons");
	for (size_t i = 0; i < losses->row_count; i++) {
		if (table_int(losses, i, LOSSES_SESSION) != table_int(books, row, LOSSES_SESSION) ||
			table_int(losses, i, LOSSES_SOURCE) !=
				table_int(books, row, LOSSES_SOURCE) ||
			strcmp(table_text(losses, i, LOSSES_NODE),
				table_text(books, row, LOSSES_NODE)) != 0)
			continue;
		json_begin_object(w);
		JSON_PUT(w, JSON_S("reason", table_text(losses, i, LOSSES_REASON)),
			JSON_I("count", table_int(losses, i, LOSSES_COUNT)));
		for (int k = 0; k < LOSS_COUNT; k++)
			if (!strcmp(wire_losses[k].name, table_text(losses, i, LOSSES_REASON)))
				json_string_member(w, "meaning", wire_losses[k].description);
		json_end_object(w);
	}
	json_end_array(w);
}

static bool is_used(const struct sql_table *books, size_t row)
{
	for (int c = LOSSES_HITS; c <= LOSSES_LOST; c++)
		if (table_int(books, row, c))
			return true;
	return false; /* a source that was not there */
}

static void put_sources(struct json_writer *w, const struct losses_answer *a)
{
	const struct sql_table *books = &a->books;

	json_begin_array_member(w, "sources");
	for (size_t i = 0; i < books->row_count; i++) {
		if (!is_used(books, i))
			continue;
		json_begin_object(w);
		JSON_PUT(w, JSON_I("session", table_int(books, i, LOSSES_SESSION)),
			JSON_S("node", table_text(books, i, LOSSES_NODE)),
			JSON_S("source",
				wire_source_name((unsigned)table_int(books, i, LOSSES_SOURCE))));
		for (int c = LOSSES_HITS; c <= LOSSES_LOST; c++)
			json_int_member(w, sql_table_name(books, c), table_int(books, i, c));
		json_bool_member(w, "balances", losses_balance(books, i));
		put_reasons(w, a, i);
		json_end_object(w);
	}
	json_end_array(w);
}

int losses_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(losses_answer_done) struct losses_answer a = {0};
	int r = answer_losses(q, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_object_member(w, "total");
	put_sums(w, &a.total);
	json_bool_member(w, "balances", a.balances);
	json_end_object(w);
	put_sources(w, &a);
	if (!q->request->brief) {
		json_begin_array_member(w, "by_cpu");
		for (size_t i = 0; i < a.cpus.row_count; i++)
			JSON_PUT_OBJECT(w, JSON_I("session", table_int(&a.cpus, i, LOSSES_SESSION)),
				JSON_S("source", wire_source_name((unsigned)table_int(
							 &a.cpus, i, LOSSES_SOURCE))),
				JSON_S("reason", table_text(&a.cpus, i, LOSSES_REASON)),
				JSON_I("cpu", table_int(&a.cpus, i, LOSSES_CPU)),
				JSON_I("count", table_int(&a.cpus, i, LOSSES_CPU_COUNT)));
		json_end_array(w);
	}
	if (q->request->say)
		say_losses(q->request->say, &a);
	table_put(w, "unseen", &a.unseen);
	table_put(w, "pruned", &a.pruned);
	JSON_PUT(w, JSON_B("recorded", a.total.known), JSON_B("live", q->live),
		JSON_B("truncated", a.truncated));
	json_end_object(w);
	return 0;
}
