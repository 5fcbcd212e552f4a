/* SPDX-License-Identifier: Apache-2.0 */
/* echo_api.c - /api/v2: every reply is the envelope {"ok", "data" or "error"}. Arguments of a tool are the
 * body of a POST, or the query of a GET, read as the tool's schema says. */

#include "base/text.h"
#include "cluster/answer/echo_private.h"
#include "cluster/answer/tool_private.h"
#include "json/tree.h"
#include "mcp/rpc.h"
#include "mcp/registry.h"

#define TOOLS_PATH "/api/v2/tools/"
#define VALUE_MAX  8192 /* bytes of a parameter */
#define NAME_SHOWN 64

/* ---- the envelope ---- */

struct echo_failure echo_failure_of(int err)
{
	switch (err) {
	case -EINVAL: return (struct echo_failure){400, "bad_request"};
	case -EACCES: return (struct echo_failure){403, "tenant_scoped_bearer_refused"};
	case -EPERM: return (struct echo_failure){403, "sql_refused"};
	case -ETIMEDOUT: return (struct echo_failure){408, "timeout"};
	case -E2BIG:
	case -ENOBUFS: return (struct echo_failure){413, "too_large"};
	case -ENOSPC: return (struct echo_failure){503, "disk_full"};
	case -EBUSY:
	case -EAGAIN:
	case -ENOMEM: return (struct echo_failure){503, "busy"};
	default: return (struct echo_failure){500, "internal"};
	}
}

void echo_put_data(struct buf *b, json_t *data, const char *text)
{
	json_t *e = json_pack("{s:b, s:o, s:o*}", "ok", 1, "data", data, "text",
		text && text[0] ? tool_json_text(text) : NULL);

	if (!e)
		b->err = -ENOMEM;
	else
		json_tree_write(e, RPC_DUMP, b);
	json_decref(e);
}

void echo_put_error(struct buf *b, const char *code, const char *message)
{
	json_t *e = json_pack("{s:b, s:{s:s, s:o}}", "ok", 0, "error", "code", code, "message",
		tool_json_text(message));

	if (!e)
		b->err = -ENOMEM;
	else
		json_tree_write(e, RPC_DUMP, b);
	json_decref(e);
}

void echo_reply_data(struct http_exchange *x, json_t *data)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ECHO_REPLY_MAX);

	echo_put_data(&b, data, NULL);
	if (b.err)
		http_reply_error(x, 503, "out of memory for this reply");
	else
		http_reply(x, 200, NULL, buf_str(&b), b.len);
}

void echo_reply_error(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	echo_put_error(&b, code, text);
	http_reply(x, status, NULL, buf_str(&b), b.len);
}

/* ---- arguments ---- */

static json_t *read_value(const char *text, const struct param *p)
{
	char *end;
	json_t *v = NULL;

	if (p->type == PARAM_INTEGER) {
		long long i = strtoll(text, &end, 10);

		v = *text && !*end ? json_integer(i) : NULL;
	} else if (p->type == PARAM_NUMBER) {
		double d = strtod(text, &end);

		v = *text && !*end ? json_real(d) : NULL;
	}
	return v ? v : tool_json_text(text); /* what is no number is said by the schema's check */
}

/* The parameter of this name; NULL: the tool takes none. */
static const struct param *find_param(const struct tool *t, const char *name, size_t len)
{
	for (const struct param *p = tool_params; p->name; p++)
		if (p->bit & t->params &&
			((strlen(p->name) == len && !strncmp(p->name, name, len)) ||
				(p->alias && strlen(p->alias) == len &&
					!strncmp(p->alias, name, len))))
			return p;
	return NULL;
}

/* One "name=value" of @pair. */
static int read_pair(
	const struct tool *t, const char *pair, size_t len, json_t *o, struct errinfo *reterr)
{
	size_t name_len = MIN(strcspn(pair, "="), len);
	const struct param *p = find_param(t, pair, name_len);
	_cleanup_free_ char *text = malloc(VALUE_MAX), *one = strndup(pair, len);
	char name[NAME_SHOWN + 1];
	bool found = false;

	if (!text || !one)
		return -ENOMEM;
	if (!p) {
		_cleanup_buf_ struct buf known = BUF_INIT(512), shown = BUF_INIT(512);

		for (p = tool_params; p->name; p++)
			if (p->bit & t->params)
				buf_printf(&known, "%s%s", known.len ? ", " : "", p->name);
		text_escape_terminal_len(&shown, pair, MIN(name_len, (size_t)NAME_SHOWN));
		return errinfo_set(reterr, -EINVAL, "%s: unknown parameter; valid: %s",
			buf_str(&shown), buf_str(&known));
	}
	snprintf(name, sizeof(name), "%.*s", (int)name_len, pair);
	if (http_query_get(one, name, text, VALUE_MAX, &found) < 0 || !found)
		return errinfo_set(reterr, -EINVAL, "%s: too long, or invalid encoding", p->name);
	if (json_object_get(o, p->name))
		return errinfo_set(reterr, -EINVAL, "%s: given twice", p->name);
	return json_object_set_new(o, p->name, read_value(text, p)) < 0 ? -ENOMEM : 0;
}

