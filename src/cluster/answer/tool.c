/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - see tool_private.h. What a call may see is decided in tool_scope_init() and nowhere else. */
#include "cluster/answer/tool.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/answer/tool_private.h"

/* As listed, with dots as they were called before, or by the last part: "fleet_cluster_blame", "blame". */
const struct tool *tool_find(const char *name)
{
	const struct tool *t = cluster_tools;

	while (t->name) {
		const char *last = t->name + strlen(TOOL_PREFIX);
		char dotted[TOOL_ID_MAX];

		snprintf(dotted, sizeof(dotted), TOOL_DOTTED "%s", last);
		if (!strcmp(t->name, name) || !strcmp(dotted, name) || !strcmp(last, name))
			return t;
		t++;
	}
	return NULL;
}

/* ---- arguments ---- */

json_int_t tool_arg_int(const struct tool_call *c, const char *key, json_int_t otherwise)
{
	const json_t *v = json_object_get(c->arguments, key);

	return json_is_number(v) ? (json_int_t)json_number_value(v) : otherwise;
}

double tool_arg_real(const struct tool_call *c, const char *key, double otherwise)
{
	const json_t *v = json_object_get(c->arguments, key);

	return json_is_number(v) ? json_number_value(v) : otherwise;
}

const char *tool_arg_text(const struct tool_call *c, const char *key)
{
	return json_string_value(json_object_get(c->arguments, key));
}

/* "15m" ago, or a moment. */
static int read_time(
	const struct tool_call *c, const char *key, int64_t *ret, struct errinfo *reterr)
{
	const char *text = tool_arg_text(c, key);
	struct when_span today = {c->now_ns, c->now_ns};
	uint64_t ago;

	if (!text)
		return 0;
	if (text_parse_duration(text, &ago) == 0)
		*ret = ago && ago < (uint64_t)c->now_ns ? c->now_ns - (int64_t)ago : 0;
	else if (when_parse(text, &today, false, ret) < 0)
		return errinfo_set(reterr, -EINVAL,
			"%s: give a duration such as 15m, 2h or 7d, or a time such as "
			"2026-03-24T13:48:00Z",
			key);
	return 0;
}

int tool_scope_init(
	struct tool_scope *s, const struct tool_call *c, int64_t since_ns, struct errinfo *reterr)
{
	const char *cluster = tool_arg_text(c, "cluster_id");
	int r;

	*s = (struct tool_scope){.store.since_ns = since_ns ? c->now_ns - since_ns : 0};
	if (c->tenant) {
		s->store.clusters = c->tenant->clusters;
		s->store.cluster_count = c->tenant->cluster_count;
	}
	if (cluster) {
		if (c->tenant && !tenant_may_see(c->tenant, cluster, strlen(cluster)))
			return errinfo_set(reterr, -EACCES,
				"this token may not see that cluster: whoami lists its clusters");
		s->cluster = cluster;
		s->store.clusters = &s->cluster;
		s->store.cluster_count = 1;
	}
	r = read_time(c, "since", &s->store.since_ns, reterr);
	if (r == 0)
		r = read_time(c, "until", &s->store.until_ns, reterr);
	if (r == 0 && s->store.until_ns && s->store.until_ns <= s->store.since_ns)
		return errinfo_set(reterr, -EINVAL, "until: it must be after since");
	return r;
}

struct store_scope tool_scope_minutes(const struct tool_scope *s)
{
	struct store_scope m = s->store;

	m.since_ns -= m.since_ns % TOOL_MINUTE_NS;
	return m;
}

json_t *tool_scope_json(const struct tool_scope *s, const struct tool_call *c)
{
	json_t *o = json_object();

	json_object_set_new(o, "since", tool_time(s->store.since_ns));
	json_object_set_new(
		o, "until", tool_time(s->store.until_ns ? s->store.until_ns : c->now_ns));
	if (s->cluster)
		json_object_set_new(o, "cluster_id", tool_json_text(s->cluster));
	return o;
}

/* ---- asking ---- */

int tool_limit_time(const struct tool_call *c, struct store_limits *limits, struct errinfo *reterr)
{
	uint64_t waited = c->came.ns ? mono_now().ns - c->came.ns : 0;

	if (waited >= limits->timeout_ns)
		return errinfo_set(reterr, -ETIMEDOUT,
			"the question waited and ran longer than %llu ms: ask for less, or later",
			(unsigned long long)(limits->timeout_ns / NS_PER_MS));
	limits->timeout_ns -= waited;
	return 0;
}

void tool_note_missing(const struct tool_call *c, const struct store_scope *scope)
{
	struct store_missing m;

	if (!c->missing)
		return;
	store_missing(c->store, scope, &m);
	if (m.rows > c->missing->rows || m.requests > c->missing->requests)
		*c->missing = m;
}

