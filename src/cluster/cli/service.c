/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - see service.h.
 *
 * The order of things: rates, core and snapshot, who is told, then the ports; and back. A push that comes before the first
 * tick is an ordinary one. */
#include "cluster/cli/service.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/notify/notify.h"

#define TICK_NS            (100 * NS_PER_MS)
#define SNAPSHOT_NS        (10 * NS_PER_S)
#define SNAPSHOT_BYTES_MAX (64u << 20)
#define SNAPSHOT_MAGIC     8u

struct service {
	struct service_settings settings;
	struct loop *loop;
	struct rates *rates;
	struct fleet *fleet;
	struct receiver *receiver;
	struct api_server *api;
	struct loop_timer *tick;
	struct service_clock clock;
	int64_t saved_ns, renewed_ns;
	bool snapshot_failed; /* said once */
	unsigned draining;    /* servers that have not ended */
	loop_fn *drained;
	void *drained_arg;
};

int64_t service_clock_at(struct service_clock *c, int64_t wall_ns, uint64_t mono_ns)
{
	int64_t elapsed = (int64_t)(mono_ns - c->mono_ns);

	if (!c->now_ns || wall_ns >= c->now_ns + elapsed)
		c->now_ns = wall_ns;
	else if (wall_ns >= c->now_ns + elapsed / 2)
		c->now_ns = wall_ns; /* slower than it should be, but forward */
	else
		c->now_ns += elapsed / 2;
	c->mono_ns = mono_ns;
	return c->now_ns;
}

static int64_t service_now(void *arg)
{
	struct service *s = arg;

	return service_clock_at(&s->clock, wall_now().ns, mono_now().ns);
}

/* ---- what comes in ---- */

static enum nodes_refusal take_health(
	void *arg, const struct push_health *h, uint64_t credential, struct threshold *ret)
{
	struct service *s = arg;

	return fleet_take_health(s->fleet, h, credential, service_now(s), ret);
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct service *s = arg;
	struct calls_taken taken;

	return fleet_take_calls(s->fleet, c, service_now(s), &taken);
}

static int take_report(void *arg, const struct push_report *r)
{
	struct service *s = arg;

	return fleet_take_report(s->fleet, r, service_now(s));
}

static int take_straggler(void *arg, const struct push_who *who, const struct push_straggler *v)
{
	struct service *s = arg;

	return fleet_take_straggler(s->fleet, who, v, service_now(s));
}

static bool find_threshold(void *arg, const char *cluster, struct threshold *ret)
{
	struct service *s = arg;

	return nodes_threshold(fleet_nodes(s->fleet), cluster, "", ret);
}

static size_t find_late(void *arg, const struct push_who *who, uint32_t *pids, size_t max)
{
	struct service *s = arg;

	return fleet_late(s->fleet, who->cluster, who->node, pids, max);
}

static void keep_request(
	void *arg, const struct receiver_request *q, keeper_done *done, void *done_arg)
{
	const struct keeping *k = &((struct service *)arg)->settings.keeping;

	k->keep(k->arg, q, done, done_arg);
}

static int admit(void *arg, uint64_t credential, char *why, size_t size)
{
	const struct keeping *k = &((struct service *)arg)->settings.keeping;

	return k->admit(k->arg, credential, why, size);
}

static bool may_send(void *arg, uint64_t credential, const char *cluster)
{
	const struct keeping *k = &((struct service *)arg)->settings.keeping;

	return k->may_send(k->arg, credential, cluster);
}

static void forward_request(void *arg, const struct receiver_request *q)
{
	struct service *s = arg;

	outlets_forward(s->settings.outlets, q);
}

/* ---- what goes out ---- */

static void take_notices(struct service *s)
{
	struct fleet_notice n;

	while (fleet_notice(s->fleet, &n)) {
		outlets_tell(s->settings.outlets, &n);
		if (s->settings.keeping.tell)
			s->settings.keeping.tell(s->settings.keeping.arg, &n, service_now(s));
	}
}

static int save_snapshot(struct service *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SNAPSHOT_BYTES_MAX);
	const char *path = s->settings.snapshot;
	int r;

	if (!path)
		return 0;
	r = nodes_save(fleet_nodes(s->fleet), service_now(s), &b);
	r = r ?: b.err;
	r = r ?: file_write_atomic(path, buf_str(&b), b.len, 0600);
	return r < 0 ? errinfo_set(
			       reterr, r, "cannot write the snapshot %s: %s", path, strerror(-r))
		     : 0;
}

