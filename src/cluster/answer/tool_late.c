/* SPDX-License-Identifier: Apache-2.0 */
/* tool_late.c - see tool_private.h; and the tool blame. Rows that came in together are one batch. When it was sent is
 * not stored: clocks are compared by the moments at which ranks left a collective together, and where calls do
 * not tell these, nobody is called last; blame compares them by itself. */
#include "cluster/answer/tool_private.h"

#include "base/text.h"
#include "cluster/detect/fleet.h"
#include "wire/names.h"

#define ROW_BYTES  512                      /* of a call with its names, at most */
#define SETTLED_NS (11 * (int64_t)NS_PER_S) /* after that nobody waits for ranks without an agent */
#define SECONDS    100000                   /* that are counted: more than a day */
#define LATE_NS    NS_PER_MS
#define LATE_SHARE 0.1
#define TOLD_MAX   100
#define LATE_CALLS 3 /* fewer say nothing */

enum { NODE, PID, COMM, SEQ, OP, RANK, NRANKS, WORLD, PEER, BYTES, ENTER, LEAVE, WAIT, RECEIVED };

/* ---- stored collectives ---- */

int late_clusters(const struct tool_call *c, struct sql_table *ret)
{
	return tool_ask(c,
		&(struct tool_question){
			.select = "SELECT cluster_id, count(*) AS n FROM {collectives} "
				  "GROUP BY cluster_id ORDER BY n DESC",
			.limit = LATE_CLUSTERS_MAX},
		ret);
}

/* From which second on there are no more than @max calls. */
static int find_begin(
	struct late *l, const struct tool_call *c, const struct store_scope *scope, size_t max)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	uint64_t sum = 0;
	int r = tool_ask(c,
		&(struct tool_question){
			.select = "SELECT {div:enter_ns:1000000000} AS second, count(*) AS n "
				  "FROM {collectives} GROUP BY second ORDER BY second DESC",
			.limit = SECONDS,
			.scope = scope,
			.limits = &(struct store_limits){.rows_max = SECONDS,
				.bytes_max = 8u << 20,
				.timeout_ns = 10 * NS_PER_S}},
		&t);

	l->since_ns = scope->since_ns;
	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		sum += (uint64_t)tool_int(&t, i, 1);
		if (sum <= max)
			continue;
		l->is_cut = true;
		l->since_ns = (tool_int(&t, i, 0) + (i > 0)) * (int64_t)NS_PER_S;
		break;
	}
	return r;
}

static uint16_t op_of(const char *name)
{
	const struct wire_op_row *row = wire_op_by_name(name);

	if (!row) {
		row = wire_op_by_name(FORMATTED(64, "nccl%s", name));
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
static int take_batch(
	struct late *l, const struct sql_table *t, const uint32_t *order, size_t first, size_t end)
{
	_cleanup_free_ struct push_call *items = calloc(end - first, sizeof(*items));
	struct push_calls b = {.batch = first + 1, .items = items, .who.boot = 1, .who.rank = -1};
	struct calls_taken n;

	if (!items)
		return -ENOMEM;
	snprintf(b.who.node, sizeof(b.who.node), "%s", tool_text(t, order[first], NODE));
	for (size_t i = first; i < end; i++)
		items[b.count++] = call_of(t, order[i]);
	return calls_take(l->calls, &b, tool_int(t, order[first], RECEIVED), &n);
}

static int take_rows(struct late *l, struct sql_table *t)
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
		r = take_batch(l, t, order, i, end);
	}
	if (r == 0 && t->row_count)
		calls_tick(l->calls, last_ns + SETTLED_NS);
	return r;
}

int late_load(struct late *l, const struct tool_call *c, const char *cluster, size_t max)
{
	/* All that was read is looked at, whenever it was, and however wrong clocks are. */
	struct calls_settings settings = calls_defaults;
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct store_scope scope = c->scope;
	int r;

	*l = (struct late){.cluster = cluster};
	settings.window_ns = settings.future_ns = (uint64_t)365 * 24 * TOOL_HOUR_NS;
	scope.clusters = &cluster;
	scope.cluster_count = 1;
	r = find_begin(l, c, &scope, max);
	if (r < 0)
		return r;
	scope.since_ns = l->since_ns;
	r = tool_ask(c,
		&(struct tool_question){
			.select =
				"SELECT node_id, pid, comm_id_hash, op_seq, op_type, rank, nranks, "
				"world_rank, peer, bytes, enter_ns, leave_ns, wait_ns, recv_ns "
				"FROM {collectives}",
			.scope = &scope,
			.limits = &(struct store_limits){.rows_max = max,
				.bytes_max = max * ROW_BYTES,
				.timeout_ns = 10 * NS_PER_S}},
		&t);
	l->rows = t.row_count;
	l->is_cut |= t.truncated;
	r = r ?: calls_new(&settings, &l->calls);
	r = r ?: take_rows(l, &t);
	return r < 0 ? r : calls_blame(l->calls, &l->workers, &l->worker_count, &l->blame);
}

