/* SPDX-License-Identifier: Apache-2.0 */
/* api_server.c - see api_server.h. To add an answer: its function (fleet_json.h), a row in
 * questions[], a row in docs/fleet.md. */
#include "cluster/answer/api_server.h"

#include "cluster/answer/fleet_json.h"
#include "prometheus/prometheus.h"
#include "web/web.h"

#define FLEET_JSON_BYTES_MAX (16u << 20) /* 10,000 nodes of about 700 bytes */
#define METRIC_BYTES         (16u << 20)

static const struct question {
	const char *path;
	fleet_json_fn *answer;
} questions[] = {
	{"/api/v1/threshold", fleet_json_threshold},
	{"/api/v1/blame", fleet_json_blame},
	{"/api/v1/episodes", fleet_json_episodes},
	{"/api/v1/nodes", fleet_json_nodes},
	{"/api/v1/ranks", fleet_json_ranks},
	{"/api/v1/jobs", fleet_json_jobs},
	{"/api/v1/collectives", fleet_json_collectives},
	{"/api/v1/heatmap", fleet_json_heatmap},
	{"/api/v1/hangs", fleet_json_hangs},
	{"/api/v1/mismatches", fleet_json_mismatches},
	{"/api/v1/cost", fleet_json_cost},
	{"/api/v1/clusters", fleet_json_clusters},
	{"/api/v1/version", fleet_json_version},
};

struct api_server {
	struct api_server_settings settings;
	struct http_server *http; /* NULL: the routes are another server's */
	struct http_route *routes;
	struct sketch took[ARRAY_SIZE(questions)]; /* by question */
	wall_time started;
	bool ready;
};

static const struct metric_desc request_duration = {
	.prometheus = "ingero_fleet_request_duration_seconds",
	.unit = "s",
	.kind = METRIC_HISTOGRAM,
	.unit_ns = 1e9,
	.help = "Duration of API requests",
	.keys = {{"path", "path"}}};

/* ---- what is asked ---- */

/* Texts, and numbers of a base, of which a member says whether they were given. */
#define MEMBER(member) offsetof(struct fleet_json_query, member)
static const struct parameter {
	const char *name;
	int base; /* 0: a text */
	size_t at, size, has;
} parameters[] = {
	{"cluster_id", 0, MEMBER(cluster), PUSH_ID_MAX, 0},
	{"cgroup_path_hash", 0, MEMBER(cohort), PUSH_ID_MAX, 0},
	{"comm", 16, MEMBER(comm), 0, MEMBER(has_comm)},
	{"seq", 10, MEMBER(seq), 0, MEMBER(has_seq)},
	{"node", 0, MEMBER(node), PUSH_ID_MAX, 0},
	{"rank", 10, MEMBER(rank), 0, MEMBER(has_rank)},
	{"after", 10, MEMBER(after), 0, MEMBER(has_after)},
	{"limit", 10, MEMBER(limit), 0, MEMBER(has_limit)},
};

static int get_parameter(const char *query, const struct parameter *p, struct fleet_json_query *ret,
	struct errinfo *reterr)
{
	char number[32], *text = p->base ? number : (char *)ret + p->at;
	const char *digits = p->base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
	bool found;
	int r = http_query_get(query, p->name, text, p->base ? sizeof(number) : p->size, &found);

	if (r < 0)
		return errinfo_set(reterr, r, "%s: %s", p->name,
			r == -ENOBUFS ? "too long" : "invalid encoding");
	if (!found)
		text[0] = 0;
	if (!found || !p->base)
		return 0;
	errno = 0;
	*(uint64_t *)((char *)ret + p->at) = strtoull(text, NULL, p->base);
	*(bool *)((char *)ret + p->has) = true;
	if (!text[0] || strspn(text, digits) != strlen(text) || errno)
		return errinfo_set(reterr, -EINVAL, "%s: not a number", p->name);
	return 0;
}

static int parse_query(const char *query, struct fleet_json_query *ret, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parameters); i++)
		r = get_parameter(query, &parameters[i], ret, reterr);
	if (r == 0 && ret->has_limit && !ret->limit)
		return errinfo_set(reterr, -EINVAL, "limit must be at least 1");
	return r;
}

/* ---- answers ---- */

static size_t find_question(const char *path)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(questions) && strcmp(questions[i].path, path) != 0)
		i++;
	return i;
}

static void on_question(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct api_server *a = arg;
	size_t i = find_question(q->path);
	_cleanup_buf_ struct buf b = BUF_INIT(FLEET_JSON_BYTES_MAX);
	struct json_writer w = json_writer_to_buf(&b);
	struct fleet_json_query query = {
		.now_ns = a->settings.now(a->settings.arg), .node_page = a->settings.node_page};
	mono_time before = mono_now();
	struct errinfo e = {0};
	int r;

	if (i == ARRAY_SIZE(questions)) {
		http_reply_error(x, 404, "no such path");
		return;
	}
	if (parse_query(q->query, &query, &e) < 0) {
		http_reply_error(x, 400, "%s", e.text);
		return;
	}
	r = questions[i].answer(&w, a->settings.fleet, &query);
	if (r == -ENOENT)
		http_reply_error(x, 404, "not found: it does not exist, or is no longer kept");
	else if (r < 0 || json_finish(&w) < 0)
		http_reply_error(x, 503, "out of memory for this reply");
	else
		http_reply(x, 200, NULL, buf_str(&b), b.len);
	sketch_add(&a->took[i], mono_now().ns - before.ns, 1);
}

