/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - see tell.h: which time is meant, and what all answers share.
 *
 * Times are relative to the end of the recording, so that a saved file answers as it did then;
 * while somebody writes it, to now, so that a workload that has stopped shows as stopped. */
#include "agent/answer/tell.h"

#include <errno.h>

#include "agent/store/lock.h"
#include "base/text.h"
#include "base/when.h"

struct telling {
	const struct tell_wish *wish;
	tell_fn *fn;
	uint64_t default_ns;
	struct buf made;
};

static int parse_time(const char *name, const char *text, const struct nodedb_range *range,
	bool end, int64_t *ret_ns, struct errinfo *reterr)
{
	struct when_span span = {range->first_ns, range->last_ns};
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	if (!text[0] || when_parse(text, &span, end, ret_ns) == 0)
		return 0;
	text_escape_terminal(&b, text);
	return errinfo_set(reterr, -EINVAL,
		"%s: '%.100s' is not a time: give 2026-03-24T13:48:44Z, a time of day, or seconds, "
		"ms or ns since 1970",
		name, buf_str(&b));
}

static int find_time(struct tell *t, uint64_t default_ns, struct errinfo *reterr)
{
	const struct tell_wish *w = t->wish;
	int64_t from = 0, to = 0, end = t->live ? wall_now().ns : t->range.last_ns;
	uint64_t since = w->since_ns;
	int r = parse_time("from", w->from, &t->range, false, &from, reterr);

	if (r == 0)
		r = parse_time("to", w->to, &t->range, true, &to, reterr);
	if (r < 0)
		return r;
	if (to && from > to)
		return errinfo_set(reterr, -EINVAL, "from is after to");
	t->by_default = !w->from[0] && !w->to[0] && !w->since_ns && !w->all;
	if (t->by_default)
		since = default_ns ? default_ns : t->live ? TELL_DEFAULT_NS : 0;
	end = MAX(end, t->range.last_ns);
	t->scope.to_ns = to ? to : end;
	t->scope.from_ns = from ? from : w->to[0] && !since ? t->range.first_ns : 0;
	if (!from && since && end)
		t->scope.from_ns = MAX(
			t->scope.to_ns - (int64_t)MIN(since, (uint64_t)INT64_MAX / 2), INT64_C(1));
	/* What is asked for and not there would only be empty space. */
	if (!from)
		t->scope.from_ns = MAX(t->scope.from_ns, MIN(t->range.first_ns, t->scope.to_ns));
	return 0;
}

/* The wished node must be there; without a wish the first one gives the recording its name. */
static int find_node(struct tell *t, const struct sql_table *nodes, struct errinfo *reterr)
{
	t->node = nodes->row_count ? tell_text(nodes, 0, 0) : "";
	if (!t->wish->node[0])
		return 0;
	for (size_t i = 0; i < nodes->row_count; i++)
		if (!strcmp(tell_text(nodes, i, 0), t->wish->node)) {
			t->scope.node = t->wish->node;
			return 0;
		}
	return errinfo_set(
		reterr, -ESRCH, "the recording has no such node: /api/v1/nodes lists them");
}

static int look(struct nodedb_look *l, void *arg, struct errinfo *reterr)
{
	struct telling *telling = arg;
	_cleanup_(sql_table_done) struct sql_table nodes = {0};
	struct json_writer w;
	struct tell t = {.look = l,
		.wish = telling->wish,
		.scope = {.pids = telling->wish->pids,
			.pid_count = telling->wish->pid_count,
			.source = telling->wish->source,
			.op = telling->wish->op},
		.live = store_lock_holder(nodedb_look_path(l)) != 0};
	int r = nodedb_look_range(l, &t.range, reterr);

	buf_done(&telling->made); /* of a first try */
	telling->made = BUF_INIT(TELL_BYTES);
	w = json_writer_to_buf(&telling->made);
	if (r == 0)
		r = nodedb_look_list(
			l, NODEDB_NODES, &(struct nodedb_scope){.limit = 1024}, &nodes, reterr);
	if (r == 0)
		r = find_node(&t, &nodes, reterr);
	if (r == 0)
		r = find_time(&t, telling->default_ns, reterr);
	if (r == 0)
		r = telling->fn(&t, &w, reterr);
	if (r < 0)
		return r;
	r = json_finish(&w);
	if (r == -ENOBUFS)
		return errinfo_set(reterr, -EMSGSIZE,
			"the answer is larger than %u MiB: ask for a shorter time or a smaller "
			"limit",
			TELL_BYTES >> 20);
	return r;
}

int tell_run(const char *path, const struct tell_wish *wish, tell_fn *fn, uint64_t default_ns,
	struct buf *out, struct errinfo *reterr)
{
	struct telling telling = {.wish = wish, .fn = fn, .default_ns = default_ns};
	int r = nodedb_look(path, look, &telling, reterr);

	if (r == 0)
		buf_append(out, buf_str(&telling.made), telling.made.len);
	buf_done(&telling.made);
	return r == 0 ? out->err : r;
}

size_t tell_limit(size_t wish, size_t otherwise, size_t max)
{
	return MIN(wish ? wish : otherwise, max);
}

void tell_bool(struct json_writer *w, const char *key, bool v)
{
	json_key(w, key);
	json_put_bool(w, v);
}

void tell_us(struct json_writer *w, const char *key, double ns)
{
	json_double_member(w, key, ns / (double)NS_PER_US);
}

void tell_window(const struct tell *t, struct json_writer *w)
{
	json_key(w, "window");
	json_begin_object(w);
	json_int_member(w, "from_ns", t->scope.from_ns);
	json_int_member(w, "to_ns", t->scope.to_ns);
	tell_bool(w, "live", t->live);
	tell_bool(w, "default", t->by_default);
	json_end_object(w);
}

/* ---- lists ---- */

int tell_column(const struct sql_table *t, const char *name)
{
	for (int i = 0; i < t->column_count; i++)
		if (!strcmp(sql_table_name(t, i), name))
			return i;
	return -1;
}

int64_t tell_int(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = column < 0 ? NULL : sql_table_cell(t, row, column);

	return !c ? 0 : c->type == SQL_INT ? c->i : 0;
}

double tell_real(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = column < 0 ? NULL : sql_table_cell(t, row, column);

	return !c ? 0 : c->type == SQL_REAL ? c->d : c->type == SQL_INT ? (double)c->i : 0;
}

const char *tell_text(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = column < 0 ? NULL : sql_table_cell(t, row, column);

	return c && c->type == SQL_TEXT ? sql_table_bytes(t, c) : "";
}

void tell_cell(struct json_writer *w, const struct sql_table *t, size_t row, int column)
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

void tell_rows(struct json_writer *w, const char *key, const struct sql_table *t)
{
	json_key(w, key);
	json_begin_array(w);
	for (size_t i = 0; i < t->row_count; i++) {
		json_begin_object(w);
		for (int c = 0; c < t->column_count; c++) {
			json_key(w, sql_table_name(t, c));
			tell_cell(w, t, i, c);
		}
		json_end_object(w);
	}
	json_end_array(w);
}