void late_done(struct late *l)
{
	if (l->workers)
		blame_done(&l->blame);
	free(l->workers);
	calls_freep(&l->calls);
}

/* ---- ranks ---- */

static bool is_same(const struct blame_worker *b, const struct worker_view *w)
{
	return b->pid == w->pid && !strcmp(b->node, w->node);
}

const struct blame_suspect *late_suspect(const struct late *l, const struct worker_view *w)
{
	return FIND(
		x, l->blame.suspects, l->blame.suspect_count, is_same(&l->workers[x->worker], w));
}

bool late_is_cleared(const struct late *l, const struct worker_view *w)
{
	return EXISTS(i, l->blame.cleared_count, is_same(&l->workers[l->blame.cleared[i]], w));
}

bool late_is_often_last(const struct worker_view *w)
{
	return w->last_count >= LATE_CALLS &&
	       (double)w->last_count >= LATE_SHARE * (double)w->calls &&
	       sketch_quantile(&w->lag, 0.5) >= LATE_NS;
}

/* In the words that the service itself has for it; *e holds them. */
static const char *sentence_of(
	struct fleet_episode *e, const struct late *l, const struct blame_suspect *x)
{
	const struct blame_worker *w = &l->workers[x->worker];

	*e = (struct fleet_episode){
		.problem = l->blame.kind == BLAME_STAGE ? FLEET_STAGE : FLEET_STRAGGLER,
		.rank = w->rank,
		.pid = w->pid,
		.stage = x->stage,
		.share = x->share,
		.lag_ns = x->lag_ns,
		.late = x->on_time ? 0 : x->late,
		.seen = x->seen,
		.period = x->period,
		.comm = x->comm,
		.seq = x->seq,
		.op = x->op};
	snprintf(e->node, sizeof(e->node), "%s", w->node);
	if (x->late && l->worker_count > 1) {
		e->waiting = (uint32_t)l->worker_count - 1;
		e->waited_ns = x->waited_ns / x->late / e->waiting;
	}
	fleet_received(e, x->received);
	fleet_sentence(e);
	return e->text;
}

json_t *late_json(const struct late *l, const struct worker_view *w)
{
	const struct blame_suspect *x = late_suspect(l, w);
	json_t *o = json_object();

	if (w->world_rank >= 0)
		json_object_set_new(o, "rank", json_integer(w->world_rank));
	json_object_update_new(
		o, json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "cluster_id",
			   tool_json_text(l->cluster), "node_id", tool_json_text(w->node), "pid",
			   (json_int_t)w->pid, "calls", (json_int_t)w->calls, "last_count",
			   (json_int_t)w->last_count, "lag_p50_ns",
			   (json_int_t)sketch_quantile(&w->lag, 0.5), "lag_max_ns",
			   (json_int_t)w->lag.max, "waited_ns", (json_int_t)w->waited_ns, "blamed",
			   x != NULL, "cleared", (int)late_is_cleared(l, w)));
	if (x) {
		struct fleet_episode e;

		json_object_update_new(o,
			json_pack(
				"{s:o, s:f, s:I, s:I, s:f, s:i, s:i, s:i, s:I, s:s, s:I, s:s, s:o}",
				"text", tool_json_text(sentence_of(&e, l, x)), "share", x->share,
				"lost_ns", (json_int_t)x->lost_ns, "waited_for_it_ns",
				(json_int_t)x->waited_ns, "confidence", x->confidence, "late_steps",
				x->late, "seen_steps", x->seen, "period_steps", x->period, "lag_ns",
				(json_int_t)x->lag_ns, "comm_id_hash", TEXT_HEX(x->comm), "op_seq",
				(json_int_t)x->seq, "op_type", WIRE_NCCL_NAME(x->op), "since",
				tool_time(x->since_ns)));
		if (x->stage >= 0)
			json_object_set_new(o, "stage", json_integer(x->stage));
	}
	return o;
}

/* ---- blame ---- */