static void keep_snapshot(struct service *s)
{
	struct errinfo e = {0};

	if (save_snapshot(s, &e) == 0) {
		s->snapshot_failed = false;
		return;
	}
	if (!s->snapshot_failed)
		fprintf(stderr, "%singero-cluster: %s\n", log_mark(LOG_LEVEL_ERROR), e.text);
	s->snapshot_failed = true;
}

static void on_tick(void *arg)
{
	struct service *s = arg;
	int64_t now = service_now(s);
	struct fleet_notice n = {.kind = FLEET_NOTICE_CHANGED};
	size_t cursor = 0;

	fleet_tick(s->fleet, now);
	take_notices(s);
	/* What lasts is remembered as it is by now: what it has cost. */
	while (s->settings.keeping.tell &&
		fleet_episode_next(s->fleet, NULL, &cursor, &n.episode) && !n.episode.until_ns)
		if (!n.episode.provisional && notice_row_is_due(&n.episode, s->renewed_ns, now))
			s->settings.keeping.tell(s->settings.keeping.arg, &n, now);
	s->renewed_ns = now;
	if (now - s->saved_ns >= (int64_t)SNAPSHOT_NS) {
		s->saved_ns = now;
		keep_snapshot(s);
	}
	loop_timer_set(s->tick, TICK_NS);
}

/* ---- metrics of the rooms beside the core ---- */

METRIC_ROW(otlp_items, COUNTER, false, "ingero_fleet_otlp_items_total", "{item}",
	"Points and records pushed, by result", METRIC_LABEL("result"));
METRIC_ROW(otlp_requests, COUNTER, false, "ingero_fleet_otlp_requests_total", "{request}",
	"OTLP requests accepted", METRIC_LABEL("signal"));
METRIC_ROW(otlp_refused, COUNTER, false, "ingero_fleet_otlp_refused_total", "{request}",
	"OTLP requests refused as a whole", METRIC_LABEL("reason"));
METRIC_ROW(otlp_withheld, COUNTER, false, "ingero_fleet_otlp_withheld_total", "{request}",
	"OTLP requests of tokens for some clusters that were not forwarded, as a part was refused");
METRIC_ROW(connections, GAUGE, false, "ingero_fleet_connections", "{connection}",
	"Open connections of agents and exporters");

static void put_metrics(void *arg, struct metric_set *m)
{
	const struct service *s = arg;
	struct receiver_stats stats;

	outlets_metrics(s->settings.outlets, m);
	if (!s->receiver)
		return;
	stats = receiver_stats(s->receiver);
	metric_put_count(m, &otlp_items, "taken", stats.taken);
	metric_put_count(m, &otlp_items, "rejected", stats.rejected);
	metric_put_count(m, &otlp_items, "foreign", stats.foreign);
	for (int i = 0; i < OTLP_SIGNAL_COUNT; i++)
		metric_put_count(m, &otlp_requests, otlp_signal_id(i), stats.requests[i]);
	for (int i = 0; i < RECEIVER_REASON_COUNT; i++)
		metric_put_count(m, &otlp_refused, receiver_reason_id(i), stats.refused[i]);
	metric_put_count(m, &otlp_withheld, NULL, stats.withheld);
	metric_put_count(m, &connections, NULL, stats.http.open_connections);
}

/* ---- life ---- */

static int open_rates(const char *path, struct rates **ret, struct errinfo *reterr)
{
	return path ? rates_read(path, ret, reterr) : rates_builtin(ret);
}

/* Damaged or not: it begins as ours do. */
static bool is_snapshot(struct service *s, const struct buf *b)
{
	_cleanup_buf_ struct buf own = BUF_INIT(SNAPSHOT_BYTES_MAX);

	return nodes_save(fleet_nodes(s->fleet), service_now(s), &own) < 0 || own.err ||
	       memcmp(buf_str(&own), buf_str(b), MIN(b->len, (size_t)SNAPSHOT_MAGIC)) == 0;
}

