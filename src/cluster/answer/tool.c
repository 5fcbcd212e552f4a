/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - see tool_private.h. What a call may see is decided in tool_scope_init() and nowhere else. */
#include "cluster/answer/tool.h"

#include <math.h>

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

static json_int_t tool_arg_int(const struct tool_call *c, const char *key, json_int_t otherwise)
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

size_t tool_limit(const struct tool_call *c, size_t otherwise)
{
	return (size_t)tool_arg_int(c, "limit", (json_int_t)otherwise);
}

/* "15m" ago, or a moment. */
static int read_time(const struct tool_call *c, const char *key, int64_t *ret)
{
	const char *text = tool_arg_text(c, key);
	struct when_span today = {c->now_ns, c->now_ns};
	uint64_t ago;

	if (!text)
		return 0;
	if (text_parse_duration(text, &ago) == 0)
		*ret = ago && ago < (uint64_t)c->now_ns ? c->now_ns - (int64_t)ago : 0;
	else if (when_parse(text, &today, false, ret) < 0)
		return errinfo_set(c->err, -EINVAL,
			"%s: give a duration such as 15m, 2h or 7d, or a time such as "
			"2026-03-24T13:48:00Z",
			key);
	return 0;
}

static int read_scope(struct tool_call *c, int64_t since_ns)
{
	const char *cluster = tool_arg_text(c, "cluster_id");
	struct store_scope *s = &c->scope;
	int r;

	*s = (struct store_scope){.since_ns = since_ns ? c->now_ns - since_ns : 0};
	if (c->tenant) {
		s->clusters = c->tenant->clusters;
		s->cluster_count = c->tenant->cluster_count;
	}
	c->cluster = cluster;
	if (cluster) {
		if (c->tenant && !tenant_may_see(c->tenant, cluster, strlen(cluster)))
			return errinfo_set(c->err, -EACCES,
				"this token may not see that cluster: whoami lists its clusters");
		s->clusters = &c->cluster;
		s->cluster_count = 1;
	}
	r = read_time(c, "since", &s->since_ns);
	r = r ?: read_time(c, "until", &s->until_ns);
	if (r == 0 && s->until_ns && s->until_ns <= s->since_ns)
		return errinfo_set(c->err, -EINVAL, "until must be after since");
	return r;
}

static json_t *window_json(const struct tool_call *c)
{
	const struct store_scope *s = &c->scope;

	return json_pack("{s:o, s:o, s:o*}", "since", tool_time(s->since_ns), "until",
		tool_time(s->until_ns ? s->until_ns : c->now_ns), "cluster_id",
		c->cluster ? tool_json_text(c->cluster) : NULL);
}

int tool_run(const struct tool *t, const struct tool_call *asked, json_t **ret,
	struct buf *ret_text, struct errinfo *reterr)
{
	struct tool_call c = *asked;
	int r;

	c.answer = json_object();
	c.text = ret_text;
	c.err = reterr;
	r = read_scope(&c, t->minutes * TOOL_MINUTE_NS);
	if (r == 0 && t->minutes)
		r = tool_put(&c, "{s:o}", "window", window_json(&c));
	r = r ?: t->run(&c);
	if (r < 0)
		json_decref(c.answer);
	else
		*ret = c.answer;
	return r;
}

int tool_put(struct tool_call *c, const char *fmt, ...)
{
	va_list ap;
	json_t *o;

	va_start(ap, fmt);
	o = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	return json_object_update_new(c->answer, o) < 0 ? -ENOMEM : 0;
}

/* ---- asking ---- */

int tool_limit_time(const struct tool_call *c, struct store_limits *limits)
{
	uint64_t waited = c->came.ns ? mono_now().ns - c->came.ns : 0;

	if (waited >= limits->timeout_ns)
		return errinfo_set(c->err, -ETIMEDOUT,
			"the query took longer than %llu ms, queueing included: narrow it, or retry later",
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
	if (!m->parts && !m->requests)
		return;
	json_object_set_new(answer, "missing", tool_missing_json(m));
	buf_printf(text, "%sIncomplete: ", text->len ? " " : "");
	if (m->parts)
		buf_puts(text, TEXT_PLURAL(m->rows, "rows"));
	if (m->requests)
		buf_printf(text, "%s%s", m->parts ? " and " : "",
			TEXT_PLURAL(m->requests, "requests"));
	buf_puts(text, " of this time range are damaged and missing from the answer.");
}

/* " AND column = 'value'" of each of @columns that is an argument. */
static void put_given(struct buf *b, const struct tool_call *c, const char *columns)
{
	char column[64];
	int len = 0;

	for (; columns && sscanf(columns, "%63s%n", column, &len) == 1; columns += len) {
		const char *value = tool_arg_text(c, column);

		if (!value)
			continue;
		buf_printf(b, " AND %s = ", column);
		store_quote(b, value);
	}
}

int tool_ask(const struct tool_call *c, const struct tool_question *q, struct sql_table *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(TOOL_QUESTION);
	struct store_scope scope = q->scope ? *q->scope : c->scope;
	struct store_limits left = q->limits ? *q->limits : STORE_LIMITS;
	int r;

	if (q->from_minute)
		scope.since_ns -= scope.since_ns % TOOL_MINUTE_NS;
	buf_puts(&b, q->select);
	if (q->metric) {
		buf_puts(&b, " metric_name = ");
		store_quote(&b, q->metric);
	}
	put_given(&b, c, q->given);
	buf_puts(&b, q->then ? q->then : "");
	if (q->limit)
		buf_printf(&b, " LIMIT %zu", q->limit);
	if (b.err)
		return errinfo_set(c->err, b.err, "the query is too long: give shorter arguments");
	r = tool_limit_time(c, &left);
	r = r ?: store_select(c->store, &scope, buf_str(&b), &left, ret, c->err);
	if (r == 0)
		tool_note_missing(c, &scope);
	return r;
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
