/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - see replay.h. Rows that came in together are one batch. When it was sent is not stored: clocks
 * are compared by the moments at which ranks left a collective together, and where calls do not tell
 * these, nobody is called last; blame compares them by itself. */
#include "cluster/answer/replay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/names.h"

#define ROW_BYTES  512                      /* of a call with its names, at most */
#define SETTLED_NS (11 * (int64_t)NS_PER_S) /* after that nobody waits for ranks without an agent */
#define SECONDS    100000                   /* that are counted: more than a day */

enum { NODE, PID, COMM, SEQ, OP, RANK, NRANKS, WORLD, PEER, BYTES, ENTER, LEAVE, WAIT, RECEIVED };

int replay_clusters(const struct tool_call *c, const struct tool_scope *s, struct sql_table *ret,
	struct errinfo *reterr)
{
	struct buf q = BUF_INIT(TOOL_QUESTION);

	buf_printf(&q,
		"SELECT cluster_id, count(*) AS n FROM {collectives} GROUP BY cluster_id "
		"ORDER BY n DESC LIMIT %d",
		REPLAY_CLUSTERS_MAX);
	return tool_ask(c, &s->store, &q, ret, reterr);
}

/* From which second on there are no more than @max calls. */
static int find_begin(struct replay *p, const struct tool_call *c, const struct store_scope *scope,
	size_t max, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct buf q = BUF_INIT(TOOL_QUESTION);
	uint64_t sum = 0;
	int r;

	buf_printf(&q,
		"SELECT {div:enter_ns:1000000000} AS second, count(*) AS n FROM {collectives} "
		"GROUP BY second ORDER BY second DESC LIMIT %d",
		SECONDS);
	r = tool_ask_limited(c, scope, &q,
		&(struct store_limits){
			.rows_max = SECONDS, .bytes_max = 8u << 20, .timeout_ns = 10 * NS_PER_S},
		&t, reterr);
	p->since_ns = scope->since_ns;
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		sum += (uint64_t)tool_int(&t, i, 1);
		if (sum <= max)
			continue;
		p->is_cut = true;
		p->since_ns = (tool_int(&t, i, 0) + (i > 0)) * (int64_t)NS_PER_S;
		break;
	}
	return r;
}

static uint16_t op_of(const char *name)
{
	const struct wire_op_row *row = wire_op_by_name(name);
	char full[64];

	if (!row) {
		snprintf(full, sizeof(full), "nccl%s", name);
		row = wire_op_by_name(full);
	}
	return row && row->source == SOURCE_NCCL ? row->op : 0;
}

static int64_t int_or(const struct sql_table *t, size_t row, int column, int64_t otherwise)
{
	return tool_is_null(t, row, column) ? otherwise : tool_int(t, row, column);
}

static struct push_call call_of(const struct sql_table *t, size_t row)
{
	int64_t leave = tool_int(t, row, LEAVE), wait = int_or(t, row, WAIT, -1);

	return (struct push_call){
		.comm = strtoull(tool_text(t, row, COMM), NULL, 16),
		.seq = (uint64_t)tool_int(t, row, SEQ),
		.bytes = (uint64_t)tool_int(t, row, BYTES),
		.enter_ns = tool_int(t, row, ENTER),
		.leave_ns = leave,
		.wait_ns = wait < 0 ? UINT64_MAX : (uint64_t)wait,
		.rank = (int32_t)tool_int(t, row, RANK),
		.nranks = (int32_t)tool_int(t, row, NRANKS),
		.peer = (int32_t)int_or(t, row, PEER, -1),
		.world_rank = (int32_t)int_or(t, row, WORLD, -1),
		.pid = (uint32_t)tool_int(t, row, PID),
		.op = op_of(tool_text(t, row, OP)),
		.datatype = UINT16_MAX,
	};
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct sql_table *t = arg;
	const uint32_t *x = a, *y = b;
	int64_t m = tool_int(t, *x, RECEIVED), n = tool_int(t, *y, RECEIVED);

	if (m != n)
		return m < n ? -1 : 1;
	return strcmp(tool_text(t, *x, NODE), tool_text(t, *y, NODE));
}

/* Rows @first to @end of @order: one node's, of one moment. */
static int take_batch(struct replay *p, const struct sql_table *t, const uint32_t *order,
	size_t first, size_t end)
{
	_cleanup_free_ struct push_call *items = calloc(end - first, sizeof(*items));
	struct push_calls b = {.batch = first + 1, .items = items, .who.boot = 1, .who.rank = -1};
	struct calls_taken n;

	if (!items)
		return -ENOMEM;
	snprintf(b.who.node, sizeof(b.who.node), "%s", tool_text(t, order[first], NODE));
	for (size_t i = first; i < end; i++)
		items[b.count++] = call_of(t, order[i]);
	return calls_take(p->calls, &b, tool_int(t, order[first], RECEIVED), &n);
}

static int take_rows(struct replay *p, struct sql_table *t)
{
	_cleanup_free_ uint32_t *order = calloc(MAX(t->row_count, (size_t)1), sizeof(*order));
	int64_t last_ns = 0;
	int r = order ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < t->row_count; i++)
		order[i] = i;
	qsort_r(order, t->row_count, sizeof(*order), compare_rows, t);
	for (size_t i = 0, end; r == 0 && i < t->row_count; i = end) {
		end = i + 1;
		while (end < t->row_count && compare_rows(&order[i], &order[end], t) == 0)
			end++;
		last_ns = tool_int(t, order[i], RECEIVED);
		r = take_batch(p, t, order, i, end);
	}
	if (r == 0 && t->row_count)
		calls_tick(p->calls, last_ns + SETTLED_NS);
	return r;
}

static int read_rows(struct replay *p, const struct tool_call *c, const struct store_scope *scope,
	size_t max, struct sql_table *ret, struct errinfo *reterr)
{
	struct buf q = BUF_INIT(TOOL_QUESTION);
	int r;

	buf_puts(&q,
		"SELECT node_id, pid, comm_id_hash, op_seq, op_type, rank, nranks, world_rank, "
		"peer, bytes, enter_ns, leave_ns, wait_ns, recv_ns FROM {collectives}");
	r = tool_ask_limited(c, scope, &q,
		&(struct store_limits){
			.rows_max = max, .bytes_max = max * ROW_BYTES, .timeout_ns = 10 * NS_PER_S},
		ret, reterr);
	if (r == 0) {
		p->rows = ret->row_count;
		p->is_cut |= ret->truncated;
	}
	return r;
}

int replay_load(struct replay *p, const struct tool_call *c, const struct tool_scope *s,
	const char *cluster, size_t max, struct errinfo *reterr)
{
	/* All that was read is looked at, whenever it was, and however wrong clocks are. */
	struct calls_settings settings = calls_defaults;
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct store_scope scope = s->store;
	int r;

	*p = (struct replay){0};
	settings.window_ns = settings.future_ns = (uint64_t)365 * 24 * TOOL_HOUR_NS;
	scope.clusters = &cluster;
	scope.cluster_count = 1;
	r = find_begin(p, c, &scope, max, reterr);
	if (r < 0)
		return r;
	scope.since_ns = p->since_ns;
	r = read_rows(p, c, &scope, max, &t, reterr);
	if (r == 0)
		r = calls_new(&settings, &p->calls);
	return r < 0 ? r : take_rows(p, &t);
}

void replay_done(struct replay *p)
{
	if (p->calls)
		calls_free(p->calls);
	p->calls = NULL;
}
