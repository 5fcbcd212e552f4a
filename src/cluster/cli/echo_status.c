/* SPDX-License-Identifier: Apache-2.0 */
/* echo_status.c - see echo_service.h. */
#include "cluster/cli/echo_service.h"

#define WHY_MAX 256

/* ---- figures ---- */

METRIC_ROW(items, COUNTER, false, "ingero_echo_items_total", "{item}",
	"Points, records and spans received, by result", METRIC_LABEL("result"));
METRIC_ROW(requests, COUNTER, false, "ingero_echo_requests_total", "{request}",
	"OTLP requests stored");
METRIC_ROW(duplicates, COUNTER, false, "ingero_echo_duplicates_total", "{request}",
	"Duplicate requests");
METRIC_ROW(refused, COUNTER, false, "ingero_echo_keeper_refused_total", "{request}",
	"Requests refused as a whole before storing");
METRIC_ROW(backlog, GAUGE, false, "ingero_echo_backlog_entries", "{entry}",
	"Journal entries that are not in the store yet");
METRIC_ROW(journal_bytes, GAUGE, false, "ingero_echo_journal_bytes", "By", "Size of the journal");
METRIC_ROW(pending_bytes, GAUGE, false, "ingero_echo_journal_pending_bytes", "By",
	"Bytes waiting to be written to the journal");
METRIC_ROW(syncs, COUNTER, false, "ingero_echo_journal_syncs_total", "{sync}",
	"Times the journal was synced");
METRIC_ROW(failures, COUNTER, false, "ingero_echo_journal_failures_total", "{entry}",
	"Journal entries that could not be written");
METRIC_ROW(degraded, GAUGE, false, "ingero_echo_degraded", "1",
	"1 while journal or store cannot write, or rows are missing");
METRIC_ROW(otlp_refused, COUNTER, false, "ingero_echo_otlp_refused_total", "{request}",
	"OTLP requests refused as a whole", METRIC_LABEL("reason"));
METRIC_ROW(sql_running, GAUGE, false, "ingero_echo_sql_running", "{statement}",
	"Running SQL statements");
METRIC_ROW(sql_started, COUNTER, false, "ingero_echo_sql_started_total", "{statement}",
	"SQL statements started, each in its own process");
METRIC_ROW(sql_killed, COUNTER, false, "ingero_echo_sql_killed_total", "{statement}",
	"SQL statements killed at their deadline");
METRIC_ROW(sql_walls, GAUGE, false, "ingero_echo_sql_confined", "1",
	"1 if the kernel confines SQL processes this way, else 0", METRIC_LABEL("by"));
METRIC_ROW(connections, GAUGE, false, "ingero_echo_connections", "{connection}",
	"Open connections of senders");

void echo_metrics_keeper(struct metric_set *m, const struct keeper_stats *k)
{
	metric_put_count(m, &items, "kept", k->points);
	metric_put_count(m, &items, "rejected", k->rejected);
	metric_put_count(m, &requests, NULL, k->requests);
	metric_put_count(m, &duplicates, NULL, k->duplicates);
	metric_put_count(m, &refused, NULL, k->refused);
	metric_put_count(m, &backlog, NULL, k->backlog);
	metric_put_count(m, &journal_bytes, NULL, k->journal.bytes);
	metric_put_count(m, &pending_bytes, NULL, k->journal.pending);
	metric_put_count(m, &syncs, NULL, k->journal.syncs);
	metric_put_count(m, &failures, NULL, k->journal.failed);
	metric_put_count(m, &degraded, NULL, k->degraded);
}

void echo_metrics_receiver(struct metric_set *m, const struct receiver_stats *r)
{
	for (int i = 0; i < RECEIVER_REASON_COUNT; i++)
		metric_put_count(m, &otlp_refused, receiver_reason_id(i), r->refused[i]);
	metric_put_count(m, &connections, NULL, r->http.open_connections);
}

void echo_metrics_sql(struct metric_set *m, const struct sql_worker_stats *s)
{
	metric_put_count(m, &sql_running, NULL, s->running);
	metric_put_count(m, &sql_started, NULL, s->started);
	metric_put_count(m, &sql_killed, NULL, s->killed);
	if (!s->known) /* none has answered yet */
		return;
	metric_put_count(m, &sql_walls, "landlock", s->landlock > 0);
	metric_put_count(m, &sql_walls, "seccomp", s->seccomp);
}

/* ---- health ---- */

/* Who has no token learns no reason: it may name files and clusters. */
static void reply(struct http_exchange *x, bool good, const char *body)
{
	http_reply(x, good ? 200 : 503, NULL, body, strlen(body));
}

static void on_alive(void *arg _unused_, struct http_exchange *x, const struct http_request *q)
{
	(void)q;
	reply(x, true, "{\"status\":\"ok\"}\n");
}

/* /readyz, and /healthz, which also says whether something is missing. */
static void on_state(void *arg, struct http_exchange *x, const struct http_request *q)
{
	const struct echo_health *h = arg;
	char why[WHY_MAX] = "";
	bool good = h->is_ready(h->arg, why, sizeof(why));

	if (!good)
		reply(x, false, "{\"status\":\"not ready\"}\n");
	else if (!strcmp(q->path, "/healthz") && !h->is_whole(h->arg))
		reply(x, true, "{\"status\":\"degraded\"}\n");
	else
		on_alive(arg, x, q);
}

int echo_health_listen(struct loop *l, const char *address, const struct echo_health *h,
	struct http_server **ret, struct errinfo *reterr)
{
	static const struct http_route routes[] = {
		{.method = "GET", .path = "/livez", .handler = on_alive, .open = true},
		{.method = "GET", .path = "/readyz", .handler = on_state, .open = true},
		{.method = "GET", .path = "/healthz", .handler = on_state, .open = true},
		{.method = NULL},
	};
	struct http_server_settings http = {.address = address,
		.flag = "--health-addr",
		.routes = routes,
		.arg = (void *)h,
		.plain = true,
		.anyone = true};

	return http_server_new(l, &http, ret, reterr);
}
