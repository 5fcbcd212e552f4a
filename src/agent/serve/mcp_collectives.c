/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_collectives.c - get_collectives: NCCL calls by operation and by rank. The last sequence
 * number of each rank of a communicator tells who is behind, the wait who waits for whom: the rank
 * that waits least is the one the others wait for. */
#include "agent/serve/mcp_tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/serve/mcp_clean.h"
#include "mcp/rpc.h"
#include "wire/names.h"

#define RANKS_MAX 1024
#define OPS_MAX   32

struct rank_row {
	const struct collective_row *last;
	uint64_t calls, waits, wait_ns, wait_max_ns;
};

struct op_row {
	unsigned op;
	uint64_t calls, bytes, dur_ns, max_ns, waits, wait_ns;
};

struct tables {
	struct rank_row ranks[RANKS_MAX];
	struct op_row ops[OPS_MAX];
	size_t rank_count, op_count;
	uint64_t left_out;
};

static struct rank_row *rank_of(struct tables *t, const struct collective_row *c)
{
	for (size_t i = 0; i < t->rank_count; i++) {
		const struct collective_row *o = t->ranks[i].last;

		if (o->c.comm_hash == c->c.comm_hash && o->c.rank == c->c.rank &&
			(c->c.comm_hash || (o->c.comm == c->c.comm && o->pid == c->pid)))
			return &t->ranks[i];
	}
	if (t->rank_count == RANKS_MAX)
		return NULL;
	return &t->ranks[t->rank_count++];
}

static struct op_row *op_of(struct tables *t, unsigned op)
{
	for (size_t i = 0; i < t->op_count; i++)
		if (t->ops[i].op == op)
			return &t->ops[i];
	if (t->op_count == OPS_MAX)
		return NULL;
	t->ops[t->op_count] = (struct op_row){.op = op};
	return &t->ops[t->op_count++];
}

static void add(struct tables *t, const struct collective_row *c)
{
	struct rank_row *r = rank_of(t, c);
	struct op_row *o = op_of(t, c->op);
	bool waited = c->c.wait_ns >= 0;

	if (r) {
		r->last = !r->last || c->start.ns >= r->last->start.ns ? c : r->last;
		r->calls++;
		r->waits += waited;
		r->wait_ns += waited ? (uint64_t)c->c.wait_ns : 0;
		r->wait_max_ns = MAX(r->wait_max_ns, waited ? (uint64_t)c->c.wait_ns : 0);
	}
	if (o) {
		o->calls++;
		o->bytes += c->c.bytes;
		o->dur_ns += c->dur_ns;
		o->max_ns = MAX(o->max_ns, c->dur_ns);
		o->waits += waited;
		o->wait_ns += waited ? (uint64_t)c->c.wait_ns : 0;
	}
	t->left_out += !r || !o;
}

static uint64_t last_of_all(const struct tables *t, uint64_t comm_hash)
{
	uint64_t seq = 0;

	for (size_t i = 0; i < t->rank_count; i++)
		if (t->ranks[i].last->c.comm_hash == comm_hash)
			seq = MAX(seq, t->ranks[i].last->c.seq);
	return seq;
}

static double us(uint64_t ns)
{
	return (double)(ns / 100) / 10;
}

static json_t *mean_us(uint64_t ns, uint64_t n)
{
	return n ? json_real(us(ns / n)) : json_null();
}

static json_t *rank_json(const struct tables *t, const struct rank_row *r)
{
	const struct collective_row *l = r->last;
	json_t *row = json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:o, s:o}", "communicator",
		json_sprintf("%016" PRIx64, l->c.comm_hash), "node",
		mcp_clean_string(l->node, MCP_CLEAN_NAME), "rank", (int)l->c.rank, "nranks",
		(int)l->c.nranks, "pid", (json_int_t)l->pid, "count", (json_int_t)r->calls,
		"last_seq", (json_int_t)l->c.seq, "avg_wait_us", mean_us(r->wait_ns, r->waits),
		"max_wait_us", r->waits ? json_real(us(r->wait_max_ns)) : json_null());
	uint64_t behind = l->c.comm_hash ? last_of_all(t, l->c.comm_hash) - l->c.seq : 0;

	if (behind)
		json_object_set_new(row, "behind", json_integer((json_int_t)behind));
	return row;
}

static json_t *op_json(const struct op_row *o)
{
	char scratch[32];

	return json_pack("{s:s, s:I, s:I, s:o, s:f, s:o}", "operation",
		wire_op_name(SOURCE_NCCL, o->op, scratch), "count", (json_int_t)o->calls, "bytes",
		(json_int_t)o->bytes, "avg_us", mean_us(o->dur_ns, o->calls), "max_us",
		us(o->max_ns), "avg_wait_us", mean_us(o->wait_ns, o->waits));
}

void mcp_collectives(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.thin = NODEDB_THIN_LARGE}};
	_cleanup_free_ struct tables *t = calloc(1, sizeof(*t));
	json_t *ops = json_array(), *ranks = json_array(), *full;
	struct errinfo e = {0};
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);

	if (r < 0 || !t) {
		json_decref(ops);
		json_decref(ranks);
		mcp_reply_error(a, r, &e);
		return;
	}
	for (size_t i = 0; i < content.collective_count; i++)
		add(t, &content.collectives[i]);
	for (size_t i = 0; i < t->op_count; i++)
		json_array_append_new(ops, op_json(&t->ops[i]));
	for (size_t i = 0; i < t->rank_count; i++)
		json_array_append_new(ranks, rank_json(t, &t->ranks[i]));
	full = json_pack("{s:I, s:o, s:o, s:o}", "count", (json_int_t)content.collective_count,
		"operations", ops, "ranks", ranks, "range", mcp_range(&content, &part));
	if (t->left_out)
		json_object_set_new(full, "left_out", json_integer((json_int_t)t->left_out));
	json_object_set_new(full, "note",
		json_string(content.collective_count
				    ? "a wait is the synchronisation after the call, a bound seen "
				      "from the host; the rank that waits least is late"
				    : "no NCCL call is in the recording"));
	mcp_reply(a, arguments, full, NULL);
}
