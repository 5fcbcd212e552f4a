/* SPDX-License-Identifier: Apache-2.0 */
/* echo_metrics.h - figures of what comes into the cluster's memory. */
#pragma once

#include "cluster/ingest/receiver.h"
#include "cluster/keep/keeper.h"
#include "duck/duck_worker.h"
#include "model/metric.h"

void echo_metrics_keeper(struct metric_set *m, const struct keeper_stats *k);
void echo_metrics_receiver(struct metric_set *m, const struct receiver_stats *r);

/* echo_metrics_sql - of duck_worker_stats(): a stranger's SQL. */
void echo_metrics_sql(struct metric_set *m, const struct sql_worker_stats *s);
