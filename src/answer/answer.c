/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - see answer.h: which time is meant, and what all answers share.
 *
 * Times are relative to the end of the recording, so that a saved file answers as it did then;
 * while somebody writes it, to now, so that a workload that has stopped shows as stopped. */
#include "answer/answer.h"

#include "store/lock.h"
#include "base/text.h"

#define NODES_MAX   1024
#define NAMES_BYTES 1024 /* of a sentence */

struct asking {
	const struct answer_request *request;
	uint64_t default_ns;
	question_fn *fn;
	void *arg;
};

static int find_time(struct question *t, uint64_t default_ns, struct errinfo *reterr)
{
	const struct answer_request *q = t->request;
	/* The newest rows are the newest of all. */
	struct time_request time = {q->from, q->to, q->since_ns, q->all || q->last};
	struct time_end end = {t->range, t->live, wall_now().ns, q->flag ? q->flag : ""};
	struct nodedb_range events = {0};
	int r = 0;

	t->by_default = time_request_is_empty(&time);
	if (!q->until_now && t->live)
		r = nodedb_range(nodedb_snapshot_path(t->snapshot), &events, reterr);
	if (!q->until_now)
		end.live_ns = events.last_ns;
	return r < 0 ? r : time_request_resolve(&time, &end, default_ns, &t->scope, reterr);
}

/* Several runs in one file have nothing in common but the file: without a time the newest is meant. In a
 * merged one each node has its own. */
static int find_run(struct question *t, size_t nodes, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table runs = {0};
	struct nodedb_totals totals;
	int64_t started;
	int r;

	if (!t->by_default || t->live || nodes > 1 || t->scope.pid_count ||
		!nodedb_snapshot_is_ours(t->snapshot))
		return 0; /* a process that is asked for is asked for in any run */
	r = nodedb_snapshot_list(
		t->snapshot, NODEDB_SESSIONS, &(struct scope){0}, 1, &runs, reterr);
	if (r == 0 && runs.truncated)
		r = nodedb_snapshot_totals(t->snapshot, &totals, reterr);
	if (r < 0 || !runs.truncated)
		return r;
	started = table_int(&runs, 0, table_column(&runs, "started_at"));
	if (started > t->scope.from_ns && started <= t->scope.to_ns) {
		t->scope.from_ns = started;
		t->runs = totals.sessions;
	}
	return 0;
}

int answer_second_time(const struct question *q, struct scope *ret, struct errinfo *reterr)
{
	struct time_request time = {q->request->from2, q->request->to2, 0, false};
	struct time_end end = {
		q->range, q->live, wall_now().ns, q->request->flag ? q->request->flag : ""};

	if (time_request_is_empty(&time))
		return errinfo_set(
			reterr, -EINVAL, "give the time to compare with: from2, to2 or both");
	*ret = q->scope;
	return time_request_resolve(&time, &end, 0, ret, reterr);
}

