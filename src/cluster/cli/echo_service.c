/* SPDX-License-Identifier: Apache-2.0 */
/* echo_service.c - see echo_service.h.
 *
 * The order of things: the store, whose lock says that nobody else is here; the journal, which goes on where the
 * store's memory of it ends; the keeper, which fills the one from the other; then the ports. And back: no
 * more is taken, the journal ends, the store is filled and sealed. */
#include "cluster/cli/echo_service.h"

#include <sys/stat.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/answer/echo_server.h"
#include "cluster/notify/notify.h"
#include "cluster/tenant/audit.h"

#define NOTICE_BYTES_MAX (1u << 20)

struct echo_service {
	struct echo_service_settings settings;
	struct loop *loop;
	struct store *store;
	struct journal *journal;
	struct keeper *keeper;
	struct audit *audit;
	struct echo_server *api;
	struct receiver *receiver;
	struct echo_health status;
	struct http_server *health; /* says it to those who have no token */
	struct api_server *fleet;
	struct http_route *routes; /* of the fleet, beside ours */
	bool refusing;
	unsigned draining; /* servers that have not ended */
	loop_fn *drained;
	void *drained_arg;
};

/* ---- what comes in ---- */

static void refuse(keeper_done *done, void *arg, int err, const char *why)
{
	struct keeper_result r = {.err = err};

	snprintf(r.why, sizeof(r.why), "%s", why);
	done(arg, &r);
}

/* Tokens may have been read anew since the request came. */
static bool may_write(void *arg, uint64_t sender, const char *cluster, size_t len)
{
	const struct echo_service *s = arg;

	return tenant_may_see(
		tenants_find(s->settings.tenants, sender, wall_now().ns), cluster, len);
}

struct kept { /* a request, until its rows can be charged to who sent it */
	struct echo_service *service;
	uint64_t credential;
	keeper_done *done;
	void *arg;
};

static void on_kept(void *arg, const struct keeper_result *r)
{
	struct kept k = *(struct kept *)arg;

	free(arg);
	tenants_charge(k.service->settings.tenants, k.credential, r->taken, 0, mono_now().ns);
	k.done(k.arg, r);
}

static int admit(void *arg, uint64_t credential, char *why, size_t size)
{
	struct echo_service *s = arg;
	struct tenant_refusal no;

	if (tenants_admit(s->settings.tenants, credential, TENANT_INGEST, mono_now().ns,
		    wall_now().ns, &no))
		return 0;
	snprintf(why, size, "%s: %s", no.code, no.text);
	return no.status == 429 ? -EAGAIN : -EACCES;
}

static void keep(void *arg, const struct receiver_request *q, keeper_done *done, void *done_arg)
{
	struct echo_service *s = arg;
	struct keeper_request k = {
		.signal = q->signal, .json = q->json, .data = q->data, .len = q->len};
	struct kept *kept;

	if (s->refusing) {
		refuse(done, done_arg, -EIO, "shutting down");
		return;
	}
	kept = malloc(sizeof(*kept));
	if (!kept) {
		refuse(done, done_arg, -ENOMEM, "not enough memory");
		return;
	}
	*kept = (struct kept){s, q->credential, done, done_arg};
	tenants_charge(s->settings.tenants, q->credential, 0, q->len, mono_now().ns);
	k.may_write = may_write;
	k.may_write_arg = s;
	k.sender = q->credential;
	keeper_take(s->keeper, &k, on_kept, kept);
}

int echo_service_share(struct echo_service *s)
{
	_cleanup_free_ struct tenant_part *parts = NULL;
	_cleanup_free_ struct store_share *shares = NULL;
	size_t count = 0;
	int r = s->settings.tenants ? tenants_parts(s->settings.tenants, &parts, &count) : 0;

	if (r < 0)
		return r;
	shares = calloc(count + 1, sizeof(*shares));
	if (!shares)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		shares[i] =
			(struct store_share){parts[i].cluster, parts[i].owner, parts[i].percent};
	return store_share(s->store, shares, count);
}

static bool may_send(void *arg, uint64_t credential, const char *cluster)
{
	const struct echo_service *s = arg;
	const struct tenant *t = tenants_find(s->settings.tenants, credential, wall_now().ns);

	return t && t->verbs & TENANT_INGEST && tenant_may_see(t, cluster, strlen(cluster));
}

/* What the fleet finds is told to everybody anyway: a failure is in the keeper's figures. */
static void on_told(void *arg _unused_, const struct keeper_result *r _unused_)
{
}

static void tell(void *arg, const struct fleet_notice *n, int64_t now_ns)
{
	struct echo_service *s = arg;
	struct batch b = {.bytes = BUF_INIT(NOTICE_BYTES_MAX)};

	notice_row(&b, n, now_ns);
	keeper_take_rows(s->keeper, &b, on_told, NULL);
	buf_done(&b.bytes);
}

struct keeping echo_service_keeping(struct echo_service *s)
{
	return (struct keeping){
		.arg = s, .keep = keep, .admit = admit, .may_send = may_send, .tell = tell};
}

