/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_clock.c - how far the nodes' clocks are apart, by what they did together: ends of collectives
 * (blame/ends.h), set against each other by blame_align().
 *
 * The end of a call is known from its span, or from the synchronisation of its process that followed it. Of a process none
 * of whose synchronisations were recorded, what its rows say of waits is believed: the moment of leaving is start +
 * duration + wait_ns then. Moments of coming, or of starting to record, say nothing about clocks.
 *
 * Memory: SYNCS_MAX synchronisations and ENDS_MAX ends; beyond that every second, fourth, … collective is looked at. */

#include "base/search.h"
#include "store/merge/nodedb_merge_private.h"
#include "base/array.h"
#include "base/hash.h"
#include "blame/blame.h"
#include "blame/clocks.h"
#include "blame/ends.h"
#include "wire/names.h"

#define SYNCS_MAX   (1u << 20)
#define ENDS_MAX    (1u << 18)
#define LEAST       8 /* collectives that tell */
#define WORKERS_MAX BLAME_WORKERS_MAX

struct gathering {
	struct merge *m;
	struct blame_worker *workers; /* one for each node, then one for each process */
	size_t *node_of;              /* by worker */
	size_t worker_count;
	struct blame_call *ends;
	size_t count, room;
	uint64_t stride; /* every so manyth collective */
	/* the process at hand */
	struct merge_node *node;
	uint32_t pid;
	bool is_silent;        /* none of its synchronisations were recorded */
	size_t sync, sync_end; /* of m->syncs, that are still to come */
	struct ends now;
	struct push_call last; /* its end may come; comm 0: none */
	bool is_end;
};

static void gathering_done(struct gathering *g)
{
	free(g->workers);
	free(g->node_of);
	free(g->ends);
}

/* A worker of @node: 0, -ENOBUFS if there are too many. */
static int add_worker(struct gathering *g, const struct merge_node *node, uint32_t pid)
{
	if (g->worker_count == WORKERS_MAX)
		return -ENOBUFS;
	g->node_of[g->worker_count] = (size_t)node->number - 1;
	g->workers[g->worker_count++] = (struct blame_worker){
		.rank = -1, .node = node->name, .pid = pid, .error_ns = UINT64_MAX};
	return 0;
}

/* The statement that has the synchronisations of the source at hand, of streams and devices; *ret NULL: it has no events. */
static int select_syncs(struct merge *m, const struct column *columns, size_t count, sql_stmt **ret,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(4096);
	struct reader *reader = &m->source.reader;
	int r = schema_has_table(reader->sql, "events", reterr);

	*ret = NULL;
	if (r <= 0)
		return r;
	r = reader_select_of(reader, "events", columns, count, NULL, &sql, reterr);
	buf_printf(&sql,
		" WHERE (source = %d AND op IN (%d, %d)) OR (source = %d AND op IN (%d, %d))",
		SOURCE_CUDA, CUDA_STREAM_SYNC, CUDA_DEVICE_SYNC, SOURCE_DRIVER, DRIVER_STREAM_SYNC,
		DRIVER_CTX_SYNC);
	return r < 0 ? r : reader_prepare(reader, &sql, ret, reterr);
}

int merge_syncs(struct merge *m, struct errinfo *reterr)
{
	enum { NODE, TIME, DURATION, PID, FLAGS, COLUMNS };
	static const struct column columns[COLUMNS] = {[NODE] = {"node", "NULL", COLUMN_NODE},
		[TIME] = {"timestamp", .kind = COLUMN_TIME},
		[DURATION] = {"duration", .kind = COLUMN_COUNT, .max = WALL_NS_MAX},
		[PID] = {"pid", .kind = COLUMN_COUNT, .max = UINT32_MAX},
		[FLAGS] = {"flags", "0", COLUMN_COUNT, .max = UINT16_MAX}};
	struct merge_report told =
		m->source.report; /* what makes no sense is counted with the events */
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	struct sql_value v[COLUMNS];
	struct merge_node *node;
	int r = select_syncs(m, columns, COLUMNS, &stmt, reterr);

	while (stmt && r >= 0 && m->sync_count < SYNCS_MAX && (r = sql_step(stmt, reterr)) > 0) {
		r = merge_row(m, columns, COLUMNS, stmt, v, &node, reterr);
		if (r <= 0 || v[FLAGS].i & WIRE_NESTED)
			continue;
		r = ARRAY_RESERVE(m->syncs, m->sync_room, m->sync_count + 1, SYNCS_MAX);
		if (r == 0)
			m->syncs[m->sync_count++] = (struct merge_sync){node->number,
				(uint32_t)v[PID].i, v[TIME].i, v[TIME].i + v[DURATION].i};
	}
	m->source.report = told;
	return MIN(r, 0);
}