static int read_query(
	const struct echo_tool *t, const char *query, json_t **ret, struct errinfo *reterr)
{
	json_t *o = json_object();
	int r = o ? 0 : -ENOMEM;

	while (r == 0 && *query) {
		size_t len = strcspn(query, "&");

		if (len)
			r = read_pair(t->tool, query, len, o, reterr);
		query += len + (query[len] == '&');
	}
	if (r < 0) {
		json_decref(o);
		return r;
	}
	*ret = o;
	return 0;
}

static int read_arguments(const struct echo_call *c, json_t **ret, struct errinfo *reterr)
{
	const struct http_request *q = c->q;
	json_error_t why;
	int r;

	if (strcmp(q->method, "POST") != 0)
		return read_query(c->tool, q->query, ret, reterr);
	if (!q->body_len) {
		*ret = json_object();
		return *ret ? 0 : -ENOMEM;
	}
	r = json_tree_read(q->body, q->body_len, JSON_REJECT_DUPLICATES, ret, &why);
	if (r == -EINVAL)
		errinfo_set(reterr, r, "the body is not JSON: %s", why.text);
	return r;
}

/* By their names, also where aliases were given. */
static int check_arguments(const struct echo_call *c, json_t **arguments, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf why = BUF_INIT(SCHEMA_CHECK_SENTENCE);
	json_t *named = json_is_object(*arguments)
				? param_arguments(tool_params, c->tool->tool->params, *arguments)
				: json_incref(*arguments);

	if (!named)
		return -ENOMEM;
	json_decref(*arguments);
	*arguments = named;
	if (schema_check(c->tool->input, named, &why) == 0)
		return 0;
	return errinfo_set(reterr, -EINVAL, "%s", buf_str(&why));
}

/* ---- tools ---- */

/* On a thread. */
static void run_tool(struct echo_call *c)
{
	_cleanup_buf_ struct buf text = BUF_INIT(TOOL_SENTENCE);
	_cleanup_json_ json_t *arguments = NULL;
	json_t *data = NULL;
	struct echo_failure f;
	struct errinfo e = {0};
	int r = read_arguments(c, &arguments, &e);

	r = r ?: check_arguments(c, &arguments, &e);
	r = r ?: echo_call_ask(c, c->tool, arguments, &data, &text, &e);
	if (r == 0) {
		echo_put_data(&c->out, data, buf_str(&text));
		return;
	}
	f = echo_failure_of(r);
	c->status = f.status;
	c->again = f.status == 503;
	echo_put_error(&c->out, f.code, e.text[0] ? e.text : strerror(-r));
}

struct echo_tool *echo_tool_find(struct echo_server *e, const char *name)
{
	const struct tool *t = tool_find(name);

	return t ? &e->tools[t - cluster_tools] : NULL;
}

static void start(struct echo_server *e, struct echo_tool *t, struct http_exchange *x,
	const struct http_request *q)
{
	bool sql = t->tool->verb & TENANT_SQL;

	echo_call_start(e, sql ? ECHO_SQL : ECHO_TOOLS, t->tool->verb, t, run_tool, x, q);
}

void echo_on_tool(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	struct echo_tool *t = echo_tool_find(e, q->path + strlen(TOOLS_PATH));

	if (t)
		start(e, t, x, q);
	else
		echo_reply_error(x, 404, "not_found", "no such tool: see /api/v2/tools/list");
}

void echo_on_sql(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;

	start(e, echo_tool_find(e, "run_analysis"), x, q);
}

/* ---- what the server says of itself ---- */

static void reply_made(struct http_exchange *x, const struct buf *b)
{
	http_reply(x, 200, NULL, buf_str(b), b->len);
}

void echo_on_list(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	const struct tenant *t;

	if (echo_admit(e, TENANT_READ, x, q, &t))
		reply_made(x, &e->tools_list);
}

void echo_on_openapi(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	const struct tenant *t;

	if (echo_admit(e, 0, x, q, &t))
		reply_made(x, &e->openapi);
}

static json_t *verbs_json(unsigned verbs)
{
	static const struct {
		unsigned verb;
		const char *name;
	} rows[] = {
#define X(NAME, id, bit) {TENANT_##NAME, id},
		TENANT_VERBS(X)
#undef X
	};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (verbs & rows[i].verb)
			json_array_append_new(list, json_string(rows[i].name));
	return list;
}

static json_t *clusters_json(const struct tenant *t)
{
	json_t *list;

	if (!t->clusters)
		return json_null();
	list = json_array();
	for (size_t i = 0; i < t->cluster_count; i++)
		json_array_append_new(list, tool_json_text(t->clusters[i]));
	return list;
}

/* The key's name is for the audit alone. */
void echo_on_whoami(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	const struct tenant *t = NULL;

	if (!echo_admit(e, 0, x, q, &t))
		return;
	echo_reply_data(
		x, json_pack("{s:b, s:o, s:o, s:o}", "tenant_scoped", (int)(t->clusters != NULL),
			   "clusters", clusters_json(t), "verbs", verbs_json(t->verbs), "expires",
			   tool_time(t->expires_ns)));
}

void echo_on_unknown(void *arg _unused_, struct http_exchange *x, const struct http_request *q)
{
	if (!strncmp(q->path, "/api/v1/", 8))
		echo_reply_error(
			x, 410, "gone", "version 1 of the API was removed: see /api/versions");
	else
		echo_reply_error(x, 404, "not_found", "no such path: see /api/v2/openapi.json");
}
