/* SPDX-License-Identifier: Apache-2.0 */
/* echo_server.c - see echo_server.h: routes, what the server says of itself, its life. To add a question: a row
 * in tool_table.c. */
#include "cluster/answer/echo_server.h"

#include "base/text.h"
#include "cluster/answer/echo_private.h"
#include "cluster/answer/tool_private.h"
#include "config.h"
#include "json/tree.h"
#include "mcp/rpc.h"
#include "prometheus/prometheus.h"

#define TOOL_THREADS 4
#define SQL_THREADS  2
#define MCP_THREADS  4
#define QUEUE_MAX    64
#define METRIC_BYTES (4u << 20)
#define MADE_BYTES   (1u << 20) /* of the list of tools and the description */
#define WHY_MAX      256

/* ---- versions and health ---- */

/* Only major and minor: who has no token learns no patch level. */
static void short_version(char *out, size_t size)
{
	const char *first = strchr(INGERO_VERSION, '.');
	const char *second = first ? strchr(first + 1, '.') : NULL;

	snprintf(out, size, "%.*s",
		second ? (int)(second - INGERO_VERSION) : (int)strlen(INGERO_VERSION),
		INGERO_VERSION);
}

static void on_versions(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	_cleanup_json_ json_t *doc = NULL;
	char version[32];

	if (!source_limit_take(e->source_limit, q->peer, mono_now().ns)) {
		http_reply_field(x, "retry-after", "1");
		echo_reply_error(x, 429, "rate_limited", "too many requests from this address");
		return;
	}
	short_version(version, sizeof(version));
	doc = json_pack("{s:[s], s:[], s:s, s:{s:s, s:s}, s:[s,s,s,s], s:{s:s}}", "supported", "v2",
		"deprecated", "preferred", "v2", "binary", "component", "ingero-echo", "version",
		version, "capabilities", "tools", "sql", "mcp", "openapi", "removal_schedule", "v1",
		"removed");
	if (!doc || json_tree_write(doc, RPC_DUMP, &b) < 0)
		echo_reply_error(x, 503, "busy", "out of memory for this reply");
	else
		http_reply(x, 200, NULL, buf_str(&b), b.len);
}

static bool is_well(struct echo_server *e, char why[WHY_MAX])
{
	why[0] = 0;
	if (e->is_stopping)
		snprintf(why, WHY_MAX, "the service is shutting down");
	else if (!e->ready)
		snprintf(why, WHY_MAX, "the service is starting");
	else if (e->settings.is_well && !e->settings.is_well(e->settings.arg, why, WHY_MAX) &&
		 !why[0])
		snprintf(why, WHY_MAX, "a part of the service has failed");
	return !why[0];
}

static json_t *store_json(struct echo_server *e)
{
	struct store_stats s = {0};
	json_t *rows = json_object();

	e->settings.store->ops->stats(e->settings.store, &s);
	for (int t = 0; t < TABLE_COUNT; t++)
		json_object_set_new(
			rows, store_tables[t].name, json_integer((json_int_t)s.rows[t]));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:f}", "rows", rows,
		"bytes", (json_int_t)s.bytes, "parts", (json_int_t)s.parts, "visible",
		(json_int_t)s.visible, "durable", (json_int_t)s.durable, "dropped_rows",
		(json_int_t)s.dropped_rows, "oldest", tool_time(s.oldest_ns), "fault",
		s.fault ? tool_json_text(s.fault_text) : json_null(), "checked_bytes",
		(json_int_t)s.checked_bytes, "missing", tool_missing_json(&s.missing),
		"clock_ahead_s", (double)s.ahead_ns / 1e9);
}

/* What is not as it should be, though questions are answered: false, and a sentence. */
static bool store_is_whole(struct echo_server *e, char why[WHY_MAX])
{
	struct store_stats s = {0};

	e->settings.store->ops->stats(e->settings.store, &s);
	if (s.missing.parts || s.missing.requests)
		snprintf(why, WHY_MAX,
			"%s and %s were stored and are damaged: `ingero-cluster echo verify` says which",
			TEXT_PLURAL(s.missing.rows, "rows"),
			TEXT_PLURAL(s.missing.requests, "requests"));
	else if (s.ahead_ns)
		snprintf(why, WHY_MAX,
			"retention is paused: the clock has jumped ahead by %s; it is trusted after a day, or with --trust-clock",
			TEXT_DURATION((uint64_t)s.ahead_ns));
	return !s.missing.parts && !s.missing.requests && !s.ahead_ns;
}