/* A snapshot that is missing or of no use is not in the way of a start; a file of something else is not written over. */
static int restore_snapshot(struct service *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SNAPSHOT_BYTES_MAX);
	int r;

	if (!s->settings.snapshot)
		return 0;
	r = file_read(s->settings.snapshot, SNAPSHOT_BYTES_MAX, &b);
	if (r == -ENOENT)
		return 0;
	if (!is_snapshot(s, &b))
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"--snapshot %s: is another file and is not overwritten: give another name",
			s->settings.snapshot);
	if (r >= 0)
		r = nodes_restore(fleet_nodes(s->fleet), buf_str(&b), b.len, service_now(s));
	if (r < 0)
		fprintf(stderr, "%singero-cluster: the snapshot %s is not used: %s\n",
			log_mark(LOG_LEVEL_WARNING), s->settings.snapshot, strerror(-r));
	return 0;
}

static int open_ports(struct service *s, struct errinfo *reterr)
{
	struct receiver_settings in = {.server = s->settings.http,
		.grpc_address = s->settings.grpc_address,
		.http_address = s->settings.http_address,
		.sink = {.arg = s,
			.health = take_health,
			.straggler = take_straggler,
			.calls = take_calls,
			.report = take_report,
			.threshold = find_threshold,
			.late = find_late}};
	struct api_server_settings api = {.fleet = s->fleet,
		.http = s->settings.http,
		.node_page = s->settings.node_page,
		.now = service_now,
		.more = put_metrics,
		.arg = s};
	int r = 0;

	if (outlets_want_requests(s->settings.outlets))
		in.sink.forward = forward_request;
	if (s->settings.keeping.keep) {
		in.sink.keep = keep_request;
		in.sink.admit = admit;
		in.sink.may_send = may_send;
	}
	if (in.grpc_address || in.http_address)
		r = receiver_new(s->loop, &in, &s->receiver, reterr);
	if (r < 0 || (!s->settings.api_address && !s->settings.api_elsewhere))
		return r;
	api.http.address = s->settings.api_address;
	api.http.flag = "--api-addr";
	return api_server_new(s->loop, &api, &s->api, reterr);
}

int service_new(struct loop *l, const struct service_settings *settings, struct service **ret,
	struct errinfo *reterr)
{
	_cleanup_(service_freep) struct service *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->settings = *settings;
	s->loop = l;
	r = open_rates(settings->rates, &s->rates, reterr);
	s->settings.fleet.rates = s->rates;
	r = r ?: hash_name_key();
	r = r ?: fleet_new(&s->settings.fleet, &s->fleet);
	r = r ?: restore_snapshot(s, reterr);
	if (r < 0)
		return r;
	r = loop_timer_new(l, on_tick, s, &s->tick);
	r = r ?: open_ports(s, reterr);
	if (r < 0)
		return r;
	s->saved_ns = s->renewed_ns = service_now(s);
	loop_timer_set(s->tick, TICK_NS);
	if (s->api)
		api_server_set_ready(s->api, true);
	*ret = TAKE(s);
	return 0;
}

void service_free(struct service *s)
{
	loop_timer_freep(&s->tick);
	receiver_freep(&s->receiver);
	api_server_freep(&s->api);
	fleet_freep(&s->fleet);
	rates_freep(&s->rates);
	free(s);
}

struct service_addresses service_addresses(const struct service *s)
{
	return (struct service_addresses){
		.grpc = s->receiver ? receiver_grpc_address(s->receiver) : NULL,
		.http = s->receiver ? receiver_http_address(s->receiver) : NULL,
		.api = s->api ? api_server_address(s->api) : NULL};
}

struct api_server *service_api(const struct service *s)
{
	return s->api;
}

int service_reload(struct service *s, struct errinfo *reterr)
{
	struct rates *fresh = NULL;
	int r = open_rates(s->settings.rates, &fresh, reterr);

	if (r < 0)
		return r;
	fleet_set_rates(s->fleet, fresh);
	rates_free(s->rates);
	s->rates = fresh;
	return 0;
}

static void on_drained(void *arg)
{
	struct service *s = arg;

	if (--s->draining)
		return;
	fleet_tick(s->fleet, service_now(s));
	take_notices(s);
	keep_snapshot(s);
	outlets_finish(s->settings.outlets, s->drained, s->drained_arg);
}

void service_drain(struct service *s, loop_fn *done, void *arg)
{
	s->drained = done;
	s->drained_arg = arg;
	s->draining = 1; /* this function itself: a server may end at once */
	loop_timer_clear(s->tick);
	if (s->receiver) {
		s->draining++;
		receiver_drain(s->receiver, on_drained, s);
	}
	if (s->api) {
		s->draining++;
		api_server_drain(s->api, on_drained, s);
	}
	on_drained(s);
}
