/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.c - see mcp_tool.h. */
#include "serve/mcp/mcp_tool.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/mcp/mcp_clean.h"
#include "serve/mcp/mcp_tsc.h"
#include "base/text.h"
#include "mcp/rpc.h"
#include "wire/names.h"

#define TEXT_MAX_BYTES (1u << 20)
#define PIDS_NAMED     10
#define NODES_BYTES    4096

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	unsigned running;
} reads = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

json_int_t mcp_arg_int(const json_t *arguments, const char *key, json_int_t otherwise)
{
	const json_t *v = json_object_get(arguments, key);

	return json_is_number(v) ? (json_int_t)json_number_value(v) : otherwise;
}

const char *mcp_arg_text(const json_t *arguments, const char *key)
{
	return json_string_value(json_object_get(arguments, key));
}

bool mcp_arg_compact(const json_t *arguments)
{
	const json_t *tsc = json_object_get(arguments, "tsc");

	return tsc ? json_is_true(tsc) : !json_object_get(arguments, "id");
}

/* ---- the part that is meant ---- */

static int read_pids(const json_t *arguments, struct answer_request *q, struct errinfo *reterr)
{
	const json_t *list = json_object_get(arguments, "pids"), *one;
	json_int_t pid = mcp_arg_int(arguments, "pid", 0);
	size_t i;

	q->rank = (int32_t)MIN(mcp_arg_int(arguments, "rank", -1), INT32_MAX);
	q->has_rank = q->rank >= 0;
	if (pid)
		q->pids[q->pid_count++] = (uint32_t)pid;
	json_array_foreach (list, i, one) {
		if (q->pid_count == ANSWER_PIDS_MAX)
			return errinfo_set(
				reterr, -EINVAL, "no more than %d processes", ANSWER_PIDS_MAX);
		q->pids[q->pid_count++] = (uint32_t)json_number_value(one);
	}
	return 0;
}

static int read_op(const json_t *arguments, struct answer_request *q, struct errinfo *reterr)
{
	const char *name = mcp_arg_text(arguments, "op"),
		   *source = mcp_arg_text(arguments, "source");
	const struct wire_op_row *op = name ? wire_op_by_name(name) : NULL;

	if (name && !op)
		return errinfo_set(reterr, -EINVAL,
			"unknown op: use for example cudaLaunchKernel, "
			"cudaMemcpyAsync, cudaStreamSync, cuMemAlloc, ncclAllReduce");
	for (const struct wire_source_row *s = wire_sources; source && s->json; s++)
		if (!strcmp(s->json, source))
			q->source = s->id;
	if (op && q->source && q->source != op->source)
		return errinfo_set(reterr, -EINVAL, "op: it is not one of that source");
	q->source = op ? op->source : q->source;
	q->op = op ? op->op : 0;
	return 0;
}

static int read_since(const json_t *arguments, struct answer_request *q, struct errinfo *reterr)
{
	const char *text = mcp_arg_text(arguments, "since");

	if (text && text_parse_duration(text, &q->since_ns) < 0)
		return errinfo_set(reterr, -EINVAL,
			"since: give a duration such as 30s, 5m, 1h30m or 2d, or 0s for all");
	q->all = text && !q->since_ns;
	return 0;
}

/* Processes with calls on a GPU first, the busiest of them in front. */
static int name_pids(const struct question *q, struct buf *b, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table calls = {0}, all = {0};
	struct scope any = {.node = q->scope.node};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_CALLS, &any, PIDS_NAMED, &calls, reterr);

	if (r == 0)
		r = nodedb_snapshot_list(
			q->snapshot, NODEDB_PROCESSES, &any, PIDS_NAMED, &all, reterr);
	for (size_t i = 0; r == 0 && i < calls.row_count; i++)
		buf_printf(b, "%s%lld", b->len ? ", " : "", (long long)table_int(&calls, i, 0));
	for (size_t i = 0; r == 0 && !calls.row_count && i < all.row_count; i++)
		buf_printf(b, "%s%lld", b->len ? ", " : "",
			(long long)table_int(&all, i, table_column(&all, "pid")));
	return r;
}

