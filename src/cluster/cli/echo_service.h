/* SPDX-License-Identifier: Apache-2.0 */
/* echo_service.h - the cluster's memory as a service on one loop: what comes in is on disk before it is
 * acknowledged, then in the store, which answers.
 *
 * Opened in two steps, so that a fleet may stand between: the store first (who fills it needs it), then
 * the addresses. */
#pragma once

#include "cluster/cli/service.h"
#include "cluster/ingest/receiver.h"
#include "cluster/keep/keeper.h"
#include "cluster/store/store_clickhouse.h"
#include "cluster/store/store_duck.h"
#include "cluster/tenant/tenants.h"
#include "duck/duck_worker.h"
#include "model/metric.h"
#include "net/server/server.h"

struct echo_service;

enum echo_engine { ECHO_DUCKDB, ECHO_CLICKHOUSE };

struct echo_service_settings { /* what it points to is the caller's and outlives the service */
	const char *folder;    /* of store, journal and audit log; made if it is missing */
	enum echo_engine engine;
	struct store_duck_settings duck;             /* without the folder */
	struct store_clickhouse_settings clickhouse; /* engine ECHO_CLICKHOUSE */
	uint64_t journal_bytes_max;                  /* 0: no limit */
	bool audit;                                  /* keep a log of who asked for what */
	struct tenants *tenants;                     /* NULL: who is let in may do everything */
};

int echo_service_new(struct loop *l, const struct echo_service_settings *s,
	struct echo_service **ret, struct errinfo *reterr);
DECLARE_FREE(struct echo_service, echo_service_free)

/* echo_service_keeping - for the fleet of this process: it hands over what it is sent and what it finds. */
struct keeping echo_service_keeping(struct echo_service *s);

/* echo_service_share - tells the store whose clusters are whose, as the tokens say now. */
int echo_service_share(struct echo_service *s);

struct echo_addresses {
	struct http_server_settings http; /* of all but health; without an address */
	/* NULL: not opened. With a fleet, grpc and http are the fleet's. */
	const char *grpc, *otlp_http, *api, *health;
	struct api_server *fleet; /* its page and API are at @api, too; NULL: none */
};

int echo_service_listen(
	struct echo_service *s, const struct echo_addresses *a, struct errinfo *reterr);

struct service_addresses echo_service_addresses(const struct echo_service *s);

/* echo_service_describe - "DuckDB v1.5.5, 12,345 rows in 3 files": what was found in the store. */
void echo_service_describe(const struct echo_service *s, struct buf *b);

/* echo_service_refuse - first step of an end: whoever asks is answered with 503 and told to come again. */
void echo_service_refuse(struct echo_service *s);

/* echo_service_drain - second step: @done when the replies under way have gone out, and all that was
 * acknowledged is in the store, or cannot be. */
void echo_service_drain(struct echo_service *s, loop_fn *done, void *arg);

/* How the cluster's memory is: figures of what comes in, and an address that says only whether the
 * service lives and is ready, for those who watch over it and have neither certificate nor token (kubelet, load
 * balancers). */

void echo_metrics_keeper(struct metric_set *m, const struct keeper_stats *k);
void echo_metrics_receiver(struct metric_set *m, const struct receiver_stats *r);

/* echo_metrics_sql - of duck_worker_stats(): a stranger's SQL. */
void echo_metrics_sql(struct metric_set *m, const struct sql_worker_stats *s);

struct echo_health {
	bool (*is_ready)(void *arg, char *why, size_t size); /* false: a sentence says why */
	bool (*is_whole)(void *arg); /* false: /healthz says that it is degraded */
	void *arg;
};

/* echo_health_listen - @h outlives *ret. Plain, open, no secrets. */
int echo_health_listen(struct loop *l, const char *address, const struct echo_health *h,
	struct http_server **ret, struct errinfo *reterr);
