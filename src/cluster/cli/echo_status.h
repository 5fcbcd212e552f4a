/* SPDX-License-Identifier: Apache-2.0 */
/* echo_status.h - how the cluster's memory is: figures of what comes in, and an address that says only whether the
 * service lives and is ready, for those who watch over it and have neither certificate nor token (kubelet, load
 * balancers). */
#pragma once

#include "cluster/ingest/receiver.h"
#include "cluster/keep/keeper.h"
#include "duck/duck_worker.h"
#include "model/metric.h"
#include "net/server/server.h"

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