/* "Nothing was found" about a process that was never there would be taken for good news. */
static int check_pids(const struct question *q, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf known = BUF_INIT(1024);

	for (size_t i = 0; i < q->scope.pid_count; i++) {
		struct scope one = {
			.pids = &q->scope.pids[i], .pid_count = 1, .node = q->scope.node};
		_cleanup_(sql_table_done) struct sql_table rows = {0}, calls = {0};
		uint64_t events = 0;
		int r = nodedb_snapshot_list(q->snapshot, NODEDB_PROCESSES, &one, 1, &rows, reterr);

		if (r == 0)
			r = nodedb_snapshot_list(
				q->snapshot, NODEDB_CALLS, &one, 1, &calls, reterr);
		if (r == 0 && !rows.row_count && !calls.row_count)
			r = nodedb_snapshot_count(q->snapshot, &one, 1, &events, reterr);
		if (r < 0)
			return r;
		if (rows.row_count || calls.row_count || events)
			continue;
		r = name_pids(q, &known, reterr);
		return r < 0 ? r
			     : errinfo_set(reterr, -ESRCH,
				       "process %u is not in the recording; it has %s",
				       q->scope.pids[i], known.len ? buf_str(&known) : "none");
	}
	return 0;
}

static int ask(
	const char *db, const json_t *arguments, question_fn *fn, void *arg, struct errinfo *reterr)
{
	_cleanup_free_ struct answer_request *q = calloc(1, sizeof(*q));
	int r = q ? read_pids(arguments, q, reterr) : -ENOMEM;

	if (r == 0)
		r = read_op(arguments, q, reterr);
	if (r == 0)
		r = read_since(arguments, q, reterr);
	return r < 0 ? r : answer_ask(db, q, 0, fn, arg, reterr);
}

struct answering {
	mcp_answer_fn *fn;
	const json_t *arguments;
	json_t *made;
};

static int make(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct answering *answering = arg;
	int r = check_pids(q, reterr);

	json_decref(answering->made); /* of a first try */
	answering->made = r < 0 ? NULL : answering->fn(q, answering->arguments, reterr);
	return r < 0 ? r : answering->made ? 0 : -ENOMEM;
}

void mcp_answer(const struct call *c, const json_t *arguments, mcp_answer_fn *fn, struct answer *a)
{
	struct answering answering = {fn, arguments, NULL};
	struct errinfo e = {0};
	int r = ask(mcp_settings_of(c)->db, arguments, make, &answering, &e);

	if (r == 0) {
		mcp_reply(a, arguments, answering.made);
		return;
	}
	json_decref(answering.made);
	mcp_reply_error(a, r, &e);
}

/* ---- loading ---- */

int mcp_turn_take(struct errinfo *reterr)
{
	struct timespec end;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (time_t)(MCP_READS_WAIT / NS_PER_S);
	pthread_mutex_lock(&reads.mutex);
	while (reads.running == MCP_READS_MAX && r == 0)
		r = pthread_cond_timedwait(&reads.freed, &reads.mutex, &end);
	if (r == 0)
		reads.running++;
	pthread_mutex_unlock(&reads.mutex);
	return r == 0 ? 0
		      : errinfo_set(reterr, -EBUSY,
				"%d requests are in progress: try again, or send fewer at once",
				MCP_READS_MAX);
}

void mcp_turn_give(void)
{
	pthread_mutex_lock(&reads.mutex);
	reads.running--;
	pthread_cond_signal(&reads.freed);
	pthread_mutex_unlock(&reads.mutex);
}

void mcp_loaded_done(struct mcp_loaded *l)
{
	incidents_answer_done(&l->incidents);
	if (l->turn)
		mcp_turn_give();
	l->turn = false;
}

/* Why it is less than the whole recording although no time was asked for; NULL: it is all. */
static const char *range_text(const struct question *q)
{
	if (q->live && q->by_default)
		return "a trace is recording: these are its last 5 minutes; since \"0s\" asks for all";
	if (q->runs)
		return "the recording holds several runs of the tracer: this is the newest; since \"0s\" asks for all";
	return NULL;
}

static int load(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct nodedb_filter f = incidents_filter(&q->scope, false);
	struct mcp_loaded *l = arg;
	int r = check_pids(q, reterr);

	if (r < 0)
		return r;
	f.scope.to_ns = 0; /* a verdict may be found after the last event that it is about */
	incidents_answer_done(&l->incidents); /* of a first try */
	l->note = range_text(q);
	return incidents_load(nodedb_snapshot_path(q->snapshot), &f, false, &l->incidents, reterr);
}

int mcp_load(
	const char *db, const json_t *arguments, struct mcp_loaded *ret, struct errinfo *reterr)
{
	int r = mcp_turn_take(reterr);

	if (r < 0)
		return r;
	ret->turn = true;
	return ask(db, arguments, load, ret, reterr);
}

/* ---- answers ---- */