static const char *verdict_id(enum blame_kind k)
{
	switch (k) {
	case BLAME_WORKERS: return "ranks";
	case BLAME_STAGE: return "stage";
	case BLAME_UNEVEN: return "uneven";
	case BLAME_NONE: break;
	}
	return "none";
}

static void say_verdict(struct buf *text, const struct late *l)
{
	const struct blame *b = &l->blame;

	buf_puts(text, text->len ? "\nCluster " : "Cluster ");
	tool_say(text, l->cluster);
	buf_puts(text, ":");
	if (b->steps < 3)
		buf_puts(text, " too few steps to tell which rank is late: use a longer since.");
	else if (b->kind == BLAME_NONE)
		buf_printf(text, " no straggler found in %u steps of %s.", b->steps,
			TEXT_DURATION(b->step_ns));
	else if (b->kind == BLAME_UNEVEN)
		buf_puts(text,
			" the load moves between the ranks: a different one is slowest in every step.");
	for (size_t i = 0; i < b->suspect_count; i++) {
		struct fleet_episode e;

		buf_putc(text, ' ');
		tool_say_text(text, sentence_of(&e, l, &b->suspects[i]));
		buf_putc(text, '.');
	}
}

/* What the service itself told of @cluster in this time, newest first: the same sentences as everywhere. Returns
 * how many last. */
static size_t put_told(
	const struct sql_table *t, const char *cluster, json_t *list, struct buf *text)
{
	size_t open = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		bool is_over = tool_int(t, i, INCIDENT_RESOLVED);

		if (incident_is_own(t, i) || !tool_same(t, i, INCIDENT_CLUSTER, cluster))
			continue;
		json_array_append_new(list, incident_json(t, i));
		open += !is_over;
		if (is_over)
			continue;
		buf_puts(text, text->len ? "\nCluster " : "Cluster ");
		tool_say(text, cluster);
		buf_puts(text, ": ");
		tool_say_text(text, tool_text(t, i, INCIDENT_SUMMARY));
		buf_putc(text, '.');
		if (!tool_is_null(t, i, INCIDENT_FIX) && tool_text(t, i, INCIDENT_FIX)[0]) {
			buf_puts(text, " Fix: ");
			tool_say_text(text, tool_text(t, i, INCIDENT_FIX));
			buf_putc(text, '.');
		}
	}
	return open;
}

static json_t *suspects_json(const struct late *l, bool cleared)
{
	json_t *list = json_array();
	struct worker_view w;
	size_t cursor = 0;

	while (calls_worker_next(l->calls, &cursor, &w))
		if (cleared ? late_is_cleared(l, &w) : !!late_suspect(l, &w))
			json_array_append_new(list, late_json(l, &w));
	return list;
}

static json_t *verdict_json(const struct late *l)
{
	const struct blame *b = &l->blame;

	return json_pack("{s:o, s:s, s:f, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o}", "cluster_id",
		tool_json_text(l->cluster), "verdict", verdict_id(b->kind), "confidence",
		b->confidence, "steps", (json_int_t)b->steps, "step_ns", (json_int_t)b->step_ns,
		"lost_ns", (json_int_t)b->lost_ns, "calls", (json_int_t)l->rows, "cut",
		(int)l->is_cut, "since", tool_time(l->since_ns), "suspects",
		suspects_json(l, false), "cleared", suspects_json(l, true));
}

int tool_blame(struct tool_call *c)
{
	_cleanup_(sql_table_done) struct sql_table clusters = {0}, told = {0};
	_cleanup_(json_decrefp) json_t *verdicts = json_array(), *incidents = json_array();
	int r = late_clusters(c, &clusters);

	r = r ?: incident_ask(c, TOLD_MAX, &told);
	for (size_t i = 0; r == 0 && i < clusters.row_count; i++) {
		const char *cluster = tool_text(&clusters, i, 0);
		struct late l;

		r = late_load(&l, c, cluster, LATE_CALLS_MAX / clusters.row_count);
		if (r == 0) {
			json_array_append_new(verdicts, verdict_json(&l));
			if (!put_told(&told, cluster, incidents, c->text))
				say_verdict(c->text, &l);
		}
		late_done(&l);
	}
	if (r < 0)
		return r;
	if (!clusters.row_count)
		buf_puts(c->text,
			"No collectives are stored in this time range: use a longer since, or check that agents push them.");
	return tool_put(c, "{s:O, s:O}", "incidents", incidents, "verdicts", verdicts);
}