/* The node that is asked for must be there; without one the first one gives the recording its name. */
static int find_node(struct question *t, const struct sql_table *nodes, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf names = BUF_INIT(NAMES_BYTES);

	t->node = nodes->row_count ? table_text(nodes, 0, 0) : "";
	if (!t->request->node[0])
		return 0;
	for (size_t i = 0; i < nodes->row_count; i++)
		if (!strcmp(table_text(nodes, i, 0), t->request->node)) {
			t->scope.node = t->request->node;
			return 0;
		}
	for (size_t i = 0; i < nodes->row_count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", table_text(nodes, i, 0));
	return errinfo_set(reterr, -ESRCH, "the recording has no node %s, only %s",
		t->request->node, buf_str(&names));
}

/* A rank stands for its processes: one, or as many as were started with it. Of a merged recording their node
 * is meant with it, because process ids of different nodes have nothing in common. */
static int find_rank(struct question *t, const struct sql_table *nodes,
	uint32_t pids[ANSWER_PIDS_MAX], struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table p = {0};
	int r = nodedb_snapshot_list(t->snapshot, NODEDB_PROCESSES,
		&(struct scope){.node = t->scope.node}, 0, &p, reterr);
	int rank = table_column(&p, "rank"), pid = table_column(&p, "pid");

	if (r < 0)
		return r;
	if (t->scope.pid_count)
		return errinfo_set(reterr, -EINVAL, "give either a pid or a rank");
	for (size_t i = 0; i < p.row_count && t->scope.pid_count < ANSWER_PIDS_MAX; i++) {
		if (sql_table_cell(&p, i, rank)->type != SQL_INT ||
			table_int(&p, i, rank) != t->request->rank)
			continue;
		pids[t->scope.pid_count++] = (uint32_t)table_int(&p, i, pid);
		for (size_t k = 0; nodes->row_count > 1 && k < nodes->row_count; k++)
			if (!strcmp(table_text(nodes, k, 0), table_text(&p, i, 0)))
				t->scope.node = table_text(nodes, k, 0);
	}
	t->scope.pids = pids;
	return t->scope.pid_count
		       ? 0
		       : errinfo_set(reterr, -ESRCH, "no process of the recording has rank %d",
				 t->request->rank);
}

static int ask(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	uint32_t pids[ANSWER_PIDS_MAX];
	const struct asking *asking = arg;
	_cleanup_(sql_table_done) struct sql_table nodes = {0};
	struct question t = {.snapshot = l,
		.request = asking->request,
		.scope = {.pids = asking->request->pids,
			.pid_count = asking->request->pid_count,
			.source = asking->request->source,
			.op = asking->request->op},
		.live = store_lock_holder(nodedb_snapshot_path(l)) != 0};
	int r = nodedb_snapshot_range(l, &t.range, reterr);

	r = r
		    ?: nodedb_snapshot_list(
			       l, NODEDB_NODES, &(struct scope){0}, NODES_MAX, &nodes, reterr);
	r = r ?: find_node(&t, &nodes, reterr);
	if (r == 0 && t.request->has_rank)
		r = find_rank(&t, &nodes, pids, reterr);
	r = r ?: find_time(&t, asking->default_ns, reterr);
	if (r == 0 && !asking->default_ns)
		r = find_run(&t, nodes.row_count, reterr);
	return r ?: asking->fn(&t, asking->arg, reterr);
}

int answer_ask(const char *path, const struct answer_request *request, uint64_t default_ns,
	question_fn *fn, void *arg, struct errinfo *reterr)
{
	struct asking asking = {request, default_ns, fn, arg};

	return nodedb_snapshot_read(path, ask, &asking, reterr);
}

/* ---- as JSON ---- */

struct writing {
	answer_fn *fn;
	struct buf made;
};

static int write_json(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct writing *writing = arg;
	struct json_writer w;
	int r;

	buf_done(&writing->made); /* of a first try */
	writing->made = BUF_INIT(ANSWER_BYTES);
	w = json_writer_to_buf(&writing->made);
	r = writing->fn(q, &w, reterr);
	if (r < 0)
		return r;
	r = json_finish(&w);
	if (r == -ENOBUFS)
		return errinfo_set(reterr, -EMSGSIZE,
			"the answer is larger than %u MiB: ask for a shorter time or a smaller "
			"limit",
			ANSWER_BYTES >> 20);
	return r;
}

int answer_run(const char *path, const struct answer_request *request, answer_fn *fn,
	uint64_t default_ns, struct buf *out, struct errinfo *reterr)
{
	struct writing writing = {.fn = fn};
	int r = answer_ask(path, request, default_ns, write_json, &writing, reterr);

	if (r == 0)
		buf_append(out, buf_str(&writing.made), writing.made.len);
	buf_done(&writing.made);
	return r ?: out->err;
}

size_t answer_limit(size_t request, size_t otherwise, size_t max)
{
	return MIN(request ? request : otherwise, max);
}

void put_window(const struct question *q, struct json_writer *w)
{
	JSON_PUT_INTO(w, "window", JSON_I("from_ns", q->scope.from_ns),
		JSON_I("to_ns", q->scope.to_ns), JSON_B("live", q->live),
		JSON_B("default", q->by_default));
}

int answer_end(const struct question *q, struct json_writer *w, bool truncated)
{
	json_bool_member(w, "truncated", truncated);
	put_window(q, w);
	json_end_object(w);
	return 0;
}

/* ---- lists ---- */

int table_column(const struct sql_table *t, const char *name)
{
	for (int i = 0; i < t->column_count; i++)
		if (!strcmp(sql_table_name(t, i), name))
			return i;
	return -1;
}

int64_t table_int(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = column < 0 ? NULL : sql_table_cell(t, row, column);

	return !c ? 0 : c->type == SQL_INT ? c->i : 0;
}

double table_real(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = column < 0 ? NULL : sql_table_cell(t, row, column);

	return !c ? 0 : c->type == SQL_REAL ? c->d : c->type == SQL_INT ? (double)c->i : 0;
}

const char *table_text(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = column < 0 ? NULL : sql_table_cell(t, row, column);

	return c && c->type == SQL_TEXT ? sql_table_bytes(t, c) : "";
}

void table_cell(struct json_writer *w, const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	switch (c->type) {
	case SQL_INT: json_put_int(w, c->i); break;
	case SQL_REAL: json_put_double(w, c->d); break;
	case SQL_TEXT: json_put_string_len(w, sql_table_bytes(t, c), c->len); break;
	case SQL_BLOB:
	case SQL_NULL: json_put_null(w); break;
	}
}

void table_put_row(struct json_writer *w, const struct sql_table *t, size_t row, int first, int end)
{
	for (int c = first; c < end; c++) {
		json_key(w, sql_table_name(t, c));
		table_cell(w, t, row, c);
	}
}

void table_put(struct json_writer *w, const char *key, const struct sql_table *t)
{
	json_begin_array_member(w, key);
	for (size_t i = 0; i < t->row_count; i++) {
		json_begin_object(w);
		table_put_row(w, t, i, 0, t->column_count);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_blob(
	struct json_writer *w, const struct sql_table *t, const struct sql_cell *c, size_t max)
{
	const unsigned char *p = (const unsigned char *)sql_table_bytes(t, c);
	size_t shown = max ? MIN(c->len, max) : c->len;
	_cleanup_buf_ struct buf b = BUF_INIT(2 * shown + 16);

	buf_puts(&b, max ? "x'" : "");
	for (size_t i = 0; i < shown; i++)
		buf_printf(&b, "%02x", p[i]);
	buf_puts(&b, !max ? "" : shown < c->len ? "'…" : "'");
	json_put_string(w, buf_str(&b));
}

void table_put_arrays(struct json_writer *w, const struct sql_table *t, size_t blob_max)
{
	json_begin_array_member(w, "columns");
	for (int c = 0; c < t->column_count; c++)
		json_put_string(w, sql_table_name(t, c));
	json_end_array(w);
	json_begin_array_member(w, "rows");
	for (size_t r = 0; r < t->row_count; r++) {
		json_begin_array(w);
		for (int c = 0; c < t->column_count; c++)
			if (sql_table_cell(t, r, c)->type == SQL_BLOB)
				put_blob(w, t, sql_table_cell(t, r, c), blob_max);
			else
				table_cell(w, t, r, c);
		json_end_array(w);
	}
	json_end_array(w);
	json_bool_member(w, "truncated", t->truncated);
}

/* Times are those of the recording, so that a file saved
 * yesterday answers as it did then. */

static int parse(const char *name, const char *text, const struct time_end *end, bool is_end,
	int64_t *ret_ns, struct errinfo *reterr)
{
	struct when_span span = {end->range.first_ns, end->range.last_ns};

	if (!text || !text[0] || when_parse(text, &span, is_end, ret_ns) == 0)
		return 0;
	return errinfo_set(reterr, -EINVAL,
		"%s%s: '%.100s' is not a time: give 2026-03-24T13:48:44Z, '2026-03-24 13:48:44' or "
		"13:48:44 (local), or seconds, ms or ns since 1970",
		end->flag, name, TEXT_SHOWN(text));
}

int time_request_resolve(const struct time_request *t, const struct time_end *end,
	uint64_t default_ns, struct scope *ret, struct errinfo *reterr)
{
	bool is_live = end->live && end->live_ns;
	int64_t from = 0, to = 0, last = MAX(end->range.last_ns, is_live ? end->live_ns : 0);
	uint64_t since = t->since_ns;
	int r = parse("from", t->from, end, false, &from, reterr);

	r = r ?: parse("to", t->to, end, true, &to, reterr);
	if (r < 0)
		return r;
	if (to && from > to)
		return errinfo_set(reterr, -EINVAL, "%sfrom is after %sto", end->flag, end->flag);
	if (time_request_is_empty(t)) {
		since = default_ns ? default_ns : end->live ? TIME_REQUEST_LIVE_NS : 0;
		last = is_live ? end->live_ns : last;
	}
	ret->to_ns = to ? to : last;
	ret->from_ns = from ? from : to && !since ? end->range.first_ns : 0;
	if (!from && since && last)
		ret->from_ns =
			MAX(ret->to_ns - (int64_t)MIN(since, (uint64_t)INT64_MAX / 2), INT64_C(1));
	/* What is asked for and not there would only be empty space. */
	if (!from)
		ret->from_ns = MAX(ret->from_ns, MIN(end->range.first_ns, ret->to_ns));
	return 0;
}