void api_server_metrics(struct api_server *a, struct metric_set *s)
{
	fleet_metrics(s, a->settings.fleet);
	if (a->settings.more)
		a->settings.more(a->settings.arg, s);
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		if (a->took[i].count)
			metric_put_sketch(s, &request_duration, a->started, &a->took[i],
				METRIC_OF(METRIC_TEXT(questions[i].path)));
}

static void on_metrics(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	struct api_server *a = arg;
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new(wall_now());
	_cleanup_buf_ struct buf b = BUF_INIT(METRIC_BYTES);

	if (!s) {
		http_reply_error(x, 503, "out of memory for this reply");
		return;
	}
	api_server_metrics(a, s);
	prometheus_text(&b, s);
	if (b.err)
		http_reply_error(x, 500, "too many metrics for one reply");
	else
		http_reply(x, 200, PROMETHEUS_TYPE, buf_str(&b), b.len);
}

static void on_page(void *arg _unused_, struct http_exchange *x, const struct http_request *q)
{
	web_reply(&web_cluster, x, q);
}

static void reply_state(struct http_exchange *x, bool good)
{
	static const char yes[] = "{\"status\":\"ok\"}\n", no[] = "{\"status\":\"not ready\"}\n";

	http_reply(x, good ? 200 : 503, NULL, good ? yes : no, strlen(good ? yes : no));
}

static void on_alive(void *arg _unused_, struct http_exchange *x, const struct http_request *q)
{
	(void)q;
	reply_state(x, true);
}

static void on_ready(void *arg, struct http_exchange *x, const struct http_request *q _unused_)
{
	const struct api_server *a = arg;

	reply_state(x, a->ready);
}

/* ---- life ---- */

static size_t count_files(void)
{
	size_t n = 0;

	for (const struct web_file *f = web_next(&web_cluster, NULL); f;
		f = web_next(&web_cluster, f))
		n++;
	return n;
}

static struct http_route *make_routes(void)
{
	static const struct http_route fixed[] = {
		{.method = "GET", .path = "/metrics", .handler = on_metrics},
		{.method = "GET", .path = "/livez", .handler = on_alive, .open = true},
		{.method = "GET", .path = "/readyz", .handler = on_ready, .open = true},
		{.method = "GET", .path = "/healthz", .handler = on_ready, .open = true},
	};
	struct http_route *routes = calloc(
		ARRAY_SIZE(questions) + ARRAY_SIZE(fixed) + count_files() + 1, sizeof(*routes));
	size_t n = 0;

	if (!routes)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		routes[n++] = (struct http_route){
			.method = "GET", .path = questions[i].path, .handler = on_question};
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		routes[n++] = fixed[i];
	for (const struct web_file *f = web_next(&web_cluster, NULL); f;
		f = web_next(&web_cluster, f))
		routes[n++] = (struct http_route){"GET", f->path, on_page, .open = true};
	return routes;
}

int api_server_new(struct loop *l, const struct api_server_settings *s, struct api_server **ret,
	struct errinfo *reterr)
{
	_cleanup_(api_server_freep) struct api_server *a = calloc(1, sizeof(*a));
	struct http_server_settings http = s->http;
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->settings = *s;
	a->started = wall_now();
	a->routes = make_routes();
	if (!a->routes)
		return -ENOMEM;
	http.routes = a->routes;
	http.arg = a;
	if (http.address)
		r = http_server_new(l, &http, &a->http, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(a);
	return 0;
}

void api_server_free(struct api_server *a)
{
	http_server_freep(&a->http);
	free(a->routes);
	free(a);
}

const char *api_server_address(const struct api_server *a)
{
	return a->http ? http_server_address(a->http) : NULL;
}

const struct http_route *api_server_routes(const struct api_server *a)
{
	return a->routes;
}

void api_server_answer(struct api_server *a, struct http_exchange *x, const struct http_request *q)
{
	const struct http_route *r = a->routes;

	while (r->method && strcmp(r->path, q->path) != 0)
		r++;
	if (r->method)
		r->handler(a, x, q);
	else
		http_reply_error(x, 404, "no such path");
}

void api_server_set_ready(struct api_server *a, bool ready)
{
	a->ready = ready;
}

void api_server_drain(struct api_server *a, loop_fn *done, void *arg)
{
	a->ready = false;
	if (a->http)
		http_server_drain(a->http, done, arg);
	else
		done(arg);
}