ORDER(by_process, struct merge_sync, ASCENDING(node) ?: ASCENDING(pid) ?: ASCENDING(start_ns))

static bool is_chosen(const struct gathering *g, const struct push_call *c)
{
	return hash_number(c->comm ^ hash_number(c->seq)) % g->stride == 0;
}

/* Of too many, every second collective goes: the same ones of all ranks. */
static void thin_out(struct gathering *g)
{
	size_t kept = 0;

	g->stride *= 2;
	for (size_t i = 0; i < g->count; i++)
		if (is_chosen(g, &g->ends[i].c))
			g->ends[kept++] = g->ends[i];
	g->count = kept;
}

/* The call at hand is done: kept if it has an end. */
static int keep_last(struct gathering *g)
{
	int r = 0;

	if (g->last.comm && g->is_end && is_chosen(g, &g->last)) {
		if (g->count == ENDS_MAX)
			thin_out(g);
		r = ARRAY_RESERVE(g->ends, g->room, g->count + 1, ENDS_MAX);
		if (r == 0)
			g->ends[g->count++] = (struct blame_call){
				.worker = (uint32_t)g->worker_count - 1, .c = g->last};
	}
	g->last = (struct push_call){0};
	return r;
}

/* Synchronisations that began before @ns. */
static void take_syncs(struct gathering *g, int64_t ns)
{
	for (; g->sync < g->sync_end && g->m->syncs[g->sync].start_ns < ns; g->sync++)
		if (g->last.comm)
			ends_sync(&g->now, g->m->syncs[g->sync].start_ns,
				g->m->syncs[g->sync].end_ns);
}

static int end_process(struct gathering *g)
{
	take_syncs(g, INT64_MAX);
	return keep_last(g);
}

static int begin_process(struct gathering *g, struct merge_node *node, uint32_t pid)
{
	struct merge_sync key = {node->number, pid, INT64_MIN, 0};
	size_t low, high;
	int r = end_process(g);

	r = r < 0 ? r : add_worker(g, node, pid);
	if (r < 0)
		return r;
	low = LOWER_BOUND(i, g->m->sync_count, by_process(&g->m->syncs[i], &key) < 0);
	for (high = low; high < g->m->sync_count && g->m->syncs[high].node == node->number &&
			 g->m->syncs[high].pid == pid;)
		high++;
	g->sync = low;
	g->sync_end = high;
	g->is_silent = low == high;
	g->node = node;
	g->pid = pid;
	return 0;
}

static int take_row(struct gathering *g, sql_stmt *stmt, struct errinfo *reterr)
{
	int64_t start = sql_column_int(stmt, 2), wait = sql_column_int(stmt, 8),
		span = sql_column_int(stmt, 9);
	char op[40] = "nccl";
	const struct wire_op_row *known;
	struct merge_node *node;
	const char *name;
	size_t len;
	int r;

	if (!reader_text(stmt, 5, op + 4, sizeof(op) - 4))
		return 0;
	known = wire_op_by_name(op);
	name = sql_column_text(stmt, 0, &len);
	r = merge_node(g->m, name, len, &node, reterr);
	if (r < 0 || !known || known->source != SOURCE_NCCL)
		return r;
	if (node != g->node || (uint32_t)sql_column_int(stmt, 1) != g->pid)
		r = begin_process(g, node, (uint32_t)sql_column_int(stmt, 1));
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;
	take_syncs(g, start);
	r = keep_last(g);
	g->last = (struct push_call){.comm = (uint64_t)sql_column_int(stmt, 3),
		.seq = (uint64_t)sql_column_int(stmt, 4),
		.enter_ns = start,
		.leave_ns =
			start + (span > 0 ? span : sql_column_int(stmt, 7) + MAX(wait, INT64_C(0))),
		.wait_ns = wait < 0 ? UINT64_MAX : (uint64_t)wait,
		.rank = (int32_t)sql_column_int(stmt, 6),
		.nranks = (int32_t)sql_column_int(stmt, 10),
		.peer = (int32_t)sql_column_int(stmt, 11),
		.op = known->op};
	ends_call(&g->now, &g->last, &g->is_end);
	g->is_end = g->last.op == NCCL_SEND ||
		    ((g->is_silent || span > 0) && wait > 0 &&
			    clocks_is_end(start, g->last.leave_ns, (uint64_t)wait));
	return r;
}

