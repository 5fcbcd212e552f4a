/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_collectives.c - get_collectives: NCCL calls by operation and by rank, and the rank that the
 * others wait for (answer/collectives.h). Of many ranks the compact answer lists those that
 * are furthest behind or came latest: the others tell nothing that the sums do not. */
#include "serve/mcp/mcp_tool.h"

#include <inttypes.h>
#include <stdlib.h>

#include "answer/collectives.h"
#include "serve/mcp/mcp_clean.h"
#include "wire/names.h"

#define RANKS_SHOWN 16 /* of all communicators */

static json_t *mean_us(const struct collective_waits *w)
{
	return w->calls ? mcp_us((double)w->ns / (double)w->calls) : json_null();
}

static json_t *comm_name(const struct collective_comm *c)
{
	return json_sprintf("%016" PRIx64, c->hash);
}

static uint64_t behind(const struct collective_comm *c, const struct collective_rank *r)
{
	return c->last_seq - MIN(r->row->c.seq, c->last_seq);
}

static json_t *rank_json(const struct collective_comm *c, const struct collective_rank *r)
{
	const struct collective_row *l = r->row;
	json_t *row = json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:o, s:o}", "communicator",
		comm_name(c), "node", mcp_clean_string(l->node, MCP_CLEAN_NAME), "rank",
		(int)l->c.rank, "nranks", (int)c->nranks, "pid", (json_int_t)l->pid, "count",
		(json_int_t)r->calls, "last_seq", (json_int_t)l->c.seq, "avg_wait_us",
		mean_us(&r->waits), "max_wait_us",
		r->waits.calls ? mcp_us((double)r->waits.max_ns) : json_null());

	if (behind(c, r))
		json_object_set_new(row, "behind", json_integer((json_int_t)behind(c, r)));
	if (r->last) {
		json_object_set_new(row, "came_last", json_integer((json_int_t)r->last));
		json_object_set_new(row, "late_us", mcp_us((double)r->late_ns));
	}
	return row;
}

/* Of the communicator that lost most by it. */
static json_t *straggler_json(const struct collectives_answer *a)
{
	const struct collective_rank *worst = NULL;
	const struct collective_comm *comm = NULL;

	for (size_t i = 0; i < a->count; i++) {
		const struct collective_rank *r = collectives_straggler(&a->comms[i]);

		if (r && (!worst || r->late_ns > worst->late_ns)) {
			worst = r;
			comm = &a->comms[i];
		}
	}
	if (!worst)
		return json_null();
	return json_pack("{s:o, s:i, s:o, s:I, s:I, s:I, s:o, s:o}", "communicator",
		comm_name(comm), "rank", (int)worst->row->c.rank, "node",
		mcp_clean_string(worst->row->node, MCP_CLEAN_NAME), "pid",
		(json_int_t)worst->row->pid, "came_last", (json_int_t)worst->last, "of",
		(json_int_t)comm->judged, "late_us", mcp_us((double)worst->late_ns), "max_late_us",
		mcp_us((double)worst->late_max_ns));
}

/* The largest sizes whose time is known: null if none is. */
static json_t *bandwidth_json(const struct collective_op *o)
{
	for (unsigned i = BANDWIDTH_CLASSES; i-- > 0;) {
		const struct collective_speed *s = &o->speeds[i];

		if (s->calls)
			return json_pack("{s:s, s:I, s:f, s:f}", "size", bandwidth_class_name(i),
				"calls", (json_int_t)s->calls, "at_least_algorithm_gb_s",
				collective_algorithm_bandwidth(s) / 1e9, "at_least_bus_gb_s",
				collective_bus_bandwidth(s) / 1e9);
	}
	return json_null();
}

static json_t *ops_list(const struct collectives_answer *a)
{
	json_t *list = json_array();
	char scratch[32];

	for (unsigned op = 0; op < WIRE_OP_MAX; op++) {
		const struct collective_op *o = &a->ops[op];

		if (o->calls)
			json_array_append_new(
				list, json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "operation",
					      wire_op_name(SOURCE_NCCL, op, scratch), "count",
					      (json_int_t)o->calls, "bytes", (json_int_t)o->bytes,
					      "avg_us", mcp_us(o->ns / (double)o->calls), "max_us",
					      mcp_us((double)o->max_ns), "avg_wait_us",
					      mean_us(&o->waits), "bandwidth", bandwidth_json(o)));
	}
	return list;
}

struct listed {
	const struct collective_comm *comm;
	const struct collective_rank *rank;
};

static int worst_first(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	uint64_t bx = behind(x->comm, x->rank), by = behind(y->comm, y->rank);

	if (bx != by)
		return bx > by ? -1 : 1;
	return x->rank->late_ns > y->rank->late_ns ? -1 : x->rank->late_ns < y->rank->late_ns;
}

static json_t *ranks_list(const struct collectives_answer *a, bool compact, size_t *ret_left_out)
{
	_cleanup_free_ struct listed *ranks = NULL;
	size_t all = 0, n = 0;
	json_t *list = json_array();

	for (size_t i = 0; i < a->count; i++)
		all += a->comms[i].rank_count;
	ranks = calloc(all + 1, sizeof(*ranks));
	for (size_t i = 0; ranks && i < a->count; i++)
		for (size_t k = 0; k < a->comms[i].rank_count; k++)
			ranks[n++] = (struct listed){&a->comms[i], &a->comms[i].ranks[k]};
	if (compact && n > RANKS_SHOWN) {
		qsort(ranks, n, sizeof(*ranks), worst_first);
		n = RANKS_SHOWN;
	}
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, rank_json(ranks[i].comm, ranks[i].rank));
	*ret_left_out = all - n;
	return list;
}

static json_t *collectives_value(
	const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(collectives_answer_done) struct collectives_answer a = {0};
	int r = answer_collectives(q, &a, reterr);
	json_t *full, *range = r < 0 ? NULL : mcp_range(q, reterr);
	size_t left_out;

	if (!range)
		return NULL;
	full = json_pack("{s:I, s:o, s:o, s:o, s:o}", "count", (json_int_t)a.calls, "straggler",
		straggler_json(&a), "operations", ops_list(&a), "ranks",
		ranks_list(&a, mcp_arg_compact(arguments), &left_out), "range", range);
	if (left_out)
		json_object_set_new(full, "more_ranks", json_integer((json_int_t)left_out));
	if (a.without)
		json_object_set_new(
			full, "without_communicator", json_integer((json_int_t)a.without));
	json_object_set_new(full, "note",
		json_string(!a.calls ? "no NCCL call is in the recording"
				     : "a wait is the synchronisation after the call, a bound seen "
				       "from the host; came_last of `of` collectives is by start "
				       "times on one clock, else by who waited least"));
	return full;
}

MCP_ANSWERS(mcp_collectives, collectives_value)