/* How much there is of all clusters, and what is wrong with which file, is not for a token that sees some. */
static void on_health(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	const struct tenant *t = NULL;
	struct store_missing missing;
	char why[WHY_MAX];
	json_t *data;
	bool is_good;

	if (!echo_admit(e, 0, x, q, &t))
		return;
	is_good = is_well(e, why) && store_is_whole(e, why);
	data = json_pack("{s:s, s:s, s:s, s:f}", "status", is_good ? "ok" : "degraded", "version",
		INGERO_VERSION, "engine", e->settings.store->ops->name, "uptime_s",
		(double)(wall_now().ns - e->started.ns) / 1e9);
	store_missing(e->settings.store,
		&(struct store_scope){.clusters = t->clusters, .cluster_count = t->cluster_count},
		&missing);
	json_object_set_new(data, "missing", tool_missing_json(&missing));
	if (!t->clusters) {
		json_object_set_new(data, "why", why[0] ? tool_json_text(why) : json_null());
		json_object_set_new(data, "store", store_json(e));
	}
	echo_reply_data(x, data);
}

static void on_alive(void *arg _unused_, struct http_exchange *x, const struct http_request *q)
{
	static const char alive[] = "{\"status\":\"ok\"}\n";

	(void)q;
	http_reply(x, 200, NULL, alive, strlen(alive));
}

static void on_ready(void *arg, struct http_exchange *x, const struct http_request *q)
{
	char why[WHY_MAX];
	bool good = is_well(arg, why);
	/* Whoever asks for health, and not whether to send, hears of rows that are missing, too. */
	bool whole = good && (strcmp(q->path, "/healthz") != 0 || store_is_whole(arg, why));
	const char *text = !good   ? "{\"status\":\"not ready\"}\n"
			   : whole ? "{\"status\":\"ok\"}\n"
				   : "{\"status\":\"degraded\"}\n";

	http_reply(x, good ? 200 : 503, NULL, text, strlen(text));
}

/* ---- metrics ---- */

static const struct metric_desc tool_duration = {.prometheus = "ingero_echo_tool_duration_seconds",
	.unit = "s",
	.kind = METRIC_HISTOGRAM,
	.unit_ns = 1e9,
	.help = "Duration of tool calls",
	.keys = {METRIC_LABEL("tool")}};
METRIC_ROW(tool_failures, COUNTER, false, "ingero_echo_tool_failures_total", "{call}",
	"Failed tool calls", METRIC_LABEL("tool"));
METRIC_ROW(denied_requests, COUNTER, false, "ingero_echo_denied_total", "{request}",
	"Requests denied because the token lacks the permission");
METRIC_ROW(limited_requests, COUNTER, false, "ingero_echo_rate_limited_total", "{request}",
	"Requests over the rate limit of their token");
METRIC_ROW(store_rows, GAUGE, false, "ingero_echo_store_rows", "{row}", "Stored rows",
	METRIC_LABEL("table"));
METRIC_ROW(store_bytes, GAUGE, false, "ingero_echo_store_bytes", "By", "Bytes on disk");
METRIC_ROW(store_parts, GAUGE, false, "ingero_echo_store_parts", "{part}", "Parts of the store");
METRIC_ROW(store_fault, GAUGE, false, "ingero_echo_store_fault", "1",
	"1 while the store cannot be written");
METRIC_ROW(missing_rows, GAUGE, false, "ingero_echo_missing_rows", "{row}",
	"Stored rows that are damaged");
METRIC_ROW(missing_requests, GAUGE, false, "ingero_echo_missing_requests", "{request}",
	"Requests that were acknowledged and that the journal has lost");
METRIC_ROW(checked_bytes, COUNTER, false, "ingero_echo_store_checked_bytes_total", "By",
	"Bytes of the store that were read again and compared with their checksums");
METRIC_ROW(clock_ahead, GAUGE, false, "ingero_echo_clock_ahead_seconds", "s",
	"Seconds by which the clock has jumped ahead while retention is paused");
METRIC_ROW(
	waiting, GAUGE, false, "ingero_echo_questions", "{question}", "Queries running or queued");

static void put_store(struct echo_server *e, struct metric_set *m)
{
	struct store_stats s = {0};

	e->settings.store->ops->stats(e->settings.store, &s);
	for (int t = 0; t < TABLE_COUNT; t++)
		metric_put_int(m, &store_rows, e->started, (int64_t)s.rows[t],
			METRIC_OF(METRIC_TEXT(store_tables[t].name)));
	metric_put_int(m, &store_bytes, e->started, (int64_t)s.bytes, NULL);
	metric_put_int(m, &store_parts, e->started, (int64_t)s.parts, NULL);
	metric_put_int(m, &store_fault, e->started, s.fault != 0, NULL);
	metric_put_int(m, &missing_rows, e->started, (int64_t)s.missing.rows, NULL);
	metric_put_int(m, &missing_requests, e->started, (int64_t)s.missing.requests, NULL);
	metric_put_int(m, &checked_bytes, e->started, (int64_t)s.checked_bytes, NULL);
	metric_put_int(m, &clock_ahead, e->started, s.ahead_ns / (int64_t)NS_PER_S, NULL);
}