static int gather(struct gathering *g, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(g->m->out,
		"SELECT node, pid, timestamp, comm, seq, op, rank, duration, ifnull(wait_ns, -1), ifnull(span_ns, 0),"
		" nranks, ifnull(peer, -1) FROM collectives"
		" WHERE seq > 0 AND comm <> 0 AND rank >= 0 AND ifnull(wait_ns, 0) < 86400000000000"
		" AND ifnull(span_ns, 0) < 86400000000000 AND duration < 86400000000000"
		" ORDER BY node, pid, timestamp",
		&stmt, reterr);

	for (size_t i = 0; r >= 0 && i < g->m->node_count; i++) /* the first is the reference */
		r = add_worker(g, g->m->nodes[i], 0);
	SORT(g->m->syncs, g->m->sync_count, by_process);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0)
		r = take_row(g, stmt, reterr);
	return r < 0 ? r : end_process(g);
}

struct place { /* of a node */
	bool known;
	size_t reference;
	int64_t offset_ns;
	uint64_t error_ns, collectives;
};

static int place_all(struct gathering *g, struct place *places)
{
	_cleanup_free_ struct blame_tie *ties = calloc(g->worker_count + 1, sizeof(*ties));
	int r = ties ? 0 : -ENOMEM;

	r = r < 0 ? r : blame_align(g->workers, g->worker_count, g->ends, g->count, ties);
	for (size_t w = g->m->node_count; r == 0 && w < g->worker_count; w++) {
		size_t node = g->node_of[w], to;

		if (ties[w].by == UINT32_MAX || ties[w].met < LEAST)
			continue;
		to = g->node_of[ties[w].by];
		if (to != node)
			places[node] = (struct place){true, to, -g->workers[w].offset_ns,
				g->workers[w].error_ns, ties[w].met};
	}
	return r;
}

static int apply(struct merge *m, struct merge_node *node, int64_t offset, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(m->out,
		"UPDATE OR IGNORE collectives SET timestamp = timestamp - ?2 WHERE node = ?1"
		" AND timestamp > ?2",
		&stmt, reterr);

	node->align_ns = -offset;
	return r < 0 ? r : SQL_PUT(stmt, reterr, SQL_S(node->name), SQL_I(offset));
}

static int record(struct merge *m, const struct place *places, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *put = NULL;
	struct merge_result *res = &m->result;
	int r = sql_prepare(
		m->out, "INSERT INTO node_clocks VALUES (?1,?2,?3,?4,?5,?6)", &put, reterr);

	for (size_t i = 0; r >= 0 && i < m->node_count; i++) {
		const struct place *p = &places[i];
		struct merge_clock *clock = &res->clocks[res->clock_count];

		if (!m->nodes[i]->len || (i == 0 && !p->known))
			continue;
		*clock = (struct merge_clock){.offset_ns = p->offset_ns,
			.error_ns = p->error_ns,
			.collectives = p->collectives,
			.applied = p->known && m->options->align};
		memcpy(clock->node, m->nodes[i]->name, MERGE_NODE_LEN);
		memcpy(clock->reference, m->nodes[p->known ? p->reference : i]->name,
			MERGE_NODE_LEN);
		res->clock_count++;
		if (!p->known)
			continue;
		r = SQL_PUT(put, reterr, SQL_S(clock->node), SQL_S(clock->reference),
			SQL_I(clock->offset_ns), SQL_I(clock->error_ns), SQL_I(clock->collectives),
			SQL_I(clock->applied));
		if (r == 0 && clock->applied)
			r = apply(m, m->nodes[i], clock->offset_ns, reterr);
	}
	return r;
}

int merge_clocks(struct merge *m, struct errinfo *reterr)
{
	_cleanup_free_ struct place *places = calloc(m->node_count + 1, sizeof(*places));
	_cleanup_(gathering_done) struct gathering g = {.m = m,
		.stride = 1,
		.workers = calloc(WORKERS_MAX, sizeof(*g.workers)),
		.node_of = calloc(WORKERS_MAX, sizeof(*g.node_of))};
	int r;

	m->result.clocks = calloc(m->node_count + 1, sizeof(*m->result.clocks));
	if (!places || !m->result.clocks || !g.workers || !g.node_of)
		return -ENOMEM;
	r = gather(&g, reterr);
	r = r < 0 ? r : place_all(&g, places);
	return r < 0 ? r : record(m, places, reterr);
}
