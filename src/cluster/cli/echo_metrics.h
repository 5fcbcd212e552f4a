/* SPDX-License-Identifier: Apache-2.0 */
/* echo_metrics.h - figures of what comes into the cluster's memory. */
#pragma once

#include "cluster/ingest/receiver.h"
#include "cluster/keep/keeper.h"
#include "model/metric.h"

void echo_metrics_keeper(struct metric_set *m, const struct keeper_stats *k);
void echo_metrics_receiver(struct metric_set *m, const struct receiver_stats *r);