static void put_metrics(struct echo_server *e, struct metric_set *m)
{
	size_t load = 0;

	for (int i = 0; i < ECHO_LANES; i++)
		load += pool_load(e->lanes[i]);
	metric_put_int(m, &waiting, e->started, (int64_t)load, NULL);
	metric_put_int(m, &denied_requests, e->started, (int64_t)e->denied, NULL);
	metric_put_int(m, &limited_requests, e->started, (int64_t)e->limited, NULL);
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->tool_count; i++) {
		const struct echo_tool *t = &e->tools[i];

		if (!t->calls)
			continue;
		metric_put_sketch(m, &tool_duration, e->started, &t->took,
			METRIC_OF(METRIC_TEXT(t->tool->name)));
		metric_put_int(m, &tool_failures, e->started, (int64_t)t->failed,
			METRIC_OF(METRIC_TEXT(t->tool->name)));
	}
	pthread_mutex_unlock(&e->lock);
	put_store(e, m);
	if (e->settings.metrics)
		e->settings.metrics(e->settings.arg, m);
}

static void on_metrics(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_server *e = arg;
	_cleanup_(metric_set_freep) struct metric_set *m = metric_set_new(wall_now());
	_cleanup_buf_ struct buf b = BUF_INIT(METRIC_BYTES);
	const struct tenant *t = NULL;

	if (!echo_admit(e, TENANT_READ, x, q, &t))
		return;
	if (t->clusters) {
		echo_reply_error(x, 403, "tenant_scoped_bearer_refused",
			"metrics cover all clusters: use a token that may see all of them");
		return;
	}
	if (m) {
		put_metrics(e, m);
		prometheus_text(&b, m);
	}
	if (!m || b.err)
		echo_reply_error(x, 503, "busy", "out of memory for this reply");
	else
		http_reply(x, 200, PROMETHEUS_TYPE, buf_str(&b), b.len);
}

/* ---- life ---- */

/* What is refused before a handler sees it is audited too. */
static void on_refused(
	void *arg, struct http_exchange *x _unused_, const struct http_request *q, int status)
{
	struct echo_server *e = arg;

	if (status == 401 || status == 403)
		echo_audit_refusal(e, q, "", status, &e->strangers);
}

/* Refusals under /api/v2 have the envelope, too. */
static bool put_refusal(struct buf *b, const char *path, int status, const char *text)
{
	static const struct {
		int status;
		const char *code;
	} codes[] = {{401, "unauthorized"}, {403, "forbidden"}, {404, "not_found"},
		{405, "method_not_allowed"}, {413, "too_large"}, {429, "rate_limited"},
		{503, "busy"}};
	const char *code = "bad_request";

	if (strncmp(path, "/api/v2/", 8) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].status == status)
			code = codes[i].code;
	echo_put_error(b, code, text);
	return true;
}

static const struct http_route fixed[] = {
	{"POST", "/mcp", echo_on_mcp, .body_max = RPC_BYTES_MAX},
	{"GET", "/mcp", .handler = echo_on_mcp},
	{"DELETE", "/mcp", .handler = echo_on_mcp},
	{"GET", "/api/v2/tools/list", .handler = echo_on_list},
	{"POST", "/api/v2/tools/", echo_on_tool, .body_max = ECHO_BODY_MAX},
	{"GET", "/api/v2/tools/", .handler = echo_on_tool},
	{"POST", "/api/v2/sql", echo_on_sql, .body_max = ECHO_BODY_MAX},
	{"GET", "/api/v2/openapi.json", .handler = echo_on_openapi},
	{"GET", "/api/v2/health", .handler = on_health},
	{"GET", "/api/v2/whoami", .handler = echo_on_whoami},
	{"GET", "/api/v2/", .handler = echo_on_unknown},
	{"POST", "/api/v2/", .handler = echo_on_unknown},
	{"GET", "/metrics", .handler = on_metrics},
	{"GET", "/api/versions", on_versions, .open = true},
	{"GET", "/livez", on_alive, .open = true},
	{"GET", "/readyz", on_ready, .open = true},
	{"GET", "/healthz", on_ready, .open = true},
};
static const struct http_route gone[] = {
	{"GET", "/api/v1/", echo_on_unknown, .open = true},
	{"POST", "/api/v1/", echo_on_unknown, .open = true},
};