static json_t *range_json(
	const char *node, int64_t from_ns, int64_t to_ns, uint64_t events, const char *note)
{
	_cleanup_json_ json_t *raw = json_pack("{s:I, s:I}", "first_seen_ns", (json_int_t)from_ns,
		"last_seen_ns", (json_int_t)to_ns);
	_cleanup_json_ json_t *times = mcp_tsc_full(raw);
	json_t *range =
		json_pack("{s:o, s:O, s:O, s:I}", "node", mcp_clean_string(node, MCP_CLEAN_NAME),
			"from", json_object_get(times, "first_seen"), "to",
			json_object_get(times, "last_seen"), "events", (json_int_t)events);

	if (note)
		json_object_set_new(range, "note", json_string(note));
	return range;
}

json_t *mcp_range(const struct question *q, struct errinfo *reterr)
{
	uint64_t events = 0;

	if (nodedb_snapshot_count(q->snapshot, &q->scope, UINT64_MAX, &events, reterr) < 0)
		return NULL;
	return range_json(q->node, q->scope.from_ns, q->scope.to_ns, events, range_text(q));
}

json_t *mcp_range_of(const struct incidents_answer *a, const char *note)
{
	struct report_scope s = incidents_scope(a);
	_cleanup_buf_ struct buf names = BUF_INIT(NODES_BYTES);
	json_t *range;

	for (size_t i = 0; i < a->node_count && !names.err; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", a->nodes[i].content.node);
	range = range_json(buf_str(&names), s.first_ns, s.last_ns, s.events, note);
	if (s.skipped_rows)
		json_object_set_new(
			range, "damaged_rows", json_integer((json_int_t)s.skipped_rows));
	if (s.older_events)
		json_object_set_new(
			range, "older_events", json_integer((json_int_t)s.older_events));
	return range;
}

json_t *mcp_us(double ns)
{
	double us = ns / (double)NS_PER_US;

	return us < 10 ? json_real(round(us * 10) / 10) : json_integer((json_int_t)round(us));
}

json_t *mcp_tree(struct json_writer *w)
{
	_cleanup_json_ json_t *raw =
		json_finish(w) < 0 ? NULL : json_loadb(w->buf->data, w->buf->len, 0, NULL);

	return raw ? mcp_tsc_full(raw) : NULL;
}

json_t *mcp_api(const struct question *q, answer_fn *fn, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ANSWER_BYTES);
	struct json_writer w = json_writer_to_buf(&b);

	return fn(q, &w, reterr) < 0 ? NULL : mcp_tree(&w);
}

static json_t *value_json(const struct row_field *f, const struct row_value *v)
{
	switch (v->type) {
	case ROW_REAL:
		return f->form == ROW_US ? mcp_us(v->d * (double)NS_PER_US) : json_real(v->d);
	case ROW_BOOL: return json_boolean(v->u);
	case ROW_TEXT: return v->s ? mcp_clean_string(v->s, MCP_CLEAN_NAME) : json_null();
	default: return json_integer((json_int_t)v->i);
	}
}

json_t *mcp_row(const struct row_field *f, const void *row, uint32_t leave_out)
{
	json_t *out = json_object();
	struct row_value v;

	for (; f->key; f++)
		if (row_get(f, row, leave_out, &v))
			json_object_set_new(out, f->key, value_json(f, &v));
	return out;
}

void mcp_reply_value(struct answer *a, json_t *value)
{
	_cleanup_buf_ struct buf text = BUF_INIT(2 * TEXT_MAX_BYTES);
	_cleanup_free_ char *json = value ? json_dumps(value, RPC_DUMP) : NULL;

	json_decref(value);
	if (json)
		mcp_clean_block(&text, json);
	if (!json)
		answer_fail(a, "not enough memory for the answer");
	else if (text.err)
		answer_fail(
			a, "the answer is too large: give a shorter `since`, a `pid` or a `limit`");
	else
		answer_text(a, buf_str(&text));
}

void mcp_reply(struct answer *a, const json_t *arguments, json_t *full)
{
	json_t *compact;

	if (!full || !mcp_arg_compact(arguments)) {
		mcp_reply_value(a, full);
		return;
	}
	compact = mcp_tsc_pack(full);
	json_decref(full);
	mcp_reply_value(a, compact);
}

void mcp_reply_error(struct answer *a, int err, const struct errinfo *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2048);

	mcp_clean_put(&b, e->text, strlen(e->text), sizeof(e->text), false);
	answer_fail(a, "%s", b.len ? buf_str(&b) : strerror(-err));
}