json_t *tool_missing_json(const struct store_missing *m)
{
	return json_pack("{s:I, s:I, s:I, s:o, s:o}", "rows", (json_int_t)m->rows, "parts",
		(json_int_t)m->parts, "requests", (json_int_t)m->requests, "since",
		tool_time(m->since_ns), "until", tool_time(m->until_ns));
}

void tool_put_missing(json_t *answer, const struct store_missing *m, struct buf *text)
{
	char rows[TEXT_PLURAL_MAX], requests[TEXT_PLURAL_MAX];

	if (!m->parts && !m->requests)
		return;
	json_object_set_new(answer, "missing", tool_missing_json(m));
	buf_printf(text, "%sIncomplete: ", text->len ? " " : "");
	if (m->parts)
		buf_puts(text, text_format_plural(rows, m->rows, "rows"));
	if (m->requests)
		buf_printf(text, "%s%s", m->parts ? " and " : "",
			text_format_plural(requests, m->requests, "requests"));
	buf_puts(text, " of this time were stored and are damaged: the answer lacks them.");
}

int tool_ask_limited(const struct tool_call *c, const struct store_scope *scope,
	struct buf *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr)
{
	struct store_limits left = *limits;
	int r = question->err;

	if (r < 0)
		errinfo_set(reterr, r, "the question is too long: give shorter arguments");
	else
		r = tool_limit_time(c, &left, reterr);
	if (r == 0)
		r = store_select(c->store, scope, buf_str(question), &left, ret, reterr);
	if (r == 0)
		tool_note_missing(c, scope);
	buf_done(question);
	return r;
}

int tool_ask(const struct tool_call *c, const struct store_scope *scope, struct buf *question,
	struct sql_table *ret, struct errinfo *reterr)
{
	return tool_ask_limited(c, scope, question, &STORE_LIMITS, ret, reterr);
}

void tool_equals(struct buf *question, const char *column, const char *value)
{
	buf_printf(question, "%s = ", column);
	store_quote(question, value);
}

void tool_where(struct buf *question, const struct tool_call *c, const char *const *columns)
{
	for (; *columns; columns++) {
		const char *value = tool_arg_text(c, *columns);

		if (!value)
			continue;
		buf_puts(question, " AND ");
		tool_equals(question, *columns, value);
	}
}

/* ---- rows ---- */

bool tool_is_null(const struct sql_table *t, size_t row, int column)
{
	return sql_table_cell(t, row, column)->type == SQL_NULL;
}

int64_t tool_int(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	if (c->type == SQL_REAL && fabs(c->d) < 9.2e18)
		return (int64_t)c->d;
	return c->type == SQL_INT ? c->i : 0;
}

double tool_real(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	if (c->type == SQL_INT)
		return (double)c->i;
	return c->type == SQL_REAL ? c->d : 0;
}

const char *tool_text(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	return c->type == SQL_TEXT ? sql_table_bytes(t, c) : "";
}

bool tool_same(const struct sql_table *t, size_t row, int column, const char *text)
{
	return !strcmp(tool_text(t, row, column), text);
}

static json_t *text_json(const char *text, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * len + 64);
	json_t *s = json_stringn(text, len);

	if (s)
		return s;
	text_escape_terminal_len(&b, text, len);
	return json_stringn(buf_str(&b), b.len);
}

json_t *tool_json_text(const char *text)
{
	return text_json(text, strlen(text));
}

json_t *tool_cell(const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);

	switch (c->type) {
	case SQL_INT: return json_integer((json_int_t)c->i);
	case SQL_REAL: return isfinite(c->d) ? json_real(c->d) : json_null();
	case SQL_TEXT:
	case SQL_BLOB: return text_json(sql_table_bytes(t, c), c->len);
	case SQL_NULL: break;
	}
	return json_null();
}

json_t *tool_row(const struct sql_table *t, size_t row, const char *const *keys)
{
	json_t *o = json_object();

	for (int i = 0; i < t->column_count && keys[i]; i++)
		if (!tool_is_null(t, row, i))
			json_object_set_new(o, keys[i], tool_cell(t, row, i));
	return o;
}

json_t *tool_rows(const struct sql_table *t, const char *const *keys)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < t->row_count; i++)
		json_array_append_new(rows, tool_row(t, i, keys));
	return rows;
}

json_t *tool_time(int64_t ns)
{
	char text[WHEN_UTC_MAX];

	return ns > 0 ? json_string(when_utc(text, (wall_time){ns})) : json_null();
}

void tool_say(struct buf *b, const char *name)
{
	text_escape_terminal_len(b, name, strnlen(name, TOOL_NODE_BYTES));
}

void tool_say_text(struct buf *b, const char *text)
{
	text_escape_terminal_len(b, text, strnlen(text, TOOL_TEXT_BYTES));
}

int tool_done(json_t *answer, json_t **ret)
{
	if (!answer)
		return -ENOMEM;
	*ret = answer;
	return 0;
}