/* ---- how it is ---- */

static bool is_well(void *arg, char *why, size_t size)
{
	const struct echo_service *s = arg;
	struct keeper_stats k = keeper_stats(s->keeper);

	if (s->refusing)
		snprintf(why, size, "shutting down");
	else if (k.degraded)
		snprintf(why, size, "%s", k.why);
	else if (k.replaying)
		snprintf(why, size, "data acknowledged before the start is still being loaded");
	return !s->refusing && !k.degraded && !k.replaying;
}

static bool is_whole(void *arg)
{
	const struct echo_service *s = arg;
	struct store_missing missing;

	store_missing(s->store, NULL, &missing);
	return !missing.parts && !missing.requests;
}

static void put_metrics(void *arg, struct metric_set *m)
{
	const struct echo_service *s = arg;
	struct keeper_stats k = keeper_stats(s->keeper);
	struct sql_worker_stats sql = duck_worker_stats();
	struct receiver_stats r;

	k.degraded |= !is_whole(arg);
	echo_metrics_keeper(m, &k);
	echo_metrics_sql(m, &sql);
	if (s->receiver) {
		r = receiver_stats(s->receiver);
		echo_metrics_receiver(m, &r);
	}
	if (s->fleet)
		api_server_metrics(s->fleet, m);
}

void echo_service_describe(const struct echo_service *s, struct buf *b)
{
	struct store_stats t = {0};
	uint64_t rows = 0;

	s->store->ops->stats(s->store, &t);
	for (int i = 0; i < TABLE_COUNT; i++)
		rows += i == TABLE_METRICS ? 0 : t.rows[i];
	if (s->settings.engine == ECHO_DUCKDB)
		buf_printf(b, "%s (DuckDB %s)", s->settings.folder, duck_version());
	else
		buf_printf(b, "ClickHouse at %s; journal in %s", s->settings.clickhouse.shards[0],
			s->settings.folder);
	if (!rows)
		buf_puts(b, ", empty");
	else
		buf_printf(b, ", %s rows in %s, %s", TEXT_COUNT(rows),
			TEXT_PLURAL(t.parts, "files"), TEXT_SIZE(t.bytes));
}

/* ---- the store ---- */

static int make_folder(const char *path, struct errinfo *reterr)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
		"cannot create the folder %s: %s; give another with --db-path", path,
		strerror(errno));
}

static int open_store(struct echo_service *s, struct errinfo *reterr)
{
	struct store_duck_settings duck = s->settings.duck;

	if (s->settings.engine == ECHO_CLICKHOUSE)
		return store_clickhouse_open(&s->settings.clickhouse, &s->store, reterr);
	duck.folder = s->settings.folder;
	return store_duck_open(&duck, &s->store, reterr);
}

static int open_journal(struct echo_service *s, struct errinfo *reterr)
{
	_cleanup_free_ char *folder = NULL;
	struct journal_settings j = {
		.bytes_max = s->settings.journal_bytes_max, .first = store_durable(s->store) + 1};

	if (asprintf(&folder, "%s/journal", s->settings.folder) < 0) {
		folder = NULL;
		return -ENOMEM;
	}
	j.folder = folder;
	return journal_open(s->loop, &j, &s->journal, reterr);
}