static struct http_route *make_routes(const struct http_route *more, bool v1)
{
	size_t n = ARRAY_SIZE(fixed) + ARRAY_SIZE(gone), count = 0;
	struct http_route *routes;

	for (const struct http_route *r = more; r && r->method; r++)
		n++;
	routes = calloc(n + 1, sizeof(*routes));
	if (!routes)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		routes[count++] = fixed[i];
	for (size_t i = 0; i < ARRAY_SIZE(gone) && !v1; i++)
		routes[count++] = gone[i];
	for (; more && more->method; more++)
		routes[count++] = *more;
	return routes;
}

static int load_tools(struct echo_server *e, struct errinfo *reterr)
{
	for (const struct tool *t = cluster_tools; t->name; t++) {
		struct echo_tool *x = &e->tools[e->tool_count];

		if (e->tool_count == ECHO_TOOLS_MAX)
			return errinfo_set(reterr, -ENOBUFS, "%s: too many tools", t->name);
		x->input = param_schema(tool_params, t->params, t->needs, false);
		if (!x->input)
			return -ENOMEM;
		x->tool = t;
		e->tool_count++;
	}
	return 0;
}

/* The list of tools as MCP has it, in the envelope. */
static int make_list(struct echo_server *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->tool_count; i++) {
		const struct tool *t = e->tools[i].tool;

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:O, s:o}", "name", t->name, "title", t->title,
				"description", t->description, "inputSchema", e->tools[i].input,
				"outputSchema", json_loads(t->output, 0, NULL)));
	}
	e->tools_list = BUF_INIT(MADE_BYTES);
	echo_put_data(&e->tools_list, json_pack("{s:o}", "tools", list), NULL);
	return e->tools_list.err;
}

static int start_lanes(struct echo_server *e)
{
	static const struct pool_settings lanes[ECHO_LANES] = {
		[ECHO_TOOLS] = {.threads = TOOL_THREADS, .queue_max = QUEUE_MAX},
		[ECHO_SQL] = {.threads = SQL_THREADS, .queue_max = QUEUE_MAX, .leaves_room = true},
		[ECHO_MCP] = {.threads = MCP_THREADS, .queue_max = QUEUE_MAX, .leaves_room = true},
	};
	int r = 0;

	for (int i = 0; r == 0 && i < ECHO_LANES; i++)
		r = pool_new(&lanes[i], &e->lanes[i]);
	return r;
}

static int prepare(struct echo_server *e, struct errinfo *reterr)
{
	int r = pthread_mutex_init(&e->lock, NULL);

	e->has_lock = r == 0;
	if (r > 0)
		return -r;
	r = load_tools(e, reterr);
	r = r ?: make_list(e);
	e->openapi = BUF_INIT(MADE_BYTES);
	r = r ?: openapi_write(e, &e->openapi);
	r = r ?: echo_mcp_init(e, reterr);
	r = r ?: source_limit_new(&e->source_limit);
	return r ?: start_lanes(e);
}

int echo_server_new(struct loop *l, const struct echo_server_settings *s, struct echo_server **ret,
	struct errinfo *reterr)
{
	_cleanup_(echo_server_freep) struct echo_server *e = calloc(1, sizeof(*e));
	_cleanup_free_ struct http_route *routes = make_routes(s->routes, s->v1);
	struct http_server_settings http = s->http;
	int r;

	if (!e || !routes)
		return -ENOMEM;
	e->settings = *s;
	e->loop = l;
	e->started = wall_now();
	r = prepare(e, reterr);
	if (r < 0)
		return r;
	http.routes = routes;
	http.arg = e;
	http.refused = on_refused;
	http.error_body = put_refusal;
	r = http_server_new(l, &http, &e->http, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(e);
	return 0;
}

void echo_server_free(struct echo_server *e)
{
	http_server_freep(&e->http);
	for (int i = 0; i < ECHO_LANES; i++)
		pool_freep(&e->lanes[i]);
	dispatcher_freep(&e->dispatcher);
	source_limit_freep(&e->source_limit);
	for (size_t i = 0; i < e->tool_count; i++)
		json_decref(e->tools[i].input);
	if (e->has_lock)
		pthread_mutex_destroy(&e->lock);
	buf_done(&e->tools_list);
	buf_done(&e->openapi);
	free(e);
}

const char *echo_server_address(const struct echo_server *e)
{
	return http_server_address(e->http);
}

void echo_server_set_ready(struct echo_server *e, bool ready)
{
	e->ready = ready;
}

void echo_server_stop_taking(struct echo_server *e)
{
	e->is_stopping = true;
}

void echo_server_drain(struct echo_server *e, loop_fn *done, void *arg)
{
	e->is_stopping = true;
	http_server_drain(e->http, done, arg);
}