static int open_audit(struct echo_service *s, struct errinfo *reterr)
{
	_cleanup_free_ char *path = NULL;

	if (!s->settings.audit)
		return 0;
	if (asprintf(&path, "%s/audit.log", s->settings.folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return audit_open(path, &s->audit, reterr);
}

int echo_service_new(struct loop *l, const struct echo_service_settings *settings,
	struct echo_service **ret, struct errinfo *reterr)
{
	_cleanup_(echo_service_freep) struct echo_service *s = calloc(1, sizeof(*s));
	struct keeper_settings k = {0};
	int r;

	if (!s)
		return -ENOMEM;
	s->settings = *settings;
	s->loop = l;
	r = hash_name_key();
	r = r ?: make_folder(settings->folder, reterr);
	r = r ?: open_store(s, reterr);
	r = r ?: echo_service_share(s);
	r = r ?: open_journal(s, reterr);
	r = r ?: open_audit(s, reterr);
	if (r < 0)
		return r;
	r = journal_stats(s->journal).fault;
	if (r < 0)
		log_error("the journal cannot be written: %s; requests are refused until it can be",
			strerror(-r));
	k.journal = s->journal;
	k.store = s->store;
	r = keeper_new(l, &k, &s->keeper, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void echo_service_free(struct echo_service *s)
{
	receiver_freep(&s->receiver);
	http_server_freep(&s->health);
	echo_server_freep(&s->api);
	keeper_freep(&s->keeper);
	journal_freep(&s->journal);
	audit_freep(&s->audit);
	store_freep(&s->store);
	free(s->routes);
	free(s);
}

/* ---- ports ---- */

/* The fleet answers for all clusters, or for one: who may see some must say which. */
static bool may_see(const struct tenant *t, const char *query)
{
	char cluster[PUSH_ID_MAX];
	bool found = false;

	return !t->clusters ||
	       (http_query_get(query, "cluster_id", cluster, sizeof(cluster), &found) == 0 &&
		       found && tenant_may_see(t, cluster, strlen(cluster)));
}

static void on_fleet(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct echo_service *s = arg;
	struct tenant_refusal no;
	const struct tenant *t;

	if (!q->admitted || strncmp(q->path, "/api/", 5) != 0) { /* a file of the page */
		api_server_answer(s->fleet, x, q);
		return;
	}
	t = tenants_admit(
		s->settings.tenants, q->credential, TENANT_READ, mono_now().ns, wall_now().ns, &no);
	if (!t) {
		if (no.retry_s)
			http_reply_field(x, "retry-after", FORMATTED(16, "%u", no.retry_s));
		http_reply_error(x, no.status, "%s: %s", no.code, no.text);
	} else if (!may_see(t, q->query)) {
		http_reply_error(x, 403,
			TENANT_REFUSED
			": this token is limited to some clusters: give one of them as cluster_id");
	} else {
		api_server_answer(s->fleet, x, q);
	}
}

/* The fleet's routes, answered through this service. The
 * answers about health and figures are ours. */
static int take_routes(struct echo_service *s, struct api_server *fleet)
{
	static const char *const ours[] = {"/metrics", "/livez", "/readyz", "/healthz"};
	const struct http_route *r = api_server_routes(fleet);
	size_t n = 0;

	while (r[n].method)
		n++;
	s->routes = calloc(n + 1, sizeof(*s->routes));
	if (!s->routes)
		return -ENOMEM;
	s->fleet = fleet;
	for (size_t to = 0; r->method; r++) {
		bool is_ours = false;

		for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
			is_ours |= strcmp(ours[i], r->path) == 0;
		if (is_ours)
			continue;
		s->routes[to] = *r;
		s->routes[to].arg = s;
		s->routes[to++].handler = on_fleet;
	}
	return 0;
}

static int open_api(struct echo_service *s, const struct echo_addresses *a, struct errinfo *reterr)
{
	struct echo_server_settings e = {.store = s->store,
		.tenants = s->settings.tenants,
		.audit = s->audit,
		.http = a->http,
		.v1 = a->fleet,
		.metrics = put_metrics,
		.is_well = is_well,
		.arg = s};
	int r = a->fleet ? take_routes(s, a->fleet) : 0;

	if (r < 0)
		return r;
	e.routes = s->routes;
	e.http.address = a->api;
	e.http.flag = a->fleet ? "--api-addr" : "--mcp-addr";
	return echo_server_new(s->loop, &e, &s->api, reterr);
}

int echo_service_listen(
	struct echo_service *s, const struct echo_addresses *a, struct errinfo *reterr)
{
	struct receiver_settings in = {.server = a->http,
		.grpc_address = a->grpc,
		.grpc_flag = "--otlp-addr",
		.http_address = a->otlp_http,
		.sink = {.arg = s, .keep = keep, .admit = admit}};
	int r = 0;

	s->status = (struct echo_health){.is_ready = is_well, .is_whole = is_whole, .arg = s};
	if (a->api)
		r = open_api(s, a, reterr);
	if (r == 0 && a->health)
		r = echo_health_listen(s->loop, a->health, &s->status, &s->health, reterr);
	if (r == 0 && (a->grpc || a->otlp_http))
		r = receiver_new(s->loop, &in, &s->receiver, reterr);
	if (r < 0)
		return r;
	if (s->api)
		echo_server_set_ready(s->api, true);
	return 0;
}

struct service_addresses echo_service_addresses(const struct echo_service *s)
{
	return (struct service_addresses){
		.grpc = s->receiver ? receiver_grpc_address(s->receiver) : NULL,
		.http = s->receiver ? receiver_http_address(s->receiver) : NULL,
		.api = s->api ? echo_server_address(s->api) : NULL,
		.health = s->health ? http_server_address(s->health) : NULL};
}

/* ---- the end ---- */

void echo_service_refuse(struct echo_service *s)
{
	s->refusing = true;
	if (s->api) {
		echo_server_set_ready(s->api, false);
		echo_server_stop_taking(s->api);
	}
}

static void on_drained(void *arg)
{
	struct echo_service *s = arg;

	if (--s->draining == 0)
		keeper_finish(s->keeper, s->drained, s->drained_arg);
}

void echo_service_drain(struct echo_service *s, loop_fn *done, void *arg)
{
	s->drained = done;
	s->drained_arg = arg;
	s->draining = 1; /* this function itself: a server may end at once */
	if (s->receiver) {
		s->draining++;
		receiver_drain(s->receiver, on_drained, s);
	}
	if (s->api) {
		s->draining++;
		echo_server_drain(s->api, on_drained, s);
	}
	on_drained(s);
}
